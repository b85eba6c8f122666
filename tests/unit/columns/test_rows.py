"""Rows together: what is read of them, and hypothetical rows against rows on which the tasks really are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.column import Column
from pumice.columns.dtypes import fits
from pumice.columns.job_rows import JobRows
from pumice.columns.nodes import FUTURE, IDLE
from pumice.columns.rows import NodeRows, TaskRows
from pumice.framework.cycle.session import Session
from pumice.model.status import TaskStatus
from pumice.testing.build import cluster, node, pod, podgroup, pods, queue, session

CONF = "tiers: [{plugins: [{name: predicates}]}]"  # which moves the view as tasks are placed


def opened(count: int = 3) -> Session:
    """Three nodes, one of them with a GPU, one busy, and a gang of 1 cpu each."""
    machines = [node("n0", 4), node("n1", 8, gpu=1), node("n2", 8)]
    busy = pod("busy", "old", cpu=3, on="n2")
    return session(cluster(machines, podgroup("old"), busy, podgroup("g"), pods("g", count)), CONF)


def placed(ssn: Session, at: dict[int, int]) -> None:
    """Put so many tasks of the gang on each node."""
    rows = iter(ssn.tables.jobs.tasks[1].tolist())
    nodes = [row for row, count in at.items() for _ in range(count)]
    stmt = ssn.statement()
    stmt.allocate([next(rows) for _ in nodes], nodes)
    stmt.keep_uncommitted()


def gang_class(ssn: Session) -> int:
    return int(ssn.tables.tasks.cls[ssn.tables.jobs.tasks[1][0]])


READ = {
    "idle": lambda nodes: nodes.idle,
    "used": lambda nodes: nodes.used,
    "future": lambda nodes: nodes.future,
    "allocatable": lambda nodes: nodes.allocatable,
    "view": lambda nodes: nodes.view_by_amount.T,
    "number of pods": lambda nodes: nodes.view_pods,
    "idle, node by node": lambda nodes: [node.idle for node in nodes],
    "used, node by node": lambda nodes: [node.used for node in nodes],
    "future, node by node": lambda nodes: [node.future for node in nodes],
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
def test_rows_as_they_would_be_are_the_rows_as_they_then_are(read: Any) -> None:
    """Row 1 after no task more, row 0 after two, row 1 once more after one."""
    ssn = opened()
    rows, after = np.array([1, 0, 1]), np.array([0.0, 2.0, 1.0])
    foreseen = np.array(read(NodeRows(ssn.tables, rows, after=after, cls=gang_class(ssn))))
    now = np.array(read(NodeRows(ssn.tables, rows)))
    assert (foreseen[0] == now[0]).all()
    placed(ssn, {0: 2, 1: 1})
    then = np.array(read(NodeRows(ssn.tables, rows)))
    assert (foreseen[1:] == then[1:]).all()


def test_a_column_of_a_plugin_is_read_as_it_would_be_where_it_says_what_a_task_adds() -> None:
    ssn = opened()
    kept = Column(np.array([10.0, 20.0, 30.0]), 1)
    rows = NodeRows(ssn.tables, np.array([2, 0]), after=np.array([3.0, 0.0]), cls=gang_class(ssn))
    assert rows.read(kept).tolist() == [30, 10]
    kept.per_task = np.full(ssn.tables.classes.capacity, 2.0)
    assert rows.read(kept).tolist() == [36, 10]
    assert NodeRows(ssn.tables, np.array([2, 0])).read(kept).tolist() == [30, 10]


@pytest.mark.parametrize("book", [IDLE, FUTURE], ids=["idle", "future"])
@pytest.mark.parametrize(
    ("ask", "fitting"),
    [
        pytest.param({"cpu": 1}, [0, 1, 2], id="little"),
        pytest.param({"cpu": 4}, [0, 1, 2], id="as much as is there"),
        pytest.param({"cpu": 6}, [1], id="more than is left of one"),
        pytest.param({"cpu": 9}, [], id="more than any has"),
        pytest.param({"memory": "33Gi"}, [], id="more memory than any has"),
        pytest.param({"gpu": 1}, [1], id="a device"),
        pytest.param({"cpu": 0, "memory": 0}, [0, 1, 2], id="nothing"),
    ],
)
def test_where_there_is_room(ask: dict[str, Any], fitting: list[int], book: int) -> None:
    """The same as ``fits`` says of the amounts."""
    machines = [node("n0", 4), node("n1", 8, gpu=1), node("n2", 8)]
    ssn = session(cluster(machines, pod("busy", on="n2", cpu=3), podgroup("g"), pod("p", "g", **ask)), CONF)
    row = next(r for r, p in enumerate(ssn.tables.tasks.pods) if p is not None and p.name == "p")
    cls = int(ssn.tables.tasks.cls[row])
    rows = NodeRows(ssn.tables, np.arange(3))
    assert rows.has_room(cls, book).nonzero()[0].tolist() == fitting
    assert fits(ssn.tables.classes.req[cls], ssn.tables.nodes.books[:, book]).nonzero()[0].tolist() == fitting


def test_room_is_what_would_be_left() -> None:
    ssn = opened()
    after = np.array([3.0, 4.0, 5.0])
    rows = NodeRows(ssn.tables, np.array([0, 0, 0]), after=after, cls=gang_class(ssn))
    assert rows.has_room(gang_class(ssn), IDLE).tolist() == [True, False, False]


@pytest.mark.parametrize("rows", [[], [1], [2, 0, 2]])
def test_going_through_rows_gives_a_handle_each(rows: list[int]) -> None:
    ssn = opened()
    found = NodeRows(ssn.tables, np.array(rows, dtype=np.int64))
    assert len(found) == len(rows)
    assert [each.row for each in found] == rows
    ahead = NodeRows(ssn.tables, np.array(rows, dtype=np.int64), after=np.ones(len(rows)), cls=gang_class(ssn))
    assert [each.name for each in ahead] == [each.name for each in found]
    assert [each.used[0] - plain.used[0] for each, plain in zip(ahead, found, strict=True)] == [1000] * len(rows)


# -- jobs and tasks


def test_rows_of_jobs() -> None:
    gangs = [podgroup("a", 1, creation=2.0), podgroup("b", 2, creation=1.0)]
    ssn = session(cluster(node("n"), gangs, pods("a", 1, on="n"), pods("b", 1, on="n")), "tiers: []")
    jobs = JobRows(ssn.tables, np.array([1, 0]))
    assert (jobs.creation.tolist(), jobs.priority.tolist(), jobs.ready.tolist()) == ([1, 2], [0, 0], [False, True])
    assert len(jobs) == 2


def test_rows_of_tasks() -> None:
    ssn = session(
        cluster(node("n"), queue("q"), podgroup("g", queue="q"), pod("p", "g", cpu=2, priority=7), pod("loose")),
        "tiers: []",
    )
    names = {p.name: row for row, p in enumerate(ssn.tables.tasks.pods) if p is not None}
    tasks = TaskRows(ssn.tables, np.array([names["loose"], names["p"]]))
    assert [p.name for p in tasks.pods] == [task.pod.name for task in tasks] == ["loose", "p"]
    assert (tasks.priority.tolist(), tasks.job.tolist(), tasks.queue.tolist()) == ([1, 7], [-1, 0], [-1, 0])
    assert tasks.req[:, 0].tolist() == [1000, 2000]


@pytest.mark.parametrize(("cpus", "equal"), [((1, 1), True), ((1, 2), False), ((3,), True)])
def test_whether_tasks_are_equal(cpus: tuple[int, ...], equal: bool) -> None:
    state = cluster(podgroup("g"), [pod(f"p{i}", "g", cpu=cpu) for i, cpu in enumerate(cpus)])
    tables = state.snapshot().tables
    assert TaskRows(tables, tables.jobs.tasks[0]).equal is equal


def test_names_and_labels_of_rows() -> None:
    machines = [node("n0", labels={"rack": "r1"}), node("n1")]
    gangs = [podgroup("a"), podgroup("b", annotations={"note": "late"})]
    ssn = session(
        cluster(machines, gangs, pod("p", "a", labels={"user": "ann"}), pod("q", "b", on="n1", labels={"user": "bob"})),
        "tiers: []",
    )
    nodes, jobs, tasks = ssn.nodes, ssn.jobs, ssn.tasks
    assert (nodes.names, [labels.get("rack") for labels in nodes.labels]) == (["n0", "n1"], ["r1", None])
    assert (jobs.names, jobs.namespaces, jobs.queue.tolist()) == (["a", "b"], ["ns", "ns"], [0, 0])
    assert [job.key for job in jobs] == ["ns/a", "ns/b"]
    assert [notes.get("note") for notes in jobs.annotations] == [None, "late"]
    assert [labels["user"] for labels in jobs.labels] == ["ann", "bob"]
    assert (tasks.names, tasks.namespaces) == (["p", "q"], ["ns", "ns"])
    assert [labels["user"] for labels in tasks.labels] == ["ann", "bob"]
    assert (tasks.node.tolist(), tasks.status.tolist()) == ([-1, 1], [TaskStatus.PENDING, TaskStatus.RUNNING])


def test_values_of_a_label_are_sorted_and_rows_without_it_have_none() -> None:
    users = ["bob", "", "ann", "bob"]
    members = [pod(f"p{i}", cpu=i + 1, labels={"user": user} if user else {}) for i, user in enumerate(users)]
    tasks = session(cluster(members), "tiers: []").tasks
    found = tasks.label("user")
    assert found.values == ["", "ann", "bob"]
    assert found.codes.tolist() == [2, 0, 1, 2]
    assert {user: amounts[0] for user, amounts in found.sums(tasks.req).items()} == {"": 2000, "ann": 3000, "bob": 5000}
    assert found.sums(np.ones(4)) == {"": 1, "ann": 1, "bob": 2}
    assert tasks.label("other").values == [""]


def test_values_of_no_rows_are_none() -> None:
    tasks = session(cluster(), "tiers: []").tasks
    assert (tasks.label("user").values, tasks.label("user").sums(tasks.req)) == ([], {})


def test_values_are_scattered_over_all_rows_of_their_table() -> None:
    gangs = [podgroup(name) for name in "abc"]
    ssn = session(cluster([node(f"n{i}") for i in range(3)], gangs, pods("c", 2)), "tiers: []")
    assert NodeRows(ssn.tables, np.array([2, 0])).scatter(np.array([5.0, 7.0])).tolist() == [7, 0, 5]
    of_jobs = JobRows(ssn.tables, np.array([2, 1])).scatter(np.array([[1, 2], [3, 4]]))
    assert (of_jobs.shape, of_jobs[:3].tolist()) == ((ssn.tables.jobs.capacity, 2), [[0, 0], [3, 4], [1, 2]])
    rows = ssn.tables.jobs.tasks[2]
    of_tasks = TaskRows(ssn.tables, rows).scatter(np.array(["x", "y"], dtype=object))
    assert (of_tasks[rows].tolist(), len(of_tasks)) == (["x", "y"], ssn.tables.tasks.capacity)
