"""capacity: what it refuses and why, and how it counts along the tree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.rows import TaskRows
from pumice.columns.views import Queue
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.combine import Vote
from pumice.framework.plugin.filter_result import Unfit
from pumice.model.blockers import CAPABILITY, NO_HIERARCHY, BadQueue, QueueLimit, ResourceLimit
from pumice.testing.build import cluster, node, podgroup, pods, queue, resource, session
from pumice.testing.check import BESIDE, check_plugin
from pumice.volcano.status.rejections import text_of

FLAT = "actions: 'enqueue, allocate'\ntiers: [{plugins: [{name: capacity}]}]"
TREE = "actions: 'enqueue, allocate'\ntiers: [{plugins: [{name: capacity, enableHierarchy: true}]}]"


def opened(conf: str, *objects: Any) -> Session:
    return session(cluster(node("n", 16), *objects), conf)


def queue_of(ssn: Session, name: str) -> Queue:
    return Queue(ssn.tables, ssn.tables.queues.row_of[name])


def waiting(ssn: Session) -> TaskRows:
    tasks = ssn.tables.tasks
    rows = [row for row, each in enumerate(tasks.pods) if each is not None and not each.node_name]
    return TaskRows(ssn.tables, np.array(rows, dtype=np.int64))


@pytest.mark.parametrize(
    ("queues", "in_queue", "problem"),
    [
        pytest.param([queue("a")], "a", 'there is no queue "root"', id="no root"),
        pytest.param(
            [queue("root"), queue("a", parent="gone")],
            "a",
            'parent "gone" of queue "a" is not there',
            id="a parent that is not there",
        ),
        pytest.param(
            [queue("root"), queue("a"), queue("b", parent="a")],
            "a",
            'queue "a" of job ns/g has queues below it',
            id="a job in a queue with children",
        ),
        pytest.param([queue("root"), queue("a"), queue("b", parent="a")], "b", "", id="a tree"),
    ],
)
def test_without_a_tree_nothing_is_admitted_placed_or_taken(queues: list[Any], in_queue: str, problem: str) -> None:
    group = podgroup("g", 1, in_queue, min_resources=resource(1), phase="Inqueue")
    ssn = opened(TREE, queues, group, pods("g", 1))
    capacity, of = ssn.hooks.plugin("capacity"), queue_of(ssn, in_queue)
    assert capacity.problem == problem
    tasks = waiting(ssn)
    admits, places = capacity.job_enqueueable(of, resource_vector(ssn, 1)), capacity.allocatable(of, tasks)
    if problem:
        assert (admits, places, capacity.preemptive(of, tasks)) == (Vote.REJECT, Unfit(problem), False)
        assert BadQueue("", NO_HIERARCHY, detail=problem) in [entry.finding for entry in ssn.trace.entries]
    else:
        assert (admits, places) == (Vote.PERMIT, 1)


def resource_vector(ssn: Session, cpu: float) -> Any:
    return ssn.tables.axis.vector(resource(cpu))


def test_a_task_counts_in_its_queue_and_in_all_above_it_and_comes_off_again() -> None:
    queues = [queue("root"), queue("a", deserved=resource(4)), queue("b", parent="a", deserved=resource(2))]
    ssn = opened(TREE, queues, podgroup("g", 1, "b", phase="Inqueue"), pods("g", 2))
    capacity, before = ssn.hooks.plugin("capacity"), ssn.world.digest()
    with ssn.statement() as stmt:
        assert stmt.allocate(waiting(ssn).rows.tolist(), [0, 0]) is None
        held = {name: capacity.allocated.array[queue_of(ssn, name).row, 0] for name in ("root", "a", "b")}
        shares = {name: capacity.share.array[queue_of(ssn, name).row] for name in ("a", "b")}
        stmt.discard()
    assert held == {"root": 2000, "a": 2000, "b": 2000}
    assert shares == {"a": 0.5, "b": 1.0}
    assert ssn.world.digest() == before


@pytest.mark.parametrize(
    ("level", "may"), [pytest.param(0, False, id="for itself"), pytest.param(1, True, id="for its parent")]
)
def test_who_may_reclaim_for_an_ancestor(level: int, may: bool) -> None:
    queues = [queue("root"), queue("a", deserved=resource(4)), queue("b", parent="a")]
    conf = TREE.replace("enableHierarchy: true", f"enableHierarchy: true, arguments: {{ancestorReclaimLevel: {level}}}")
    ssn = opened(conf, queues, podgroup("g", 1, "b", phase="Inqueue"), pods("g", 1))
    assert ssn.hooks.plugin("capacity").preemptive(queue_of(ssn, "b"), waiting(ssn)) is may


def test_a_limit_that_is_reached_stops_an_admission_and_names_the_dimension() -> None:
    queues = [queue("root"), queue("a", capability=resource(3)), queue("b", parent="a")]
    ssn = opened(TREE, queues, podgroup("g", 1, "b", min_resources=resource(4)))
    answer = ssn.hooks.plugin("capacity").job_enqueueable(queue_of(ssn, "b"), resource_vector(ssn, 4))
    assert answer == QueueLimit("b", CAPABILITY, (ResourceLimit("cpu", 3000.0, 0.0, 0.0, 4000.0, 16000.0),))
    assert text_of(answer) == "queue resource quota insufficient: insufficient cpu"


@pytest.mark.parametrize("hierarchy", [False, True])
def test_it_keeps_the_contract_of_plugins(hierarchy: bool) -> None:
    check_plugin("capacity", switches={"enableHierarchy": hierarchy}, seeds=range(8))


def test_findings_about_several_jobs_are_recorded_in_one_order() -> None:
    """That their queue is full, and why: of each before the next, with a memory of earlier cycles as without."""
    beside = [name for name in BESIDE if name != "proportion"]
    check_plugin(
        "capacity",
        arguments={"ancestorReclaimLevel": 1},
        switches={"enableHierarchy": True},
        beside=beside,
        seeds=[16],
    )
