"""proportion: queues share the cluster by weight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.rows import Candidates, TaskRows
from pumice.columns.views import Queue, Task
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.combine import Vote
from pumice.model.blockers import CAPABILITY, QueueLimit, ResourceLimit
from pumice.testing.build import cluster, node, podgroup, pods, queue, resource, session

CONF = "tiers: [{plugins: [{name: proportion}]}]"


def opened(*queues: Any, runs: int = 0, waits: int = 12) -> Session:
    """Twelve cores; in each queue a job of which so many pods of a core run and wait."""
    objects: list[Any] = [node("n", 12, "48Gi")]
    for each in queues:
        name = each.name
        here = runs if name == "a" else 0
        objects += [podgroup(name, 1, name, phase="Running"), *pods(name, here, on="n"), *pods(name, waits, first=here)]
    return session(cluster(*queues, *objects), CONF)


def of(ssn: Session, name: str) -> Queue:
    return Queue(ssn.tables, ssn.tables.queues.row_of[name])


def tasks_of(ssn: Session, name: str, *, running: bool) -> np.ndarray:
    pods_of = ssn.tables.tasks.pods
    found = [
        r
        for r, p in enumerate(pods_of)
        if p is not None and p.group_key == f"ns/{name}" and bool(p.node_name) is running
    ]
    return np.array(found)


@pytest.mark.parametrize(
    ("a", "b", "deserved"),
    [
        pytest.param({}, {}, (6, 6), id="equal weights"),
        pytest.param({"weight": 2}, {}, (8, 4), id="twice the weight"),
        pytest.param({"capability": resource(2, "48Gi")}, {}, (2, 10), id="no more than its capability"),
        pytest.param({"guarantee": resource(9)}, {}, (9, 3), id="no less than its guarantee"),
    ],
)
def test_what_queues_deserve(a: dict[str, Any], b: dict[str, Any], deserved: tuple[int, int]) -> None:
    ssn = opened(queue("a", **a), queue("b", **b))
    column = ssn.hooks.plugin("proportion").deserved.array
    assert tuple(column[of(ssn, name).row, 0] / 1000 for name in "ab") == deserved


def test_a_queue_without_jobs_deserves_nothing_and_takes_from_nobody() -> None:
    idle = queue("idle", weight=5, guarantee=resource(3))
    jobs = [(podgroup(name, 1, name, phase="Running"), *pods(name, 12)) for name in "ab"]
    ssn = session(cluster(node("n", 12, "48Gi"), queue("a"), queue("b"), idle, *(o for job in jobs for o in job)), CONF)
    plugin = ssn.hooks.plugin("proportion")
    deserved = {name: plugin.deserved.array[of(ssn, name).row, 0] / 1000 for name in ("a", "b", "idle")}
    assert deserved == {"a": 6, "b": 6, "idle": 0}
    assert plugin.takes_part[of(ssn, "idle").row] == 0


@pytest.mark.parametrize(("runs", "fit", "overused"), [(0, 6, False), (4, 2, False), (6, 0, True), (8, 0, True)])
def test_a_queue_takes_on_as_much_as_it_deserves(runs: int, fit: int, overused: bool) -> None:
    ssn = opened(queue("a"), queue("b"), runs=runs)
    plugin, tasks = ssn.hooks.plugin("proportion"), TaskRows(ssn.tables, tasks_of(ssn, "a", running=False))
    assert plugin.allocatable(of(ssn, "a"), tasks) == fit
    one = TaskRows(ssn.tables, tasks.rows[:1])
    assert plugin.preemptive(of(ssn, "a"), one) is (fit > 0)
    assert plugin.overused(of(ssn, "b")) is False
    assert (
        bool(np.all(plugin.allocated.array[of(ssn, "a").row, :1] >= plugin.deserved.array[of(ssn, "a").row, :1]))
        is overused
    )


def test_a_closed_queue_takes_on_nothing() -> None:
    ssn = opened(queue("a", state="Closed"), queue("b"))
    plugin, tasks = ssn.hooks.plugin("proportion"), TaskRows(ssn.tables, tasks_of(ssn, "a", running=False))
    asked = ssn.tables.axis.vector(resource(1))
    assert plugin.allocatable(of(ssn, "a"), tasks) == 0
    assert not plugin.preemptive(of(ssn, "a"), tasks)
    assert plugin.job_enqueueable(of(ssn, "a"), asked) is Vote.REJECT


def test_what_a_queue_has_beyond_its_share_may_be_taken() -> None:
    ssn = opened(queue("a"), queue("b"), runs=8)
    reclaimer = Task(ssn.tables, int(tasks_of(ssn, "b", running=False)[0]))
    candidates = Candidates(ssn.tables, tasks_of(ssn, "a", running=True))
    assert ssn.hooks.plugin("proportion").reclaimable(reclaimer, candidates).sum() == 2


@pytest.mark.parametrize(
    ("cpu", "says"),
    [
        pytest.param(4, Vote.PERMIT, id="within"),
        pytest.param(
            5, QueueLimit("a", CAPABILITY, (ResourceLimit("cpu", 4000.0, 0.0, 0.0, 5000.0, 12000.0),)), id="above"
        ),
    ],
)
def test_a_queue_admits_up_to_its_capability(cpu: int, says: Vote | QueueLimit) -> None:
    ssn = opened(queue("a", capability=resource(4, "48Gi")), queue("b"))
    assert ssn.hooks.plugin("proportion").job_enqueueable(of(ssn, "a"), ssn.tables.axis.vector(resource(cpu))) == says


def test_the_smaller_share_comes_first_but_after_priority() -> None:
    ssn = opened(queue("a"), queue("b"), runs=4)
    key = ssn.hooks.plugin("proportion").queue_order
    assert key(of(ssn, "b")) < key(of(ssn, "a"))
    ssn = opened(queue("a", priority=1), queue("b"), runs=4)
    key = ssn.hooks.plugin("proportion").queue_order
    assert key(of(ssn, "a")) < key(of(ssn, "b"))
