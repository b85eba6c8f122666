"""What a cycle tried and what stood against it: written while it runs, read by explanations and reports.

``Attempt`` is what one try to place a job comes to. Whoever tries returns it; the trace takes it in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from pumice.columns.counting import PIPELINED
from pumice.columns.dtypes import I8, I32, I64, AnyArray, Bool
from pumice.columns.placement import Placement
from pumice.columns.tables import Tables
from pumice.framework.plugin.errors import PluginFault
from pumice.framework.plugin.filter_result import FitErrors
from pumice.model import blockers
from pumice.model.blockers import JOB, Blocker, GangIncomplete, Missing, Refused
from pumice.model.status import TaskStatus


class Kind(IntEnum):
    ALLOCATE = 0
    PIPELINE = 1
    EVICT = 2
    STAY = 3


#: The state that an operation moves tasks to; those that stay go back to the one they were in.
AFTER = {
    Kind.ALLOCATE: TaskStatus.ALLOCATED,
    Kind.PIPELINE: TaskStatus.PIPELINED,
    Kind.EVICT: TaskStatus.RELEASING,
    Kind.STAY: TaskStatus.RUNNING,
}


class Operation(NamedTuple):
    """``reason`` of an eviction, which users see. ``evicted``: of a pipelining, some victim left for it; of an
    eviction, it is one more of the same tasks, of which nobody is told."""

    kind: Kind
    placement: Placement
    reason: str = ""
    evicted: bool = False


class Question(NamedTuple):
    """How many of the next ``tasks`` (rows, or positions in the job) the queue would take on, its answer, and the
    ``reason`` that was given for none. Asked before anything of the attempt stood."""

    tasks: tuple[int, ...]
    allowed: int
    reason: str = ""


class Deed(Struct, frozen=True):
    """What was done, where nothing stands in the way."""


class Admitted(Deed, frozen=True):
    """The job was admitted."""


class MakesRoom(Deed, frozen=True):
    """So many pods were evicted for so many pods of the job."""

    evicted: int
    pods: int


#: What the trace keeps of a subject.
Finding = Blocker | Deed


def is_invalid(finding: Finding) -> bool:
    """Return True if the job was not tried, for it cannot start as it is."""
    return isinstance(finding, GangIncomplete | Missing) or (isinstance(finding, Refused) and finding.what == JOB)


class Attempt(NamedTuple):
    """``placed``: operations that stand. ``undone``: those that were taken back, in the order of that. ``errors``: task
    rows that found no node, in the order of trying. ``asked``: what was asked of the queue before anything stood;
    ``asked_again``: it was asked later too, and may have answered by what stood. ``findings``: what the trace should
    keep of the job beside."""

    placed: tuple[Operation, ...] = ()
    undone: tuple[Operation, ...] = ()
    errors: tuple[tuple[int, FitErrors], ...] = ()
    asked: tuple[Question, ...] = ()
    asked_again: bool = False
    findings: tuple[Finding, ...] = ()


class Entry(NamedTuple):
    """What ``action`` found of ``subject`` (a job, a queue, a pod), or did with it."""

    action: str
    subject: str
    finding: Finding


class JobsEntry(NamedTuple):
    """The same entry for many jobs, by row."""

    action: str
    jobs: AnyArray
    finding: Finding


class Fault(NamedTuple):
    """What a plugin did wrong. ``subject`` is the job, or the phase of the cycle, that it cost its turn; ``where`` file
    and line."""

    subject: str
    plugin: str
    point: str
    hook: str
    where: str
    problem: str

    @property
    def text(self) -> str:
        return f"plugin {self.plugin}, {self.hook} at {self.point} ({self.where}): {self.problem}"

    @property
    def blocker(self) -> Blocker:
        return blockers.PluginFault(self.plugin, self.point, self.hook, self.where, self.problem)


class LastTrial(NamedTuple):
    """For each of some tasks where the operation that was taken back last had put it (tasks,): its state (-1: nothing
    was taken back), its node, and whether somebody was evicted for it."""

    status: I8
    node: I32
    evicted: Bool

    @staticmethod
    def of(count: int, operations: Sequence[Operation] = (), position: Mapping[int, int] | None = None) -> LastTrial:
        """Of operations in the order in which they were taken back; ``position`` of each row among the tasks, the row
        itself without."""
        last_trial = LastTrial(np.full(count, -1, np.int8), np.full(count, -1, np.int32), np.zeros(count, dtype=bool))
        last_trial.take(operations, position)
        return last_trial

    def promises(self) -> AnyArray:
        """Which of them it was a promise for that somebody was evicted for (rows,), rising."""
        evicted = self.evicted.nonzero()[0]
        found: AnyArray = evicted[self.status[evicted] == PIPELINED]
        return found

    def take(self, operations: Sequence[Operation], position: Mapping[int, int] | None = None) -> None:
        """Further operations were taken back."""
        for op in operations:
            rows = list(op.placement.rows)
            where = rows if position is None else [position[row] for row in rows]
            self.status[where], self.node[where], self.evicted[where] = AFTER[op.kind], op.placement.nodes, op.evicted


class Failure(NamedTuple):
    """A failed attempt without its job: tasks by their position in it. ``number``: equal for failures that say the
    same. ``last_trial`` None: nothing was undone. ``queue``: versions of what the queue's answers rest on;
    ``asked_again``: these were not all given before anything stood. ``alone``: the queue took on none of the tasks, and
    no node was looked at."""

    number: int
    last_trial: LastTrial | None
    errors: tuple[tuple[int, FitErrors], ...]
    asked: tuple[Question, ...]
    asked_again: bool
    queue: tuple[object, ...]
    findings: tuple[Finding, ...]
    alone: bool


class Said(NamedTuple):
    """What an action that moved nothing left in the trace: entries, rejections at admission, and the failures that
    befell jobs: ``failed`` their rows, ``failed_as`` and ``failed_with`` as in the trace."""

    told: tuple[Entry | JobsEntry, ...]
    rejected: tuple[tuple[AnyArray, Blocker], ...]
    failures: tuple[Failure, ...]
    failed: AnyArray
    failed_as: I64
    failed_with: I32


class CycleTrace:
    """Everything told in one cycle. ``action`` is the one that runs.

    ``failed_as`` (J,): the number of the failure that befell a job, 0 without one; which one it was, ``failure_of``
    says, for two that say the same may have been on other nodes. ``tried``: other jobs of which something was noted,
    with ``errors`` by job row and task row, in the order of noting. ``rejected``: rows of jobs, and why they were not
    admitted. ``moved``: jobs whose hypernodes should be remembered.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.action = ""
        self.told: list[Entry | JobsEntry] = []
        self.faults: list[Fault] = []
        self.rejected: list[tuple[AnyArray, Blocker]] = []
        self.errors: dict[int, dict[int, FitErrors]] = {}
        self.failed_as: I64 = np.zeros(tables.jobs.capacity, dtype=np.int64)
        self._failures: list[Failure] = []
        self._failed_with: I32 = np.zeros(tables.jobs.capacity, dtype=np.int32)
        self.counts: Counter[str] = Counter()
        self.moved: set[int] = set()
        self.tried: set[int] = set()
        self._undone: LastTrial | None = None  # of all tasks, made when something is undone

    # -- writing ------------------------------------------------------------------------------------------------------

    def tell(self, subject: str, finding: Finding) -> None:
        """Keep a finding about a job, a queue or a pod, by its key."""
        self.told.append(Entry(self.action, subject, finding))

    def tell_of_jobs(self, rows: AnyArray, finding: Finding) -> None:
        """Keep a finding that many jobs share, so that it names none of them."""
        self.told.append(JobsEntry(self.action, rows, finding))

    def blame(self, subject: str, fault: PluginFault) -> None:
        """A plugin failed, and ``subject`` lost its turn."""
        self.faults.append(Fault(subject, fault.plugin, fault.point, fault.hook, fault.where, fault.problem))
        self.tell(subject, self.faults[-1].blocker)

    def note(self, row: int, errors: FitErrors) -> None:
        """Note why a task found no node; replaces an older note."""
        job = int(self._tables.tasks.job[row])
        self.tried.add(job)
        if job not in self.errors:
            self.errors[job] = dict(self.errors_of(job))
        self.errors[job][row] = errors

    def take(self, job: int, attempt: Attempt) -> None:
        """Take in what the attempt of a job undid, and what stands against it now."""
        self.tried.add(job)
        if self.failed_as[job]:
            self._unfail(job)
        if attempt.undone:
            if self._undone is None:
                self._undone = LastTrial.of(self._tables.tasks.capacity)
            self._undone.take(attempt.undone)
        if self._undone is not None:
            for op in attempt.placed:
                self._undone.status[list(op.placement.rows)] = -1
        self.errors[job] = dict(attempt.errors)

    def _unfail(self, job: int) -> None:
        """The job was tried again after it had failed like others: from now on it has notes of its own."""
        last_trial, rows = self.failure_of(job).last_trial, self._tables.jobs.tasks[job]
        if last_trial is not None:
            if self._undone is None:
                self._undone = LastTrial.of(self._tables.tasks.capacity)
            self._undone.status[rows], self._undone.node[rows], self._undone.evicted[rows] = last_trial
        self.failed_as[job] = 0

    def fail(self, jobs: AnyArray, failure: Failure) -> None:
        """The failure befalls some jobs of which nothing was noted before."""
        if not self._failures or self._failures[-1] is not failure:
            self._failures.append(failure)
        self.failed_as[jobs] = failure.number
        self._failed_with[jobs] = len(self._failures) - 1

    # -- again --------------------------------------------------------------------------------------------------------

    def mark(self) -> tuple[int, ...]:
        """Where the trace is."""
        return len(self.told), len(self.rejected), len(self._failures), *self._beside()

    def _beside(self) -> tuple[int, ...]:
        """How much there is that is told only where something was moved, or befell one job alone."""
        return len(self.faults), len(self.errors), len(self.tried), len(self.moved)

    def said_since(self, mark: tuple[int, ...]) -> Said | None:
        """What was told since then, None where it cannot be told again: something befell one job alone, or jobs had
        failed before."""
        told, rejected, failures, *beside = mark
        if failures or self.errors or self.tried or self._beside() != tuple(beside):
            return None
        rows = self.failed_as.nonzero()[0]
        found = tuple(self.told[told:]), tuple(self.rejected[rejected:]), tuple(self._failures)
        return Said(*found, rows, self.failed_as[rows], self._failed_with[rows])

    def say_again(self, said: Said) -> None:
        """The same was found again; nobody has failed before."""
        self.told += said.told
        self.rejected += said.rejected
        self._failures += said.failures
        self.failed_as[said.failed], self._failed_with[said.failed] = said.failed_as, said.failed_with

    # -- reading ------------------------------------------------------------------------------------------------------

    def failure_of(self, job: int) -> Failure:
        """The failure that befell a job which ``failed_as`` something."""
        return self._failures[int(self._failed_with[job])]

    def failed_with(self, jobs: AnyArray) -> AnyArray:
        """Numbers of the failures that befell some jobs, in this cycle only; -1 for none. Shapes (rows,) -> (rows,)."""
        return np.where(self.failed_as[jobs] > 0, self._failed_with[jobs], -1)

    def errors_of(self, job: int) -> Mapping[int, FitErrors]:
        """Why tasks of a job found no node, by row, in the order of trying."""
        noted = self.errors.get(job)
        if noted is not None or not self.failed_as[job]:
            return noted if noted is not None else {}
        rows = self._tables.jobs.tasks[job]
        return {int(rows[position]): errors for position, errors in self.failure_of(job).errors}

    def first_error_of(self, job: int) -> tuple[int, FitErrors] | None:
        """Why the first task of a job, in their order, found no node that is known of one; with its row."""
        noted, rows = self.errors.get(job), self._tables.jobs.tasks[job]
        if noted is not None:
            row = next((row for row in rows.tolist() if row in noted), None)
            return None if row is None else (row, noted[row])
        errors = self.failure_of(job).errors if self.failed_as[job] else ()
        if not errors:
            return None
        position, first = min(errors, key=itemgetter(0))
        return int(rows[position]), first

    def undone_of(self, job: int) -> LastTrial | None:
        """What was taken back of the tasks of a job, in their order; None where nothing was."""
        if self.failed_as[job]:
            return self.failure_of(job).last_trial
        undone = self._undone
        if undone is None:
            return None
        rows = self._tables.jobs.tasks[job]
        if not (undone.status[rows] >= 0).any():
            return None
        return LastTrial(undone.status[rows], undone.node[rows], undone.evicted[rows])

    def undone_promises(self) -> AnyArray:
        """Rows of the tasks of which a promise that others were evicted for was taken back last."""
        found = [] if self._undone is None else [self._undone.promises()]
        for number, failure in enumerate(self._failures):
            promised = failure.last_trial.promises() if failure.last_trial is not None else ()
            if len(promised):
                jobs = ((self.failed_as > 0) & (self._failed_with == number)).nonzero()[0].tolist()
                found += [self._tables.jobs.tasks[job][promised] for job in jobs]
        return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)

    @property
    def entries(self) -> Iterator[Entry]:
        """What was told, in order, one entry a step and subject."""
        uids = self._tables.jobs.uids
        for told in self.told:
            if isinstance(told, Entry):
                yield told
            else:
                yield from (Entry(told.action, uids[row], told.finding) for row in told.jobs.tolist())
