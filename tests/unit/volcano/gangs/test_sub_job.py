"""Gangs for which too few nodes are found: what was placed is taken back, and is said of each."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.framework.memo import Memo
from pumice.model.events import Object
from pumice.reasons.nearest import NearestBlockers, why_pods_wait
from pumice.testing.build import Ran, cluster, node, podgroup, pods, queue, resource, run
from tests.unit.volcano.evicting import gang as running_gang

CONF = """
actions: allocate
tiers:
- plugins: [{name: gang}, {name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}]
"""


def gang(name: str, count: int, minimum: int, of: str, **more: Any) -> list[Object]:
    return [podgroup(name, minimum, of, phase="Inqueue"), *pods(name, count, **more)]


def gangs(count: int, minimum: int, **more: Any) -> list[Object]:
    """One like the other, each in a queue of its own, and three nodes with room for six pods of one cpu."""
    nodes = [node(f"n{n}", cpu) for n, cpu in enumerate((3, 2, 1))]
    return [*nodes, *(each for of in "abc" for each in (queue(of, **more), *gang(f"g{of}", count, minimum, of)))]


def all_that_is_said(ran: Ran) -> list[Any]:
    outcome = ran.outcome
    undone = [outcome.trace.undone_of(job) for job in outcome.live_jobs.nonzero()[0].tolist()]
    traces = [last_trial and [each.tolist() for each in last_trial] for last_trial in undone]
    reports = outcome.groups, list(outcome.notices()), outcome.entries, traces
    return [ran.decisions, *reports, NearestBlockers(outcome).by_key(), why_pods_wait(NearestBlockers(outcome))]


@pytest.mark.parametrize(
    ("objects", "found"),
    [
        pytest.param(gangs(8, 8), 6, id="the nodes are too few"),
        pytest.param(gangs(8, 8, capability=resource(4, "99Gi")), 4, id="the queue gives too little"),
        pytest.param(gangs(6, 6, capability=resource(4, "99Gi")), 4, id="the queue does, the nodes would do"),
        pytest.param(gangs(9, 7), 6, id="it may do without some, not so many"),
        pytest.param(gangs(9, 7, capability=resource(4, "99Gi")), 4, id="the queue gives less than it may do with"),
        pytest.param(
            [*gangs(8, 8), *running_gang("old", 1, on="n0", deletion=5.0)], 6, id="one pod is leaving: its room counts"
        ),
    ],
)
def test_a_gang_for_which_too_little_is_found_leaves_what_was_taken_back(objects: list[Object], found: int) -> None:
    """Of each of three gangs in queues of their own; the same with a memo and without."""
    ran = run(cluster(*objects), CONF, memo=Memo())
    jobs = [row for row, name in enumerate(ran.outcome.tables.jobs.uids) if name in ("ns/ga", "ns/gb", "ns/gc")]
    undone = [ran.outcome.trace.undone_of(row) for row in jobs]
    assert not ran.binds
    assert [int((each.status >= 0).sum()) for each in undone if each is not None] == [found] * 3
    assert all_that_is_said(ran) == all_that_is_said(run(cluster(*objects), CONF, memo=Memo(keeps=False)))
