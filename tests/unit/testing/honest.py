"""Plugins that say what they read, one for each word of ``reads=`` and each kind of point: a memo has to heed them."""

from __future__ import annotations

import numpy as np

from pumice.api import (
    CPU,
    F64,
    JOBS,
    NOW,
    PODS,
    QUEUES,
    ROWS,
    FilterResult,
    Invalid,
    Job,
    JobRows,
    NodeRows,
    Queue,
    Session,
    Task,
    TaskClass,
    TaskRows,
    TaskRun,
    Unfit,
    plugin,
    points,
)

EARLY = Unfit("too early")


def _all(nodes: NodeRows, fits: bool, why: Unfit) -> FilterResult:
    return FilterResult.of(np.full(len(nodes), fits), why)


class _Sleeps:
    """Decides by the clock, every hour anew."""

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn

    def wakes_at(self) -> float:
        return (self.ssn.now // 3600 + 1) * 3600

    @property
    def is_odd(self) -> bool:
        return bool(self.ssn.now // 3600 % 2)


@plugin("hours-for-classes")
class HoursForClasses(_Sleeps):
    @points.predicate(reads=(ROWS, NOW))
    def fits(self, cls: TaskClass, nodes: NodeRows) -> FilterResult:
        return _all(nodes, self.is_odd, EARLY)


@plugin("hours-for-tasks")
class HoursForTasks(_Sleeps):
    @points.predicate(reads=(ROWS, NOW))
    def fits(self, task: Task, nodes: NodeRows) -> FilterResult | None:
        return None if self.is_odd else _all(nodes, False, EARLY)


@plugin("hours-for-nobody")
class HoursForNobody(_Sleeps):
    @points.pre_predicate(reads=(ROWS, NOW))
    def fits(self, cls: TaskClass) -> Unfit | None:
        return None if self.is_odd else EARLY


@plugin("hours-for-jobs")
class HoursForJobs(_Sleeps):
    @points.job_valid(reads=(ROWS, NOW))
    def valid(self, job: Job) -> Invalid | None:
        return None if self.is_odd else Invalid("TooEarly", EARLY.reason)


@plugin("hours-for-queues")
class HoursForQueues(_Sleeps):
    @points.allocatable(reads=(ROWS, NOW))
    def allocatable(self, queue: Queue, tasks: TaskRows) -> int | Unfit:
        return len(tasks) if self.is_odd else EARLY


@plugin("heavy-queues-only")
@points.job_valid(reads=(ROWS, QUEUES))
def heavy_queues_only(ssn: Session, job: Job) -> Invalid | None:
    """Only jobs of the queue with the largest weight."""
    weight = ssn.tables.queues.weight
    return None if weight[job.queue] == weight.max() else Invalid("Light", "a heavier queue is there")


@plugin("heavy-queues-fit")
@points.predicate(reads=(ROWS, QUEUES))
def heavy_queues_fit(ssn: Session, task: Task, nodes: NodeRows) -> FilterResult | None:
    weight = ssn.tables.queues.weight
    return None if weight[task.queue] == weight.max() else _all(nodes, False, Unfit("a heavier queue is there"))


@plugin("weight-is-room")
class WeightIsRoom:
    """As many tasks a cycle as the queue has weight."""

    def __init__(self, ssn: Session) -> None:
        self.ssn, self.placed = ssn, ssn.column("weight-is-room.placed", "queue")

    @points.allocatable
    def allocatable(self, queue: Queue, tasks: TaskRows) -> int:
        return max(0, min(len(tasks), queue.obj.weight - int(self.placed.array[queue.row])))

    @points.on_allocate
    def came(self, run: TaskRun) -> None:
        if run.queue >= 0:
            self.ssn.journal.add(self.placed, run.queue, float(len(run)))

    @points.on_deallocate
    def went(self, run: TaskRun) -> None:
        if run.queue >= 0:
            self.ssn.journal.add(self.placed, run.queue, -float(len(run)))


@plugin("highest-only")
@points.job_valid(reads=(ROWS, JOBS))
def highest_only(ssn: Session, job: Job) -> Invalid | None:
    """Only jobs of the highest priority that is there."""
    jobs = ssn.tables.jobs
    return None if job.priority >= jobs.priority[jobs.live].max() else Invalid("Later", "others first")


@plugin("highest-fits")
@points.predicate(reads=(ROWS, JOBS))
def highest_fits(ssn: Session, task: Task, nodes: NodeRows) -> FilterResult | None:
    jobs = ssn.tables.jobs
    return None if task.job.priority >= jobs.priority[jobs.live].max() else _all(nodes, False, Unfit("others first"))


@plugin("not-while-c-runs")
@points.predicate(reads=(ROWS, PODS))
def not_while_c_runs(ssn: Session, cls: TaskClass, nodes: NodeRows) -> FilterResult:
    return _all(nodes, not _is_there(ssn, "c"), Unfit("c is there"))


@plugin("one-app-at-a-time")
@points.predicate(reads=(ROWS, PODS))
def one_app_at_a_time(ssn: Session, task: Task, nodes: NodeRows) -> FilterResult:
    other = {"a": "b", "b": "a"}.get(task.pod.labels.get("app", ""), "c")
    return _all(nodes, not _is_there(ssn, other), Unfit(f"{other} runs"))  # None would hold for its whole gang


def _is_there(ssn: Session, app: str) -> bool:
    tasks = ssn.tables.tasks
    on_nodes = (tasks.alive & (tasks.node >= 0)).nonzero()[0].tolist()
    return any(tasks.pods[row].labels.get("app") == app for row in on_nodes)


@plugin("held-by-label")
@points.pre_predicate
def held_by_label(ssn: Session, task: Task) -> Unfit | None:
    return Unfit("held by its label") if task.pod.labels.get("app") == "b" else None


@plugin("fewest-first")
@points.job_order(reads=(ROWS,))
def fewest_first(ssn: Session, jobs: JobRows) -> F64:
    return ssn.tables.jobs.size[jobs.rows].astype(np.float64)


@plugin("seldom-used")
class SeldomUsed:
    """Nodes that got the least in this cycle; rows tell how many more it would be."""

    def __init__(self, ssn: Session) -> None:
        self.ssn, tables = ssn, ssn.tables
        self.got = ssn.column("seldom-used.got", "node", per_task=np.ascontiguousarray(tables.classes.req[:, CPU]))

    @points.node_order(reads=(ROWS,))
    def score(self, cls: TaskClass, nodes: NodeRows) -> F64:
        return -nodes.read(self.got)

    @points.on_allocate
    def came(self, run: TaskRun) -> None:
        self._add(run, 1.0)

    @points.on_deallocate
    def went(self, run: TaskRun) -> None:
        self._add(run, -1.0)

    def _add(self, run: TaskRun, sign: float) -> None:
        for row, node in zip(run.rows, run.nodes, strict=True):
            cls = int(self.ssn.tables.tasks.cls[row])
            self.ssn.journal.add(self.got, node, sign * self.ssn.tables.classes.req[cls, CPU])
