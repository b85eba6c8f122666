"""Plugins broken on purpose, one for each way to break the contract."""

from __future__ import annotations

from typing import Any

import numpy as np

from pumice.api import (
    CPU,
    F64,
    JOBS,
    NOW,
    PODS,
    ROWS,
    Bool,
    Candidates,
    ClassRows,
    FilterInTurn,
    FilterResult,
    Invalid,
    Job,
    JobRows,
    Node,
    NodeRows,
    Queue,
    Session,
    Task,
    TaskClass,
    TaskFilter,
    TaskRows,
    TaskRun,
    Unfit,
    Vote,
    plugin,
    points,
)
from tests.unit.framework.kit import answers_equally

# -- reads what it does not declare ------------------------------------------------------------------------------------


@plugin("clock")
@points.job_order
def clock(ssn: Session, jobs: JobRows) -> F64:
    """Jobs that waited for long go first."""
    return np.floor((ssn.now - jobs.creation) / 1000.0)


@plugin("other-queues")
@points.overused
def other_queues(ssn: Session, queue: Queue) -> bool:
    """The queue with the smallest weight is done."""
    return bool(ssn.tables.queues.weight[queue.row] <= ssn.tables.queues.weight.min())


@plugin("other-jobs")
@points.job_valid
def other_jobs(ssn: Session, job: Job) -> Invalid | None:
    """While a job with a higher priority exists, no other one is valid."""
    jobs = ssn.tables.jobs
    return Invalid("Later", "others first") if job.priority < jobs.priority[jobs.live].max() else None


@plugin("other-pods")
@points.predicate
def other_pods(ssn: Session, cls: TaskClass, nodes: NodeRows) -> FilterResult:
    """Nowhere, as long as a pod has the label app: c."""
    tasks = ssn.tables.tasks
    there = any(tasks.pods[row].labels.get("app") == "c" for row in tasks.alive.nonzero()[0].tolist())
    return FilterResult.of(np.full(len(nodes), not there), Unfit("c is there"))


@plugin("other-nodes")
@points.node_order
def other_nodes(ssn: Session, cls: TaskClass, nodes: NodeRows) -> F64:
    """How much of what the busiest node has in use is in use here."""
    return nodes.used[:, CPU] / max(1.0, float(ssn.tables.nodes.used[:, CPU].max()))


@plugin("rows-left-out")
@points.node_order(reads=("rows-left-out.nothing",))
def rows_left_out(ssn: Session, cls: TaskClass, nodes: NodeRows) -> F64:
    """Says what it reads, and forgets the rows."""
    return nodes.used[:, CPU]


@plugin("number")
@points.overused
def number(ssn: Session, queue: Queue) -> bool:
    """Every other session."""
    return int(ssn.uid.rpartition("-")[2]) % 2 == 0


@plugin("plain-weight")
class PlainWeight:
    """Reads as it opens, into plain Python instead of a column."""

    def __init__(self, ssn: Session) -> None:
        self.total = float(ssn.tables.queues.weight.sum())

    @points.queue_order
    def queue_order(self, queue: Queue) -> float:
        return queue.obj.weight / self.total


# -- rows --------------------------------------------------------------------------------------------------------------


@plugin("scaled")
@points.node_order
def scaled(ssn: Session, cls: TaskClass, nodes: NodeRows) -> F64:
    """Scaled over all that are asked about together."""
    return nodes.allocatable[:, CPU] / nodes.allocatable[:, CPU].max()


@plugin("first-come")
@points.batch_node_order
def first_come(ssn: Session, task: Task, nodes: NodeRows) -> F64:
    """The first rows are the best."""
    return -np.arange(len(nodes), dtype=np.float64)


@plugin("counts-on")
@points.preemptable
def counts_on(ssn: Session, preemptor: Task, candidates: Candidates) -> Bool:
    """Two of all that might go, whatever their nodes."""
    return np.arange(len(candidates)) < 2


@plugin("one-way")
@points.queue_order
def one_way(ssn: Session, left: Queue, right: Queue) -> int:
    """Always the left one."""
    return -1 if left.row != right.row else 0


@plugin("unforeseen")
class Unforeseen:
    """Counts placements by node, and says that rows tell all about them."""

    def __init__(self, ssn: Session) -> None:
        self.ssn, self.placed = ssn, ssn.column("unforeseen.placed", "node")

    @points.node_order(reads=(ROWS,))
    def score(self, cls: TaskClass, nodes: NodeRows) -> F64:
        return -nodes.read(self.placed)

    @points.on_allocate
    def came(self, run: TaskRun) -> None:
        self._add(run, 1.0)

    @points.on_deallocate
    def went(self, run: TaskRun) -> None:
        self._add(run, -1.0)

    def _add(self, run: TaskRun, sign: float) -> None:
        times = np.bincount(run.nodes, minlength=len(self.placed.array))
        self.ssn.journal.add(self.placed, times > 0, sign * times[times > 0])


