"""A wrong answer is a fault of the plugin, with its place: the job is skipped, the others are scheduled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from pumice.api import (
    F64,
    Job,
    JobRows,
    Node,
    NodeRows,
    Queue,
    Session,
    Task,
    TaskClass,
    TaskRows,
    TaskRun,
    plugin,
    points,
)
from pumice.testing.build import Ran, cluster, node, pod, podgroup, queue, run

CONF = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: mine}]}]"


def raising() -> Any:
    raise KeyError("user")


def generator() -> Iterator[float]:
    yield 1.0


#: Answers that no point takes, as functions of how many rows were asked about.
WRONG: dict[str, Callable[[], Any]] = {
    "text": lambda: "x",
    "object": object,
    "generator": generator,
    "raising": raising,
    "list": lambda: ["x"],
    "wrong shape": lambda: np.zeros((7, 7)),
    "texts": lambda: np.array(["x", "y"]),
    "objects": lambda: np.array([object(), None], dtype=object),
}
NUMBERS_ONLY: dict[str, Callable[[], Any]] = {
    "NaN": lambda: float("nan"),
    "infinite": lambda: float("inf"),
    "no number": lambda: None,
    "array of NaN": lambda: np.full(2, np.nan),
}


def by_class_rows(answer: Callable[[], Any]) -> Any:
    def hook(ssn: Session, cls: TaskClass, nodes: NodeRows) -> Any:
        return answer()

    return hook


def by_task_rows(answer: Callable[[], Any]) -> Any:
    def hook(ssn: Session, task: Task, nodes: NodeRows) -> Any:
        return answer()

    return hook


def by_class_node(answer: Callable[[], Any]) -> Any:
    def hook(ssn: Session, cls: TaskClass, node: Node) -> Any:
        return answer()

    return hook


def by_task_node(answer: Callable[[], Any]) -> Any:
    def hook(ssn: Session, task: Task, node: Node) -> Any:
        return answer()

    return hook


def by_queue_rows(answer: Callable[[], Any]) -> Any:
    def hook(ssn: Session, queue: Queue, tasks: TaskRows) -> Any:
        return answer()

    return hook


def by_queue_task(answer: Callable[[], Any]) -> Any:
    def hook(ssn: Session, queue: Queue, task: Task) -> Any:
        return answer()

    return hook


def by_class(answer: Callable[[], Any]) -> Any:
    def hook(ssn: Session, cls: TaskClass) -> Any:
        return answer()

    return hook


def by_task(answer: Callable[[], Any]) -> Any:
    def hook(ssn: Session, task: Task) -> Any:
        return answer()

    return hook


def by_job(answer: Callable[[], Any]) -> Any:
    def hook(ssn: Session, job: Job) -> Any:
        return answer()

    return hook


def by_jobs(answer: Callable[[], Any]) -> Any:
    def hook(ssn: Session, jobs: JobRows) -> Any:
        return answer()

    return hook


def by_two_jobs(answer: Callable[[], Any]) -> Any:
    def hook(ssn: Session, left: Job, right: Job) -> Any:
        return answer()

    return hook


def by_tasks(answer: Callable[[], Any]) -> Any:
    def hook(ssn: Session, tasks: TaskRows) -> Any:
        return answer()

    return hook


def by_queue(answer: Callable[[], Any]) -> Any:
    def hook(ssn: Session, queue: Queue) -> Any:
        return answer()

    return hook


def by_run(answer: Callable[[], Any]) -> Any:
    def hook(ssn: Session, run: TaskRun) -> Any:
        return answer()

    return hook


def by_scores(answer: Callable[[], Any]) -> Any:
    def hook(ssn: Session, task: Task, nodes: NodeRows, scores: F64) -> Any:
        return answer()

    return hook


FORMS: list[tuple[str, Callable[..., Any]]] = [
    ("predicate", by_class_rows),
    ("predicate", by_task_rows),
    ("predicate", by_class_node),
    ("predicate", by_task_node),
    ("node_order", by_class_rows),
    ("node_order", by_task_rows),
    ("node_order", by_class_node),
    ("node_order", by_task_node),
    ("batch_node_order", by_class_rows),
    ("batch_node_order", by_task_rows),
    ("best_node", by_scores),
    ("waits", by_task_rows),
    ("allocatable", by_queue_rows),
    ("allocatable", by_queue_task),
    ("pre_predicate", by_class),
    ("pre_predicate", by_task),
    ("job_ready", by_job),
    ("job_valid", by_job),
    ("job_pipelined", by_job),
    ("job_order", by_jobs),
    ("job_order", by_two_jobs),
    ("task_order", by_tasks),
    ("queue_order", by_queue),
    ("overused", by_queue),
    ("on_allocate", by_run),
]
SCORES = ("node_order", "batch_node_order")


def ran(point: str, write: Callable[..., Any], answer: Callable[[], Any]) -> Ran:
    hook = write(answer)
    mine = plugin("mine")(getattr(points, point)(hook))
    gangs = [podgroup(name, 2, phase="Inqueue", creation=float(i)) for i, name in enumerate("ab")]
    gangs.append(podgroup("c", 2, "other", phase="Inqueue", creation=2.0))
    tasks = [pod(f"{name}-{i}", name) for name in "abc" for i in range(2)]
    return run(cluster(node("n1"), node("n2"), queue("default"), queue("other"), gangs, tasks), CONF, plugins=[mine])


def cases() -> Iterator[Any]:
    for point, write in FORMS:
        for name, answer in (*WRONG.items(), *(NUMBERS_ONLY.items() if point in SCORES else ())):
            over_rows = write in (by_class_rows, by_task_rows)
            if name == "no number" and over_rows:
                continue  # None over rows: nothing to say
            yield pytest.param(point, write, answer, id=f"{point} {write.__name__} {name}")


@pytest.mark.parametrize(("point", "write", "answer"), list(cases()))
def test_a_wrong_answer_is_a_fault_with_its_place(point: str, write: Any, answer: Any) -> None:
    faults = ran(point, write, answer).outcome.faults
    for fault in faults:
        assert (fault.plugin, fault.point) == ("mine", point)
        assert "hook" in fault.hook and __file__ in fault.where
    assert faults or not _is_asked(point, write)


def _is_asked(point: str, write: Any) -> bool:
    """Whether the cycle above reaches the point."""
    return point not in ("waits", "job_pipelined")


@pytest.mark.parametrize("answer", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("write", [by_class_node, by_class_rows, by_task_node, by_task_rows])
def test_a_job_of_which_a_hook_fails_is_skipped_and_the_rest_is_scheduled(write: Any, answer: Any) -> None:
    def of_one(subject: Any) -> Any:
        mine = "only" in getattr(subject, "key", "") or subject.req[0] > 2000
        return answer() if mine else 1.0

    def over(ssn: Session, subject: Any, nodes: Any) -> Any:
        return of_one(subject)

    bare = write(answer)
    over.__annotations__ = dict(zip(("ssn", "subject", "nodes"), list(bare.__annotations__.values()), strict=False))
    hook = plugin("mine")(points.node_order(over))
    gangs = [podgroup("only", phase="Inqueue"), podgroup("rest", phase="Inqueue", creation=1.0)]
    objects = [node("n1", cpu=8), node("n2", cpu=8), gangs, pod("only-0", "only", cpu=4), pod("rest-0", "rest")]
    found = run(cluster(*objects), CONF, plugins=[hook])
    assert {fault.subject for fault in found.outcome.faults} == {"ns/only"}
    assert list(found.binds) == ["ns/rest-0"]
