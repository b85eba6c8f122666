"""A nomination counts as long as its node has room for the pod, now or when what leaves has left."""

from __future__ import annotations

import pytest

from pumice.framework.cycle.session import Session
from pumice.placing.batch import placing_of
from pumice.placing.nominations import kept_nominations
from pumice.testing.build import cluster, node, pod, podgroup, session


def kept(ssn: Session) -> list[str]:
    rows = kept_nominations(ssn.tables.tasks, placing_of(ssn).feasible)
    return [ssn.tables.jobs.uids[row] for row in rows.tolist()]


@pytest.mark.parametrize(
    ("holder", "expected"),
    [
        pytest.param({}, [], id="others took the node"),
        pytest.param({"deletion": 1.0}, ["ns/waits"], id="what leaves makes room"),
        pytest.param({"phase": "Succeeded"}, ["ns/waits"], id="it is free"),
    ],
)
def test_a_nomination_is_kept_while_its_node_has_room(holder: dict[str, object], expected: list[str]) -> None:
    held = pod("holds-0", "holds", cpu=4, on="n0", **holder)  # type: ignore[arg-type]
    waits = [pod(f"waits-{i}", "waits", cpu=2, nominated_node="n0") for i in range(2)]
    groups = [podgroup("holds", phase="Running"), podgroup("waits", 2, phase="Inqueue")]
    ssn = session(cluster([node("n0", cpu=4), node("n1", cpu=4), *groups, held, *waits]))
    assert kept(ssn) == expected


def test_what_is_nominated_to_no_node_is_not_named() -> None:
    ssn = session(cluster([node("n0"), podgroup("waits", phase="Inqueue"), pod("waits-0", "waits")]))
    assert kept(ssn) == []
