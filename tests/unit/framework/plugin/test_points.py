"""One contract, several ways to write it: however a hook is written, the same question gets the same answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.dtypes import F64
from pumice.columns.job_rows import JobRows
from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.views import Job, Node, Queue, Task, TaskClass
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.framework.plugin.errors import PluginError, PluginFault
from pumice.framework.plugin.filter_result import FilterResult, Unfit
from pumice.framework.plugin.plugin import plugin
from pumice.placing.batch import placing_of
from pumice.testing.build import cluster, node, podgroup, pods, queue, run, session
from tests.unit.framework.kit import anew

CONF = "tiers: [{plugins: [{name: mine}]}]"


def opened(hook: Any, point: Any) -> Session:
    """Three nodes, two queues, and two gangs of two, under one plugin with one hook."""
    state = cluster(
        [node("n0", 1), node("n1", 4), node("n2", 8)],
        [queue("a", 1), queue("b", 2, creation=1.0)],
        [podgroup("g", 1, "a"), podgroup("h", 2, "b", creation=1.0), *pods("g", 2), *pods("h", 2, cpu=2)],
    )
    return session(state, CONF, plugins=[plugin("mine")(point(hook))])


def all_nodes(ssn: Session) -> NodeRows:
    return placing_of(ssn).feasible.all_nodes


# -- filters


def class_over_rows(ssn: Session, cls: TaskClass, nodes: NodeRows) -> FilterResult | None:
    return FilterResult.of(nodes.allocatable[:, 0] >= 4000, Unfit("small"))


def task_over_rows(ssn: Session, task: Task, nodes: NodeRows) -> FilterResult | None:
    return FilterResult.of(nodes.allocatable[:, 0] >= 4000, Unfit("small"))


def class_on_a_node(ssn: Session, cls: TaskClass, node: Node) -> Unfit | None:
    return Unfit("small") if node.allocatable[0] < 4000 else None


def task_on_a_node(ssn: Session, task: Task, node: Node) -> Unfit | None:
    return Unfit("small") if node.allocatable[0] < 4000 else None


FORMS = {"class": class_over_rows, "task": task_over_rows, "class_node": class_on_a_node, "task_node": task_on_a_node}


@pytest.mark.parametrize("form", FORMS)
def test_filters(form: str) -> None:
    ssn = opened(FORMS[form], points.predicate)
    of_class = ssn.ask(points.class_filters, Task(ssn.tables, 0).cls, all_nodes(ssn))
    of_task = ssn.ask(points.task_filters, Task(ssn.tables, 0), all_nodes(ssn))
    assert (len(of_class), len(of_task)) == ((1, 0) if "class" in form else (0, 1)), "each is asked where it belongs"
    (filter_result,) = of_class + of_task
    assert [[unfit.reason for unfit in filter_result.why[code]] for code in filter_result.codes] == [["small"], [], []]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [1, 3], ids=["one pod", "a gang"])
def test_a_filter_decides_the_same_in_every_form(form: str, count: int) -> None:

    machines = [node("n0", 2), node("n1", 4), node("n2", 4)]
    state = cluster(machines, podgroup("g", count, phase="Inqueue"), pods("g", count))
    conf = "tiers: [{plugins: [{name: mine}, {name: binpack}]}]"
    mine = plugin("mine")(points.predicate(anew(FORMS[form])))
    ran = run(state, conf, actions="allocate", plugins=[mine])
    assert list(ran.binds.values()) == ["n1"] * count


# -- scores


def score_class_over_rows(ssn: Session, cls: TaskClass, nodes: NodeRows) -> F64 | None:
    return nodes.allocatable[:, 0] / 1000


def score_task_over_rows(ssn: Session, task: Task, nodes: NodeRows) -> F64 | None:
    return nodes.allocatable[:, 0] / 1000


def score_class_on_a_node(ssn: Session, cls: TaskClass, node: Node) -> float:
    return float(node.allocatable[0] / 1000)


def score_task_on_a_node(ssn: Session, task: Task, node: Node) -> float:
    return float(node.allocatable[0] / 1000)


@pytest.mark.parametrize(
    "hook", [score_class_over_rows, score_task_over_rows, score_class_on_a_node, score_task_on_a_node]
)
def test_scores(hook: Any) -> None:
    ssn = opened(anew(hook), points.node_order)
    task = Task(ssn.tables, 0)
    found = ssn.ask(points.class_scores, task.cls, all_nodes(ssn))
    found = ssn.ask(points.task_scores, task, all_nodes(ssn), found)
    assert np.asarray(found).tolist() == [1, 4, 8]


def test_scores_of_both_points_add_up() -> None:
    @plugin("mine")
    class Both:
        def __init__(self, ssn: Session) -> None:
            pass

        @points.node_order
        def one(self, cls: TaskClass, nodes: NodeRows) -> F64:
            return np.arange(3.0)

        @points.batch_node_order
        def other(self, cls: TaskClass, nodes: NodeRows) -> F64:
            return np.full(3, 10.0)

    ssn = session(cluster(node("n0"), node("n1"), node("n2"), podgroup("g"), pods("g", 1)), CONF, plugins=[Both])
    assert np.asarray(ssn.ask(points.class_scores, Task(ssn.tables, 0).cls, all_nodes(ssn))).tolist() == [10, 11, 12]


# -- orders


def job_key(ssn: Session, jobs: JobRows) -> Any:
    return -jobs.tables.jobs.min_available[jobs.rows]


def job_pair(ssn: Session, left: Job, right: Job) -> int:
    return right.min_available - left.min_available


def queue_key(ssn: Session, queue: Queue) -> Any:
    return (-queue.obj.weight, 0)


def queue_pair(ssn: Session, left: Queue, right: Queue) -> int:
    return right.obj.weight - left.obj.weight


def task_key(ssn: Session, tasks: TaskRows) -> Any:
    return -tasks.req[:, 0]


def task_pair(ssn: Session, left: Task, right: Task) -> int:
    return int(np.sign(right.req[0] - left.req[0]))


@pytest.mark.parametrize(
    ("point", "question", "handle", "hook"),
    [
        pytest.param(points.job_order, points.jobs_compared, Job, job_key, id="jobs, a key"),
        pytest.param(points.job_order, points.jobs_compared, Job, job_pair, id="jobs, a pair"),
        pytest.param(points.queue_order, points.queues_compared, Queue, queue_key, id="queues, a key"),
        pytest.param(points.queue_order, points.queues_compared, Queue, queue_pair, id="queues, a pair"),
        pytest.param(points.task_order, points.tasks_compared, Task, task_key, id="tasks, a key"),
        pytest.param(points.task_order, points.tasks_compared, Task, task_pair, id="tasks, a pair"),
    ],
)
def test_two_are_compared_however_the_order_is_written(point: Any, question: Any, handle: Any, hook: Any) -> None:
    """The second of each kind goes first: the gang with the larger minimum, the queue with the larger weight, the task
    that asks for more."""
    ssn = opened(anew(hook), point)
    first, second = (0, 1) if handle is not Task else (ssn.tables.jobs.tasks[0][0], ssn.tables.jobs.tasks[1][0])
    one, other = handle(ssn.tables, int(first)), handle(ssn.tables, int(second))
    found = [ssn.ask(question, *pair) for pair in ((one, other), (other, one), (one, one))]
    assert [int(np.sign(each)) for each in found] == [1, -1, 0]


# -- what a queue takes on, and whether to look at nodes at all


def refuses_class(ssn: Session, cls: TaskClass) -> Unfit | None:
    return Unfit("too much") if cls.req[0] > 1000 else None


def refuses_task(ssn: Session, task: Task) -> Unfit | None:
    return Unfit("too much") if task.req[0] > 1000 else None


@pytest.mark.parametrize("hook", [refuses_class, refuses_task])
def test_a_task_is_refused_by_its_class_or_for_itself(hook: Any) -> None:
    ssn = opened(anew(hook), points.pre_predicate)
    small, large = (Task(ssn.tables, int(ssn.tables.jobs.tasks[job][0])) for job in (0, 1))
    assert (ssn.ask(points.task_refused, small), ssn.ask(points.task_refused, large)) == (None, Unfit("too much"))


# -- hooks added when the session opens


def opened_with(point: Any, hook: Any) -> Session:
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
        return False


def ready(job: Job) -> bool:
    return False


@pytest.mark.parametrize(
    "hook", [pytest.param(ready, id="a function takes no session"), pytest.param(Methods().ready, id="a method")]
)
def test_a_hook_may_be_added(hook: Any) -> None:
    ssn = opened_with(points.job_ready, hook)
    assert [[(each.plugin, each.form, each.call) for each in tier] for tier in ssn.hooks.tiers(points.job_ready)] == [
        [("late", "job", hook)]
    ]


def test_a_wrong_form_that_is_added_names_plugin_and_point() -> None:

    with pytest.raises(PluginFault) as raised:
        opened_with(points.job_order, ready)
    assert raised.value.plugin == "late"
    assert "plugin late, point job_order: found parameters (Job), wanted (JobRows) or (Job, Job)" in str(raised.value)


def test_later_it_is_too_late() -> None:
    ssn = opened_with(points.job_ready, ready)
    with pytest.raises(PluginError, match=r"hook at point job_valid added outside of on_session_open"):
        ssn.add(points.job_valid, ready)
