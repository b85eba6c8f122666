"""List what is left to place of a job: its sub-jobs in order, each with its pending tasks in order. Source: Volcano
allocate action.
"""

from __future__ import annotations

from bisect import bisect_right

from pumice.algorithms.groups import all_equal
from pumice.columns.counting import PENDING
from pumice.columns.dtypes import AnyArray
from pumice.columns.tasks import GATED, QUEUE_GATE_ONLY
from pumice.columns.views import SubJob
from pumice.framework.cycle.ordering import Heap, Keyer, live, older
from pumice.framework.cycle.session import Session
from pumice.volcano import points
from pumice.volcano.gangs.readiness import sub_missing


class SubJobQueue:
    """Pending tasks of one sub-job in order. ``position`` is the index of the next one."""

    __slots__ = ("_ends", "_gated", "classes", "nominated", "position", "rows", "uniform_roles")

    def __init__(self, ssn: Session, rows: AnyArray) -> None:
        self.rows: list[int] = rows.tolist()
        self.position = 0
        tasks = ssn.tables.tasks
        gates: AnyArray = tasks.gate[rows]
        self.classes: list[int] = tasks.cls[rows].tolist()
        roles = tasks.role[rows].tolist()
        #: Tasks that were nominated to a node when the queue was created.
        self.nominated = frozenset(rows[tasks.nominated[rows] >= 0].tolist())
        self._gated = frozenset(rows[gates == QUEUE_GATE_ONLY].tolist())
        #: True if each role has one class. The error cache by role then makes no difference, since a node that rejects
        #: one task of a class rejects them all.
        self.uniform_roles = True
        self._ends = [len(roles)]
        if self._gated or not (all_equal(self.classes) and all_equal(roles)):
            kinds = list(zip(self.classes, roles, gates.tolist(), strict=True))
            self._ends = [i for i in range(1, len(kinds)) if kinds[i] != kinds[i - 1]] + [len(kinds)]
            self.uniform_roles = len(set(zip(self.classes, roles, strict=True))) == len(set(roles))

    def __bool__(self) -> bool:
        return self.position < len(self.rows)

    def copy(self) -> SubJobQueue:
        """Return a copy with a position of its own."""
        # Only the position changes; the lists are shared. Trials in many domains copy the queue often.
        copied = object.__new__(SubJobQueue)
        for name in SubJobQueue.__slots__:
            setattr(copied, name, getattr(self, name))
        return copied

    def is_gated(self, row: int) -> bool:
        """Return True if the queue gate holds a task."""
        return row in self._gated

    def next(self, count: int) -> list[int]:
        """Return up to ``count`` tasks from the position on, either ungated ones or one gated task."""
        rows = self.rows[self.position : self.position + count]
        if self._gated:
            free = next((i for i, row in enumerate(rows) if row in self._gated), len(rows))
            return rows[: max(1, free)]
        return rows

    def run_length(self) -> int:
        """Return the number of equal tasks from the position on."""
        return self._ends[bisect_right(self._ends, self.position)] - self.position

    @property
    def is_one_run(self) -> bool:
        """True if all tasks are equal."""
        return len(self._ends) == 1


class PendingTasks:
    """Sub-jobs with tasks to place: first those that must become ready for the job, then the others, in sub-job
    order."""

    __slots__ = ("_heap", "_job", "_ssn", "sub_queues")

    def __init__(self, ssn: Session, job: int) -> None:
        self._ssn, self._job = ssn, job
        self.sub_queues: dict[int, SubJobQueue] = {}
        jobs, subs = ssn.tables.jobs, ssn.tables.subs
        # If all tasks of a job are pending, none needs a look at its status.
        all_wait = jobs.waits[job] == jobs.size[job]
        for sub in jobs.subs[job]:
            rows = subs.tasks[sub] if all_wait else placeable(ssn, subs.tasks[sub])
            if len(rows):
                self.sub_queues[sub] = SubJobQueue(ssn, ssn.order.sorted_tasks(rows))
        self._heap: Heap | None = None  # created when the order is needed; jobs with one sub-job need none

    def __bool__(self) -> bool:
        return bool(self.sub_queues if self._heap is None else len(self._heap))

    def _ordered(self) -> Heap:
        """Return the sub-jobs as a heap."""
        if self._heap is None:
            keyer = sub_job_keyer(self._ssn, _required(self._ssn, self._job))
            self._heap = Heap(keyer, list(self.sub_queues))
        return self._heap

    def pop(self) -> int:
        """Remove and return the first sub-job."""
        return self._ordered().pop()

    def push(self, sub: int) -> None:
        """Add a sub-job again."""
        self._ordered().push(sub)

    def copy(self) -> PendingTasks:
        """Return a copy with sub-job queues of its own."""
        copied = object.__new__(PendingTasks)
        copied._ssn, copied._job = self._ssn, self._job
        copied.sub_queues = {sub: sub_queue.copy() for sub, sub_queue in self.sub_queues.items()}
        copied._heap = self._ordered().copy()
        return copied


def placeable(ssn: Session, rows: AnyArray) -> AnyArray:
    """Return pending tasks with requests that are held by no gate, or by the queue gate only."""
    tasks = ssn.tables.tasks
    waiting = (tasks.status[rows] == PENDING) & ~tasks.best_effort[rows] & (tasks.gate[rows] < GATED)
    found: AnyArray = rows[waiting]
    return found


def _required(ssn: Session, job: int) -> frozenset[int]:
    """Return the sub-jobs that are not ready and are needed to reach minSubGroups."""
    group = ssn.tables.jobs.groups[job]
    minimum = {f"{group.key}/{p.name}": p.min_sub_groups for p in group.sub_groups if p.min_sub_groups}
    if not minimum:
        return frozenset()
    subs = ssn.tables.subs
    ready: dict[str, int] = {}
    waiting = []
    # Sub-jobs that are ready already reduce what their policy still needs.
    for sub in ssn.tables.jobs.subs[job]:
        if sub_missing(ssn, sub) == 0:
            ready[subs.gids[sub]] = ready.get(subs.gids[sub], 0) + 1
        else:
            waiting.append(sub)
    required = []
    heap = Heap(sub_job_keyer(ssn), waiting)
    while heap:
        sub = heap.pop()
        gid = subs.gids[sub]
        # In sub-job order, because only so many sub-jobs as are needed count as required. Which ones these are decides
        # what is placed first.
        if ready.get(gid, 0) < minimum.get(gid, 0):
            required.append(sub)
            ready[gid] = ready.get(gid, 0) + 1
    return frozenset(required)


def sub_job_keyer(ssn: Session, first: frozenset[int] = frozenset()) -> Keyer:
    """Return a function for sort keys of sub-jobs: those in ``first`` first, then by plugins, match index and UID."""
    subs, ask = ssn.tables.subs, ssn.ask
    # If every hook gives keys, sub-jobs are sorted by keys; otherwise pairs must be compared.
    if ssn.hooks.forms(points.sub_job_order) <= {"key"}:
        return lambda rows: [
            (r not in first, *ask(points.sub_job_keyed, SubJob(ssn.tables, r)), subs.match_index[r], subs.uids[r])
            for r in rows
        ]

    def compare(a: int, b: int) -> int:
        if (a in first) != (b in first):
            return -1 if a in first else 1
        said = ask(points.sub_jobs_compared, SubJob(ssn.tables, a), SubJob(ssn.tables, b))
        return said or older(subs.match_index, subs.uids, a, b)

    return live(compare)
