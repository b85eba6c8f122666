"""Two jobs that differ in exactly one field: a hook that reads it is asked about both, however it is written."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from types import MethodType
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.api import F64, NOW, PODS, ROWS, Job, Node, NodeRows, Queue, Session, Task, TaskRows, Unfit, plugin, points
from pumice.framework.memo import Memo
from pumice.framework.plugin.filter_result import FilterResult
from pumice.model.pod import Pod
from pumice.testing.build import cluster, node, pod, podgroup, policy, run
from pumice.testing.fields import FIELDS, field_of

#: Tells the pod that a hook lets through.
Chooses = Callable[[Pod], bool]


def is_of(user: str) -> Chooses:
    """Tell pods by a label."""
    return lambda pod: pod.labels.get("user") == user


def _of_queue(marked: Any, chosen: Chooses) -> Any:
    def task(ssn: Session, queue: Queue, task: Task) -> bool:
        return chosen(task.pod)

    return marked(task)


def _of_queue_rows(marked: Any, chosen: Chooses) -> Any:
    def rows(ssn: Session, queue: Queue, tasks: TaskRows) -> int:
        pods = tasks.tables.tasks.pods
        refused = [i for i, row in enumerate(tasks.rows.tolist()) if not chosen(pods[row])]
        return refused[0] if refused else len(tasks)

    return marked(rows)


def _before_nodes(marked: Any, chosen: Chooses) -> Any:
    def task(ssn: Session, task: Task) -> Unfit | None:
        return None if chosen(task.pod) else Unfit("first")

    return marked(task)


def _rows_of_nodes(marked: Any, chosen: Chooses) -> Any:
    def over_rows(ssn: Session, task: Task, nodes: NodeRows) -> FilterResult | None:
        return None if chosen(task.pod) else FilterResult(np.ones(len(nodes), np.int32), ((), (Unfit("first"),)))

    return marked(over_rows)


def _one_node(marked: Any, chosen: Chooses) -> Any:
    def one(ssn: Session, task: Task, node: Node) -> Unfit | None:
        return None if chosen(task.pod) else Unfit("first")

    return marked(one)


def _job(marked: Any, chosen: Chooses) -> Any:
    def ready(ssn: Session, job: Job) -> bool:
        return chosen(job.tables.tasks.pods[int(job.tasks[0])])

    return marked(ready)


HOOKS: dict[str, tuple[Any, Callable[[Any, Chooses], Any]]] = {
    "allocatable a task": (points.allocatable, _of_queue),
    "allocatable rows": (points.allocatable, _of_queue_rows),
    "pre_predicate": (points.pre_predicate, _before_nodes),
    "predicate over rows": (points.predicate, _rows_of_nodes),
    "predicate of a node": (points.predicate, _one_node),
    "job_ready": (points.job_ready, _job),
}
CONF = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: mine}]}]"
READS: dict[str, tuple[str, ...] | None] = {"by default": None, "rows": (ROWS,), "more": (ROWS, PODS, NOW)}


def objects(change: Callable[[Pod], Pod], *, swapped: bool) -> list[Any]:
    """Two jobs of one pod, of which the second's differs in one field; ``swapped``: that one is the older."""
    older, newer = float(swapped), float(not swapped)
    first, second = pod("a-0", "a"), change(pod("b-0", "b"))
    gangs = [
        podgroup("a", phase="Inqueue", creation=older),
        podgroup("b", phase="Inqueue", creation=newer, namespace=second.namespace),
    ]
    return [node("n1", cpu=8), node("n2", cpu=8), *gangs, first, second]


def placed(ran: Any) -> set[str]:
    return {key.partition("/")[2] for key in ran.binds}


#: What the hook reads, whether it is added by on_session_open, and whether the refused job is the older.
VARIANTS = list(product(READS.values(), (False, True), (False, True)))