@answers_equally
@plugin("second-thoughts")
@points.predicate(reads=(ROWS,))
def second_thoughts(ssn: Session, task: Task, nodes: NodeRows) -> FilterResult | None:
    """Has nothing to say of the first task of a class in a job, and objects to the next ones."""
    tasks, rows = ssn.tables.tasks, task.job.tasks
    if not (tasks.node[rows[tasks.cls[rows] == tasks.cls[task.row]]] >= 0).any():
        return None
    return FilterResult.of(np.zeros(len(nodes), dtype=bool), Unfit("one is enough"))


@answers_equally
@plugin("waits-for-others")
@points.node_order(reads=(ROWS, JOBS))
def waits_for_others(ssn: Session, task: Task, nodes: NodeRows) -> F64 | None:
    """Has nothing to say of a task until others of another class of its job are placed."""
    tasks = ssn.tables.tasks
    others = [row for row in task.job.tasks.tolist() if tasks.cls[row] != tasks.cls[task.row]]
    placed = [int(tasks.node[row]) for row in others if tasks.node[row] >= 0]
    return np.isin(nodes.rows, placed).astype(np.float64) if placed else None


@plugin("other-sums")
class OtherSums:
    """Says of several classes what it does not say of each."""

    def __init__(self, ssn: Session) -> None: ...

    @points.node_order(several="of_several")
    def score(self, cls: TaskClass, nodes: NodeRows) -> F64:
        return nodes.used[:, 0] + cls.req[0]

    def of_several(self, classes: ClassRows, nodes: NodeRows) -> F64:
        return nodes.used[:, 0] + classes.req[::-1, :1]


class Apart(FilterInTurn):
    """No two tasks of a job on a node; does not say that a placement changes anything."""

    def __init__(self, free: Bool, count: int) -> None:
        self.count, self.free = count, free

    def open_to(self, step: int) -> Bool:
        return self.free

    def placed(self, step: int, place: int) -> bool:
        self.free = self.free & (np.arange(len(self.free)) != place)
        return False


@plugin("never-changes")
class StandsStill:
    """Follows placements, and says that nothing changes."""

    def __init__(self, ssn: Session) -> None: ...

    @points.predicate(reads=(ROWS, PODS))
    def apart(self, cls: TaskClass) -> TaskFilter:
        return OfJob()


class OfJob(TaskFilter):
    def filter_result(self, task: Task, nodes: NodeRows) -> FilterResult:
        return FilterResult.of(self._free(task, nodes), Unfit("one of its job is there"))

    def in_turn(self, tasks: TaskRows, nodes: NodeRows) -> FilterInTurn:
        return Apart(self._free(next(iter(tasks)), nodes), len(tasks))

    def _free(self, task: Task, nodes: NodeRows) -> Bool:
        return ~np.isin(nodes.rows, task.tables.tasks.node[task.job.tasks])


# -- jobs --------------------------------------------------------------------------------------------------------------


@answers_equally
@plugin("odd-names")
@points.job_valid(reads=(ROWS,))
def odd_names(ssn: Session, job: Job) -> Invalid | None:
    """By the name, though it is listed as answering equally for equal jobs."""
    return None if len(job.group.name) % 2 else Invalid("Even", "the length of its name is even")


@answers_equally
@plugin("odd-tasks")
@points.allocatable(reads=(ROWS,))
def odd_tasks(ssn: Session, queue: Queue, tasks: TaskRows) -> int:
    """By the names of jobs, though it is listed as answering equally for equal tasks."""
    jobs = [tasks.tables.jobs.uids[row][-1] for row in tasks.job.tolist()]
    return 0 if jobs and ord(jobs[0]) % 2 else len(tasks)


@plugin("sleepy")
@points.job_enqueueable(reads=(ROWS, NOW))
def sleepy(ssn: Session, job: Job) -> Vote:
    """No job before a certain moment, without a declaration of when that is."""
    return Vote.PERMIT if ssn.now > 1050.0 else Vote.REJECT


# -- what is taken back ------------------------------------------------------------------------------------------------


@plugin("plain-count")
class PlainCount:
    """Counts in plain Python, and does not say so."""

    def __init__(self, ssn: Session) -> None:
        self.taken: dict[int, int] = {}

    @points.queue_order
    def queue_order(self, queue: Queue) -> int:
        return self.taken.get(queue.row, 0)

    @points.on_allocate
    def came(self, run: TaskRun) -> None:
        self.taken[run.queue] = self.taken.get(run.queue, 0) + len(run)

    @points.on_deallocate
    def went(self, run: TaskRun) -> None:
        self.taken[run.queue] = self.taken.get(run.queue, 0) - len(run)


