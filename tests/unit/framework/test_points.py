"""The points: which there are, how each combines, what switches it off, and the shapes its hooks may have."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import pytest

from pumice.columns.dtypes import F64
from pumice.columns.rows import JobRows, NodeRows
from pumice.columns.views import Job, Node, Queue, Task, TaskClass
from pumice.framework import points
from pumice.framework.errors import PluginError
from pumice.framework.plugin import plugin
from pumice.framework.points import FEATURE_SWITCHES, HOOKS_ATTRIBUTE, POINTS, SWITCHES, Point
from pumice.framework.session import Session
from pumice.testing.build import cluster, session

#: Written from the table of Volcano's extension points, never from ours: point, switches of which one must be on (none:
#: always on), how its answers are combined. (A walk for the first answer is a walk for the first failure.)
VOLCANO = {
    "job_order": ("JobOrder", "first_nonzero"),
    "queue_order": ("QueueOrder", "first_nonzero"),
    "victim_queue_order": ("", "first_nonzero"),
    "task_order": ("TaskOrder", "first_nonzero"),
    "sub_job_order": ("SubJobOrder", "first_nonzero"),
    "cluster_order": ("ClusterOrder", "first_nonzero"),
    "predicate": ("Predicate", "first_failure"),
    "pre_predicate": ("Predicate", "first_failure"),
    "node_order": ("NodeOrder", "total"),
    "batch_node_order": ("NodeOrder", "total"),
    "node_map": ("NodeOrder", "total"),
    "node_reduce": ("NodeOrder", "total"),
    "best_node": ("BestNode", "first_failure"),
    "hyper_node_order": ("HyperNodeOrder", "total"),
    "hyper_node_gradient_for_job": ("HyperNodeGradient", "first_registered"),
    "hyper_node_gradient_for_sub_job": ("HyperNodeGradient", "first_registered"),
    "preemptable": ("Preemptable", "intersect"),
    "reclaimable": ("Reclaimable", "intersect"),
    "unified_evictable": ("", "intersect"),
    "overused": ("Overused", "any_of"),
    "preemptive": ("Preemptive", "all_of"),
    "allocatable": ("Allocatable", "all_of"),
    "job_ready": ("JobReady", "most_missing"),
    "sub_job_ready": ("SubJobReady", "most_missing"),
    "job_pipelined": ("JobPipelined", "vote"),
    "sub_job_pipelined": ("SubJobPipelined", "vote"),
    "job_enqueueable": ("JobEnqueued", "vote"),
    "job_enqueued": ("JobEnqueued", "notify"),
    "job_starving": ("JobStarving", "first_tier_agrees"),
    "job_valid": ("", "first_failure"),
    "target_job": ("TargetJob", "first_registered"),
    "reserved_nodes": ("ReservedNodes", "notify"),
    "victim_tasks": ("Victim", "union"),
    "simulate_remove_task": ("Preemptable Allocatable", "first_failure"),
    "simulate_add_task": ("Preemptable Allocatable", "first_failure"),
    "simulate_predicate": ("Predicate", "first_failure"),
    "simulate_allocatable": ("Allocatable", "all_of"),
    "on_allocate": ("", "notify"),
    "on_deallocate": ("", "notify"),
    "bind_context": ("", "merge"),
    "session_close": ("", "notify"),  # its OnSessionClose, which is no extension point there
}


@pytest.mark.parametrize("name", VOLCANO)
def test_every_point_of_volcano(name: str) -> None:
    point, (switches, combinator) = POINTS[name], VOLCANO[name]
    assert (point.name, point.any_switch) == (name, tuple(switches.split()))
    assert point.combinator.__name__ == combinator
    assert point is getattr(points, name)


def test_there_are_no_others() -> None:
    assert POINTS.keys() == VOLCANO.keys()


def test_switches_are_on_when_not_written_but_for_two() -> None:
    assert SWITCHES.keys() - {"Hierarchy"} == {switch for each, _ in VOLCANO.values() for switch in each.split()}
    assert {switch for switch, default in SWITCHES.items() if not default} == {"ClusterOrder", "Hierarchy"}
    assert FEATURE_SWITCHES == {"Hierarchy": False}


# -- shapes


def over_rows(ssn: Session, cls: TaskClass, nodes: NodeRows) -> Any: ...
def over_rows_of_a_task(ssn: Session, task: Task, nodes: NodeRows) -> Any: ...
def one_node(ssn: Session, cls: TaskClass, node: Node) -> Any: ...
def one_node_of_a_task(ssn: Session, task: Task, node: Node) -> Any: ...
def with_arguments(ssn: Session, cls: TaskClass, node: Node, *, weight: float = 1.0) -> Any: ...
def two_jobs(ssn: Session, left: Job, right: Job) -> Any: ...
def many_jobs(ssn: Session, jobs: JobRows) -> Any: ...
def a_job(ssn: Session, job: Job) -> Any: ...
def an_amount(ssn: Session, queue: Queue, ask: F64) -> Any: ...
def no_parameter(ssn: Session) -> Any: ...
def bare(ssn, cls, node: Node): ...  # as in a first draft
def swapped(ssn: Session, nodes: NodeRows, cls: TaskClass) -> Any: ...


def unmarked(hook: Any) -> Any:
    """The same function anew, since a point marks the one that it is given."""
    twin = FunctionType(hook.__code__, {}, hook.__name__)
    twin.__annotations__ = hook.__annotations__
    return twin


@pytest.mark.parametrize(
    ("point", "hook", "form"),
    [
        pytest.param(points.predicate, over_rows, "class", id="a class over rows"),
        pytest.param(points.predicate, over_rows_of_a_task, "task", id="a task over rows"),
        pytest.param(points.predicate, one_node, "class_node", id="a class on a node"),
        pytest.param(points.predicate, one_node_of_a_task, "task_node", id="a task on a node"),
        pytest.param(points.node_order, with_arguments, "class_node", id="keyword parameters are no part of it"),
        pytest.param(points.job_order, two_jobs, "compare", id="a comparison"),
        pytest.param(points.job_order, many_jobs, "key", id="a key"),
        pytest.param(points.job_enqueueable, a_job, "job", id="a job"),
        pytest.param(points.job_enqueueable, an_amount, "amount", id="an amount"),
        pytest.param(points.session_close, no_parameter, "none", id="nothing"),
    ],
)
def test_a_shape_has_a_name(point: Point, hook: Any, form: str) -> None:
    hook = unmarked(hook)
    assert point(hook) is hook, "the function stays the function that it is"
    assert getattr(hook, HOOKS_ATTRIBUTE) == [(point, form)]


@pytest.mark.parametrize(
    ("point", "hook", "problem"),
    [
        pytest.param(
            points.job_ready,
            two_jobs,
            "hook two_jobs at point job_ready: found parameters (Job, Job), wanted (Job)",
            id="too many",
        ),
        pytest.param(
            points.job_order,
            a_job,
            "hook a_job at point job_order: found parameters (Job), wanted (Job, Job) or (JobRows)",
            id="too few",
        ),
        pytest.param(
            points.batch_node_order,
            swapped,
            "hook swapped at point batch_node_order: found parameters (NodeRows, TaskClass),"
            " wanted (TaskClass, NodeRows) or (Task, NodeRows)",
            id="order",
        ),
        pytest.param(
            points.node_map,
            bare,
            "hook bare at point node_map: found parameters (?, Node), wanted (Task, Node)",
            id="not annotated",
        ),
        pytest.param(
            points.session_close,
            a_job,
            "hook a_job at point session_close: found parameters (Job), wanted ()",
            id="nothing is wanted",
        ),
    ],
)
def test_a_shape_that_the_point_does_not_have(point: Point, hook: Any, problem: str) -> None:
    hook = unmarked(hook)
    with pytest.raises(PluginError) as raised:
        point(hook)
    assert str(raised.value) == problem
    assert not hasattr(hook, HOOKS_ATTRIBUTE)


def test_one_function_at_several_points() -> None:
    @points.job_ready
    @points.job_starving
    def hook(ssn: Session, job: Job) -> bool:
        return True

    assert getattr(hook, HOOKS_ATTRIBUTE) == [(points.job_starving, "job"), (points.job_ready, "job")]


# -- hooks added when the session opens


def opened_with(point: Point, hook: Any) -> Session:
    """A session in which plugin ``late`` adds the hook."""

    @plugin("late")
    class Late:
        def __init__(self, ssn: Session) -> None:
            pass

        def on_session_open(self, ssn: Session) -> None:
            ssn.add(point, hook)

    return session(cluster(), "tiers: [{plugins: [{name: late}]}]", plugins=[Late])


class Methods:
    def ready(self, job: Job) -> bool:
        return True


def ready(job: Job) -> bool:
    return True


@pytest.mark.parametrize(
    "hook", [pytest.param(ready, id="a function takes no session"), pytest.param(Methods().ready, id="a method")]
)
def test_a_hook_may_be_added(hook: Any) -> None:
    assert opened_with(points.job_ready, hook).tiers(points.job_ready) == [[("job", hook)]]


def test_a_wrong_shape_names_plugin_and_point() -> None:
    with pytest.raises(PluginError) as raised:
        opened_with(points.job_order, ready)
    assert str(raised.value) == ("plugin late, point job_order: found parameters (Job), wanted (Job, Job) or (JobRows)")


def test_later_it_is_too_late() -> None:
    ssn = opened_with(points.job_ready, ready)
    with pytest.raises(PluginError, match=r"hook at point job_starving added outside of on_session_open"):
        ssn.add(points.job_starving, ready)
