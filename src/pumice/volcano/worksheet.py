"""What is left to place of a job: its sub-jobs in order, each with its pending tasks in order. Source: Volcano
allocate (spec 03 §2.2)."""

from __future__ import annotations

from bisect import bisect_right

from pumice.columns.counting import PENDING
from pumice.columns.dtypes import AnyArray
from pumice.columns.tasks import GATED, QUEUE_GATE_ONLY
from pumice.framework.ordering import Heap, sorted_tasks, sub_job_keyer
from pumice.framework.session import Session


class Sheet:
    """Task rows of one sub-job in order; ``position`` is the next one. Equal tasks in a row can be asked for as a
    run."""

    __slots__ = ("_ends", "position", "rows", "uniform_roles")

    def __init__(self, ssn: Session, rows: AnyArray) -> None:
        self.rows: list[int] = rows.tolist()
        self.position = 0
        tasks = ssn.tables.tasks
        kinds = list(zip(tasks.cls[rows].tolist(), tasks.role[rows].tolist(), strict=True))
        if kinds.count(kinds[0]) == len(kinds):
            self._ends = [len(kinds)]
        else:
            self._ends = [i for i in range(1, len(kinds)) if kinds[i] != kinds[i - 1]] + [len(kinds)]
        #: Whether every role has one class only: then a node that failed one task of a role fails the others anyway.
        self.uniform_roles = self.is_one_run or len(set(kinds)) == len({role for _, role in kinds})

    def __bool__(self) -> bool:
        return self.position < len(self.rows)

    def copy(self) -> Sheet:
        twin = object.__new__(Sheet)
        twin.rows, twin.position, twin._ends, twin.uniform_roles = (
            self.rows,
            self.position,
            self._ends,
            self.uniform_roles,
        )
        return twin

    def run_length(self) -> int:
        """Number of equal tasks from the position on."""
        return self._ends[bisect_right(self._ends, self.position)] - self.position

    @property
    def is_one_run(self) -> bool:
        return len(self._ends) == 1


class Worksheet:
    """Sub-jobs that have tasks to place: those that must become ready for the job first, then in sub-job order."""

    __slots__ = ("_heap", "_job", "_ssn", "sheets")

    def __init__(self, ssn: Session, job: int) -> None:
        self._ssn, self._job = ssn, job
        self.sheets: dict[int, Sheet] = {}
        jobs, subs = ssn.tables.jobs, ssn.tables.subs
        all_wait = jobs.waits[job] == jobs.size[job]
        for sub in jobs.subs[job]:
            rows = subs.tasks[sub] if all_wait else placeable(ssn, subs.tasks[sub])
            if len(rows):
                self.sheets[sub] = Sheet(ssn, sorted_tasks(ssn, rows))
        self._heap: Heap | None = None  # made when somebody asks for the order

    def __bool__(self) -> bool:
        return bool(self.sheets if self._heap is None else len(self._heap))

    def _ordered(self) -> Heap:
        if self._heap is None:
            keyer = sub_job_keyer(self._ssn, _required(self._ssn, self._job))
            self._heap = Heap(keyer, list(self.sheets))
        return self._heap

    def pop(self) -> int:
        return self._ordered().pop()

    def push(self, sub: int) -> None:
        self._ordered().push(sub)

    def copy(self) -> Worksheet:
        """The same with sheets of its own."""
        twin = object.__new__(Worksheet)
        twin._ssn, twin._job = self._ssn, self._job
        twin.sheets = {sub: sheet.copy() for sub, sheet in self.sheets.items()}
        twin._heap = self._ordered().copy()
        return twin


def placeable(ssn: Session, rows: AnyArray) -> AnyArray:
    """Pending tasks that ask for something and are not held by others' gates."""
    tasks = ssn.tables.tasks
    waiting = (tasks.status[rows] == PENDING) & ~tasks.best_effort[rows] & (tasks.gate[rows] < GATED)
    found: AnyArray = rows[waiting]
    return found


def is_gated(ssn: Session, row: int) -> bool:
    """Held by the queue gate: stays out until the gate is taken off."""
    return bool(ssn.tables.tasks.gate[row] == QUEUE_GATE_ONLY)


def _required(ssn: Session, job: int) -> frozenset[int]:
    """Not yet ready sub-jobs that are needed to reach minSubGroups, in sub-job order."""
    group = ssn.tables.jobs.groups[job]
    minimum = {f"{group.key}/{p.name}": p.min_sub_groups for p in group.sub_groups if p.min_sub_groups}
    if not minimum:
        return frozenset()
    subs = ssn.tables.subs
    ready: dict[str, int] = {}
    waiting = []
    for sub in ssn.tables.jobs.subs[job]:
        if ssn.sub_missing(sub) == 0:
            ready[subs.gids[sub]] = ready.get(subs.gids[sub], 0) + 1
        else:
            waiting.append(sub)
    required = []
    heap = Heap(sub_job_keyer(ssn), waiting)
    while heap:
        sub = heap.pop()
        gid = subs.gids[sub]
        if ready.get(gid, 0) < minimum.get(gid, 0):
            required.append(sub)
            ready[gid] = ready.get(gid, 0) + 1
    return frozenset(required)
