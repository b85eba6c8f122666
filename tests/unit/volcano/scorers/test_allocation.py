"""How full a node would be: three scores as tables, and all of them against integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.columns.placement import Placement
from pumice.columns.rows import NodeRows
from pumice.columns.runs import TaskRun
from pumice.model.pod import Pod
from pumice.volcano.scorers.allocation import GPU
from tests.unit.volcano import reference
from tests.unit.volcano.cluster import GIB, Cluster, node, pod
from tests.unit.volcano.scorers.scoring import only, scores

SMALL, LARGE = node("small", 2000.0, 4 * GIB), node("large", 4000.0, 8 * GIB)


@pytest.mark.parametrize(
    ("weights", "asked", "expected"),
    [
        pytest.param(
            {"leastrequested": 1},
            {"cpu": 1000.0, "memory": GIB},
            {"small": 62.0, "large": 81.0},
            id="least: floors twice",
        ),
        pytest.param(
            {"leastrequested": 1},
            {"cpu": 3000.0, "memory": GIB},
            {"small": 37.0, "large": 56.0},
            id="least: too much is 0",
        ),
        pytest.param(
            {"leastrequested": 1}, {"cpu": 0.0, "memory": 0.0}, {"small": 95.0, "large": 97.0}, id="least: defaults"
        ),
        pytest.param({"mostrequested": 1}, {"cpu": 1000.0, "memory": GIB}, {"small": 37.0, "large": 18.0}, id="most"),
        pytest.param(
            {"mostrequested": 1}, {"cpu": 3000.0, "memory": GIB}, {"small": 62.0, "large": 43.0}, id="most: at most 100"
        ),
        pytest.param(
            {"balancedresource": 1}, {"cpu": 1000.0, "memory": GIB}, {"small": 68.0, "large": 71.0}, id="balanced"
        ),
        pytest.param(
            {"balancedresource": 1}, {"cpu": 1000.0, "memory": 2 * GIB}, {"small": 75.0, "large": 75.0}, id="level"
        ),
        pytest.param(
            {"balancedresource": 1},
            {"cpu": 0.0, "memory": 0.0},
            {"small": 0.0, "large": 0.0},
            id="best effort: no balance",
        ),
        pytest.param({"leastrequested": 2, "balancedresource": 10}, {}, {"small": 804.0, "large": 872.0}, id="weights"),
        pytest.param({}, {}, {"small": 0.0, "large": 0.0}, id="everything off"),
    ],
)
def test_allocation(weights: dict[str, int], asked: dict[str, float], expected: dict[str, float]) -> None:
    assert scores([SMALL, LARGE], [pod("p", **asked)], **weights) == expected


def test_gpus_count_in_the_balance_when_asked_for() -> None:
    nodes = [node("with", 8000.0, 8 * GIB, scalars={GPU: 8000.0}), node("without", 8000.0, 8 * GIB)]
    asked = {"cpu": 2000.0, "memory": 2 * GIB, "scalars": {GPU: 4000.0}}
    assert scores(nodes, [pod("p", **asked)], balancedresource=1) == {"with": 69.0, "without": 75.0}
    assert scores(nodes, [pod("p", cpu=2000.0, memory=2 * GIB)], balancedresource=1) == {"with": 75.0, "without": 75.0}


AMOUNTS = st.sampled_from([0, 1, 3, 100, 250, 333, 1000, 2000, 3999, 4000, 64000])
BYTES = st.sampled_from([0, 1, 10**9, 2**30, 2**31 - 1, 3 * 2**30 + 7, 2**36, 2**45 - 1])
GPUS = st.sampled_from([0, 0, 1000, 3000, 8000])
ASKED = st.tuples(AMOUNTS, BYTES, GPUS)


@given(
    st.lists(st.tuples(AMOUNTS, BYTES, GPUS), min_size=1, max_size=4),
    st.lists(st.tuples(ASKED, st.integers(0, 3)), max_size=4),
    ASKED,
    st.tuples(*[st.integers(0, 3)] * 3),
    st.integers(0, 3),
)
def test_allocation_is_exact(
    sizes: list[tuple[int, int, int]],
    there: list[tuple[tuple[int, int, int], int]],
    asked: tuple[int, int, int],
    weights: tuple[int, int, int],
    ahead: int,
) -> None:
    """Against integers; any rows together, one by one, and as they would be after more pods of the class."""
    nodes = [node(f"n{i}", float(c), float(m), scalars={GPU: float(g)}) for i, (c, m, g) in enumerate(sizes)]

    def one(name: str, want: tuple[int, int, int], on: str = "") -> Pod:
        return pod(name, on, cpu=float(want[0]), memory=float(want[1]), scalars={GPU: float(want[2])})

    placed = [one(f"t{k}", want, f"n{i % len(nodes)}") for k, (want, i) in enumerate(there)]
    arguments = only(leastrequested=weights[0], mostrequested=weights[1], balancedresource=weights[2])
    pending = [one(f"p{k}", asked) for k in range(ahead + 1)]
    cluster = Cluster(nodes, [*placed, *pending], "nodeorder", "predicates", **arguments)

    def nonzero(want: tuple[int, int, int]) -> list[int]:
        return [want[0] or 100, want[1] or 200 * 2**20]

    expected = []
    for i, room in enumerate(sizes):
        here = [want for want, k in there if k % len(nodes) == i] + [asked] * ahead
        filled = [sum(nonzero(w)[d] for w in here) for d in range(2)]
        held = [sum(w[d] for w in here) for d in range(3)]
        expected.append(
            weights[0] * reference.least_allocated(nonzero(asked), filled, list(room[:2]))
            + weights[1] * reference.most_allocated(nonzero(asked), filled, list(room[:2]))
            + weights[2] * reference.balanced(list(asked), held, list(room))
        )
    cls, rows = cluster.task("p0").cls, cluster.rows(*(f"n{i}" for i in range(len(nodes)))).rows
    room_of = cluster.plugin("nodeorder").room
    virtual = NodeRows(cluster.tables, rows, after=np.full(len(rows), float(ahead)), cls=cls.row)
    assert room_of(cls, virtual).tolist() == expected
    view = cluster.plugin("predicates")
    for k in range(1, ahead + 1):
        for i in range(len(nodes)):
            row = cluster.row_of[f"p{k}"]
            view.on_allocate(TaskRun(cluster.tables, Placement([row], [int(rows[i])])))
            # the same pod on every node, so that each has as many more
            cluster.ssn.journal.put(cluster.tables.tasks["view_node"], row, -1)
    assert room_of(cls, NodeRows(cluster.tables, rows)).tolist() == expected
    one_by_one = [room_of(cls, NodeRows(cluster.tables, rows[i : i + 1])).tolist() for i in range(len(rows))]
    assert one_by_one == [[e] for e in expected]
