"""Victims are counted off their queues: above the minimum one by one, the rest of a job at once."""

from __future__ import annotations

import pytest

from pumice.kai.lumps import victim_lumps
from pumice.model.workloads.gang import SubGroup
from tests.unit.kai.cluster import job, node, opened, queue, rows_of, store

GANG = [f"gang-{i}" for i in range(4)]
PARTS = SubGroup("p", 1), SubGroup("q", 2)


@pytest.mark.parametrize(
    ("gone", "lumps"),
    [
        pytest.param([], [], id="nobody"),
        pytest.param(["one-0"], ["one-0"], id="a job of one"),
        pytest.param(["gang-2"], ["gang-2"], id="one that can be spared"),
        pytest.param(["gang-2", "gang-1"], ["gang-2", "gang-1"], id="both that can be"),
        pytest.param(GANG, ["gang-0", "gang-1", "gang-2 gang-3"], id="then the rest at once"),
        pytest.param(["parts-0", "parts-1", "parts-2"], ["parts-0", "parts-1 parts-2"], id="by pod set"),
        pytest.param(["gang-2", "one-0", "gang-1"], ["gang-2", "gang-1", "one-0"], id="job by job"),
    ],
)
def test_in_which_lumps(gone: list[str], lumps: list[str]) -> None:
    """``gang`` can spare two of four; ``parts`` one of its part p, none of its part q."""
    jobs = (
        job("one", "q", ["a"]),
        job("gang", "q", ["a"] * 4, minimum=2),
        job("parts", "q", ["a/p", "a/q", "a/q", "a/p"], minimum=3, sub_groups=PARTS),
    )
    ssn = opened(store(node("a", 16), queue("q"), *jobs))
    rows = rows_of(ssn)
    stmt = ssn.statement()
    for name in gone:
        stmt.evict([rows[name]], "go")
    names = {row: name for name, row in rows.items()}
    found = victim_lumps(ssn.tables, [rows[name] for name in gone])
    assert [" ".join(names[row] for row in each) for _, each in found] == lumps
    assert {queue_row for queue_row, _ in found} <= {0}