@plugin("stale-flag")
class StaleFlag:
    """Works its order out again when a flag says so, and a rollback does not set flags."""

    def __init__(self, ssn: Session) -> None:
        self.ssn, self.stale, self.order = ssn, True, np.zeros(0)
        self.taken = ssn.column("stale-flag.taken", "queue")

    @points.queue_order
    def queue_order(self, queue: Queue) -> float:
        if self.stale:
            self.order, self.stale = self.taken.array.copy(), False
        return float(self.order[queue.row])

    @points.on_allocate
    def came(self, run: TaskRun) -> None:
        self.stale = True
        self.ssn.journal.add(self.taken, run.queue, float(len(run)))

    @points.on_deallocate
    def went(self, run: TaskRun) -> None:
        self.stale = True
        self.ssn.journal.add(self.taken, run.queue, -float(len(run)))


@plugin("one-sided")
class OneSided:
    """Counts what comes in a column, and never what goes."""

    def __init__(self, ssn: Session) -> None:
        self.ssn, self.taken = ssn, ssn.column("one-sided.taken", "queue")

    @points.queue_order
    def queue_order(self, queue: Queue) -> float:
        return float(self.taken.array[queue.row])

    @points.on_allocate
    def came(self, run: TaskRun) -> None:
        self.ssn.journal.add(self.taken, run.queue, float(len(run)))


@plugin("counts-questions")
class CountsQuestions:
    """Writes when it is asked."""

    def __init__(self, ssn: Session) -> None:
        self.ssn, self.asked = ssn, ssn.column("counts-questions.asked", "queue")

    @points.overused
    def overused(self, queue: Queue) -> bool:
        self.ssn.journal.add(self.asked, queue.row, 1.0)
        return False


@plugin("keeps-too-long")
@points.allocatable
def keeps_too_long(ssn: Session, queue: Queue, tasks: TaskRows) -> int:
    """Asks the memo, and does not tell it all that the answer rests on."""
    return ssn.memo.get(("limit", queue.row), (), lambda: int(queue.obj.weight))


_FIRST: dict[int, int] = {}


@plugin("module-state")
@points.job_order
def module_state(ssn: Session, jobs: JobRows) -> F64:
    """Remembers beyond the session, by the number of a row."""
    first = (_FIRST.setdefault(row, own) for row, own in zip(jobs.rows.tolist(), jobs.priority.tolist(), strict=True))
    return np.array(list(first), dtype=np.float64)


# -- answers -----------------------------------------------------------------------------------------------------------


@plugin("raises")
@points.predicate
def raises(ssn: Session, cls: TaskClass, node: Node) -> Unfit | None:
    """Knows clusters in which every node says what disk it has."""
    return None if node.labels["example.com/disk"] == "ssd" else Unfit("slow disk")


@plugin("not-a-number")
@points.node_order
def not_a_number(ssn: Session, cls: TaskClass, nodes: NodeRows) -> F64:
    """0 / 0 on a node without devices."""
    with np.errstate(invalid="ignore"):
        return nodes.used[:, CPU] / nodes.used[:, CPU]


@plugin("says-false")
@points.predicate
def says_false(ssn: Session, cls: TaskClass, nodes: NodeRows) -> Any:
    """As if a filter answered yes or no."""
    return False


@plugin("maybe")
@points.overused
def maybe(ssn: Session, queue: Queue) -> Any:
    """Neither yes nor no."""
    return "perhaps"


@plugin("cannot-open")
class CannotOpen:
    """Knows clusters with one queue."""

    def __init__(self, ssn: Session) -> None:
        (self.queue,) = ssn.tables.queues.names

    @points.overused
    def overused(self, queue: Queue) -> bool:
        return queue.name == self.queue


@plugin("fragile-told")
class FragileTold:
    """Receives pods without a job, and does not expect them."""

    def __init__(self, ssn: Session) -> None:
        self.ssn, self.taken = ssn, dict.fromkeys(ssn.tables.queues.names[:1], 0)

    @points.on_allocate
    def came(self, run: TaskRun) -> None:
        self.taken[self.ssn.tables.queues.names[run.queue]] += 1


# -- arguments ---------------------------------------------------------------------------------------------------------


@plugin("divides")
@points.node_order
def divides(ssn: Session, cls: TaskClass, nodes: NodeRows, *, parts: int = 10) -> F64:
    """Divides by what a file may say is 0."""
    return np.full(len(nodes), 100 // parts, dtype=np.float64)


@plugin("any-list")
class AnyList:
    """Takes a list for granted."""

    def __init__(self, ssn: Session, *, names: list[str] = []) -> None:  # noqa: B006
        self.names = [name.lower() for name in names]

    @points.overused
    def overused(self, queue: Queue) -> bool:
        return queue.name in self.names


@plugin("grumbles")
class Grumbles:
    """Refuses, and does not say what."""

    def __init__(self, ssn: Session, *, limit: int = 1) -> None:
        self.limit = limit

    @staticmethod
    def problems(*, limit: int) -> list[str]:
        return [] if limit > 0 else ["bad value"]

    @points.overused
    def overused(self, queue: Queue) -> bool:
        return queue.obj.weight > self.limit
