"""overcommit: admit somewhat more than the cluster has."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.columns.views import Job, Queue
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.combine import Vote
from pumice.model.blockers import OVERCOMMIT, QueueLimit, ResourceLimit
from pumice.model.blockers.changes import RaiseLimit
from pumice.testing.build import cluster, node, podgroup, pods, resource, run, session
from pumice.volcano.status.rejections import text_of
from tests.unit.volcano.evicting import LEVELS, gang

OVER = "resource in cluster is overused: overused cpu"


def opened(*objects: Any, factor: float = 1.5) -> Session:
    """On a node of ten cores."""
    conf = f"tiers: [{{plugins: [{{name: overcommit, arguments: {{overcommit-factor: {factor}}}}}]}}]"
    waiting = podgroup("w", 1, min_resources=resource(3), creation=9.0)
    return session(cluster(node("n", 10), waiting, *objects), conf)


def answer(ssn: Session, cpu: float) -> Vote | str:
    asked = ssn.tables.axis.vector(resource(cpu))
    found: Vote | QueueLimit = ssn.hooks.plugin("overcommit").job_enqueueable(Queue(ssn.tables, 0), asked)
    return text_of(found) if isinstance(found, QueueLimit) else found


ADMITTED = podgroup("old", 1, phase="Inqueue", min_resources=resource(5))
RUNNING = [podgroup("old", 1, phase="Running", min_resources=resource(6)), pods("old", 1, cpu=4, on="n")]


@pytest.mark.parametrize(
    ("objects", "factor", "most"),
    [
        pytest.param([], 1.5, 15, id="times the factor"),
        pytest.param([], 0.5, 12, id="a factor below 1 is 1.2"),
        pytest.param([pods("old", 1, cpu=4, on="n")], 1.5, 11, id="less what is in use"),
        pytest.param([ADMITTED], 1.5, 10, id="less what was promised"),
        pytest.param(RUNNING, 1.5, 9, id="less what a running job still wants"),
    ],
)
def test_how_much_is_admitted(objects: list[Any], factor: float, most: int) -> None:
    ssn = opened(*objects, factor=factor)
    assert (answer(ssn, most), answer(ssn, most + 1)) == (Vote.PERMIT, OVER)


def test_a_refusal_has_the_amounts() -> None:
    ssn = opened(ADMITTED, pods("old", 1, cpu=2, on="n"))
    asked = ssn.tables.axis.vector(resource(9))
    found = ssn.hooks.plugin("overcommit").job_enqueueable(Queue(ssn.tables, 0), asked)
    assert found == QueueLimit("", OVERCOMMIT, (ResourceLimit("cpu", 15_000.0, 2_000.0, 5_000.0, 9_000.0, 10_000.0),))
    assert found.lift == (RaiseLimit("", OVERCOMMIT, "cpu", 1_000.0),)


def test_who_is_admitted_counts_from_then_on() -> None:
    ssn = opened()
    assert answer(ssn, 15) is Vote.PERMIT
    row = list(ssn.tables.jobs.uids).index("ns/w")
    ssn.hooks.plugin("overcommit").job_enqueued(Job(ssn.tables, row))
    assert (answer(ssn, 12), answer(ssn, 15)) == (Vote.PERMIT, OVER)


@pytest.mark.parametrize(
    ("factor", "evicted"),
    [
        pytest.param(1.2, [], id="not admitted: what runs counts in full"),
        pytest.param(2.0, ["ns/low-1", "ns/low-0"], id="admitted beside what runs, and others leave"),
    ],
)
def test_whom_it_does_not_admit_nobody_leaves_for(factor: float, evicted: list[str]) -> None:
    """The node is full: a job that would preempt must fit what the factor adds."""
    conf = f"""
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: overcommit, arguments: {{overcommit-factor: {factor}}}}}]
- plugins: [{{name: predicates}}]
"""
    coming = podgroup("high", 2, min_resources=resource(2), priority_class="high")
    state = cluster(LEVELS, node("n", 2), gang("low", 2, on="n"), coming, pods("high", 2, priority=9))
    assert run(state, conf, actions="enqueue, allocate, preempt").evicted == evicted