@pytest.mark.parametrize(("point", "write"), HOOKS.values(), ids=HOOKS)
def test_a_job_is_decided_by_its_own_field(point: Any, write: Any) -> None:
    """Each field once, the ways to write the hook in turn; tests/unit/framework has the other points."""
    for number, (field, change) in enumerate(FIELDS.items()):
        reads, opens, swapped = VARIANTS[number % len(VARIANTS)]
        found = objects(change, swapped=swapped)
        own = field_of(found[-1], field)

        def chosen(pod: Pod, field: str = field, own: object = own) -> bool:
            return field_of(pod, field) == own

        mine = plugin("mine")(_opening(point, write, reads, chosen) if opens else write(_marked(point, reads), chosen))
        state, kept = cluster(found), Memo()
        under = policy(CONF, plugins=[mine])
        expected = [found[-1].key] if field in PLACEABLE else []
        for memo in (Memo(keeps=False), kept, kept):
            ran = run(state, under, memo=memo)
            assert not ran.outcome.faults, field
            assert list(ran.binds) == expected, field


#: Fields after whose change the pod still waits and can be placed.
PLACEABLE = {
    field
    for field, change in FIELDS.items()
    for found in [objects(change, swapped=False)]
    if found[-1].key in run(cluster(found), CONF.replace(", {name: mine}", "")).binds
}


def test_most_pods_can_be_placed_after_the_change() -> None:
    assert set(FIELDS) - PLACEABLE == {"deletion", "gates", "node_name", "phase", "scheduler_name"}


def _marked(point: Any, reads: tuple[str, ...] | None) -> Any:
    return point if reads is None else point(reads=reads)


def _opening(point: Any, write: Callable[..., Any], reads: tuple[str, ...] | None, chosen: Chooses) -> type:
    """The hook as Volcano's life cycle has it: added while the session opens."""
    hook = write(lambda hook: hook, chosen)

    class Mine:
        def __init__(self, ssn: Session) -> None: ...

        def on_session_open(self, ssn: Session) -> None:
            ssn.add(point, MethodType(hook, ssn), reads)

    return Mine


@pytest.mark.parametrize("refused", [0, 1, 2], ids=["the first", "the second", "the third"])
@pytest.mark.parametrize("reads", READS.values(), ids=READS)
@pytest.mark.parametrize("name", [name for name in HOOKS if name not in ("job_ready", "allocatable rows")])
def test_a_pod_of_a_job_is_decided_by_its_own_label(name: str, reads: Any, refused: int) -> None:
    point, write = HOOKS[name]
    mine = plugin("mine")(write(_marked(point, reads), is_of("b")))
    found: list[Any] = [node("n1", cpu=8), node("n2", cpu=8), podgroup("a", 1, phase="Inqueue")]
    found += [replace(pod(f"a-{i}", "a"), labels={"user": "a" if i == refused else "b"}) for i in range(3)]
    ran = run(cluster(found), CONF, plugins=[mine])
    assert not ran.outcome.faults
    assert placed(ran) <= {f"a-{i}" for i in range(3) if i != refused}


@pytest.mark.parametrize("reads", READS.values(), ids=READS)
@pytest.mark.parametrize("single", [False, True], ids=["rows", "one node"])
def test_each_pod_of_a_gang_goes_where_its_own_label_prefers(reads: Any, single: bool) -> None:
    def over_rows(ssn: Session, task: Task, nodes: NodeRows) -> F64 | float:
        if task.pod.labels.get("user") != "b":
            return 1.0
        return np.array([10.0 * (nodes.tables.nodes.facts.names[row] == "n3") for row in nodes.rows.tolist()])

    def one(ssn: Session, task: Task, node: Node) -> float:
        return 10.0 * (task.pod.labels.get("user") == "b" and node.name == "n3")

    mine = plugin("mine")(_marked(points.node_order, reads)(one if single else over_rows))
    nodes = [node(f"n{i}", cpu=8) for i in range(4)]
    gang = [replace(pod(f"a-{i}", "a"), labels={"user": "ab"[i]}) for i in range(2)]
    ran = run(cluster([*nodes, podgroup("a", 2, phase="Inqueue"), *gang]), CONF, plugins=[mine])
    assert ran.binds["ns/a-1"] == "n3"
