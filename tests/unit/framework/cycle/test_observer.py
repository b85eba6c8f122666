"""A cycle tells its observer of each phase as it begins."""

from __future__ import annotations

from pumice.cycle import run_cycle
from pumice.framework.cycle.observer import unobserved
from pumice.framework.memo import Memo
from pumice.runtime.loop import ListPlanner
from pumice.testing.build import cluster, node, pod, podgroup, policy

PHASES = ["open", "opened", "enqueue", "allocate", "close", "closed"]
CONF = "actions: enqueue, allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]"


def test_phases_are_reported_in_order_and_change_nothing() -> None:
    store = cluster(node("n"), podgroup("g"), pod("p", "g"))
    reports: list[str] = []
    planners = ListPlanner(), ListPlanner()
    for planner, observe in zip(planners, (reports.append, unobserved), strict=True):
        run_cycle(store.snapshot(), policy(CONF), 0.0, planner, observe, Memo())
    assert [phase for phase in reports if " " not in phase] == PHASES
    assert "open gang" in reports, "and each plugin within"
    assert planners[0].taken == planners[1].taken != []
