"""What a cycle tried and what prevented placements: written while it runs, read by explanations and reports.

``Attempt`` is the result of one attempt to place a job. The action returns it, and the trace takes it in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
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
    """Kinds of operations on tasks."""

    ALLOCATE = 0
    PIPELINE = 1
    EVICT = 2
    # A victim that keeps its place after all. It is an operation of its own, because plugins were notified of the
    # eviction and must be notified that the task holds its resources again.
    STAY = 3


#: The state to which an operation moves tasks. Tasks that stay return to the state in which they were.
AFTER = {
    Kind.ALLOCATE: TaskStatus.ALLOCATED,
    Kind.PIPELINE: TaskStatus.PIPELINED,
    Kind.EVICT: TaskStatus.RELEASING,
    Kind.STAY: TaskStatus.RUNNING,
}


class Operation(NamedTuple):
    """One change of placements. ``reason``: that of an eviction, which users see. ``evicted``: for a pipelining,
    victims left for it; for an eviction, the same tasks were evicted before, so that it is not reported again."""

    kind: Kind
    placement: Placement
    reason: str = ""
    evicted: bool = False


class Question(NamedTuple):
    """How many of the next ``tasks`` (rows, or positions in the job) the queue may take, the answer, and the ``reason``
    if it may take none, as a text and as a ``blocker``. Asked before anything of the attempt was placed."""

    tasks: tuple[int, ...]
    allowed: int
    reason: str = ""
    blocker: Blocker | None = None


# Not a Blocker: a reader that lists what prevents a job must not have to leave these out by name.
class Deed(Struct, frozen=True):
    """What an action did for a subject, where nothing prevented it."""


class Admitted(Deed, frozen=True):
    """The job was admitted."""


class MakesRoom(Deed, frozen=True):
    """``evicted`` pods were evicted for ``pods`` pods of the job."""

    evicted: int
    pods: int


#: What the trace keeps of a subject.
Finding = Blocker | Deed
#: The subject of a fault that prevents all decisions of a cycle: a plugin cannot be opened.
WHOLE_CYCLE = "the cycle"


def rest_of_action(action: str) -> str:
    """Return the subject of a fault that ends an action: all that the action had still to do."""
    return f"action {action}"


def is_invalid(finding: Finding) -> bool:
    """Return True if the job was not tried because it cannot start as it is."""
    return isinstance(finding, GangIncomplete | Missing) or (isinstance(finding, Refused) and finding.what == JOB)


class Attempt(NamedTuple):
    """``placed``: operations in effect. ``undone``: those that were taken back, in that order. ``errors``: task rows
    that found no node, in the order in which they were tried. ``asked``: questions to the queue before anything was
    placed. ``asked_again``: the queue was asked later too, and the answer may rest on what was placed by then.
    ``findings``: what else the trace should keep of the job."""

    placed: tuple[Operation, ...] = ()
    undone: tuple[Operation, ...] = ()
    errors: tuple[tuple[int, FitErrors], ...] = ()
    asked: tuple[Question, ...] = ()
    asked_again: bool = False
    findings: tuple[Finding, ...] = ()


class Entry(NamedTuple):
    """What ``action`` found for ``subject`` (a job, a queue or a pod), or did for it."""

    action: str
    subject: str
    finding: Finding


class JobsEntry(NamedTuple):
    """An entry that many jobs share, by row."""

    action: str
    jobs: AnyArray
    finding: Finding


class Fault(NamedTuple):
    """What a plugin did wrong. ``subject``: the job, or the phase of the cycle, that was skipped for it. ``where``:
    file and line."""

    subject: str
    plugin: str
    point: str
    hook: str
    where: str
    problem: str

    @property
    def text(self) -> str:
        """Return the fault in one sentence."""
        return f"plugin {self.plugin}, {self.hook} at {self.point} ({self.where}): {self.problem}"

    @property
    def blocker(self) -> Blocker:
        """Return the fault as a reason why the subject waits."""
        return blockers.PluginFault(self.plugin, self.point, self.hook, self.where, self.problem)


class LastTrial(NamedTuple):
    """For each of some tasks (tasks,): the state to which the operation that was taken back last had moved it (-1:
    nothing was taken back), its node, and whether pods were evicted for it."""

    status: I8
    node: I32
    evicted: Bool

    @staticmethod
    def of(
        count: int, operations: Sequence[Operation] = (), positions: Callable[[Sequence[int]], AnyArray] | None = None
    ) -> LastTrial:
        """Return what operations, in the order in which they were taken back, come to. ``positions``: of some rows
        among the tasks; without it, the rows themselves."""
        last_trial = LastTrial(np.full(count, -1, np.int8), np.full(count, -1, np.int32), np.zeros(count, dtype=bool))
        last_trial.take(operations, positions)
        return last_trial

    def promises(self) -> AnyArray:
        """Return the tasks that were promised a node for which pods had been evicted (rows,), ascending."""
        evicted = self.evicted.nonzero()[0]
        found: AnyArray = evicted[self.status[evicted] == PIPELINED]
        return found

    def take(
        self, operations: Sequence[Operation], positions: Callable[[Sequence[int]], AnyArray] | None = None
    ) -> None:
        """Take in further operations that were taken back."""
        # In order, so that the operation that was taken back last is the one that is kept.
        for op in operations:
            rows = list(op.placement.rows)
            where = rows if positions is None else positions(rows)
            self.status[where], self.node[where], self.evicted[where] = AFTER[op.kind], op.placement.nodes, op.evicted


class Failure(NamedTuple):
    """A failed attempt without its job: tasks are given by position, so that it holds for each equal job. ``number``:
    equal for failures with equal content. ``last_trial``: None if nothing was undone. ``queue``: versions of what the
    answers of the queue rest on. ``asked_again``: not all of these answers were given before something was placed.
    ``alone``: the queue took none of the tasks, and no node was examined. ``steps``: what the attempt cost."""

    number: int
    last_trial: LastTrial | None
    errors: tuple[tuple[int, FitErrors], ...]
    asked: tuple[Question, ...]
    asked_again: bool
    queue: tuple[object, ...]
    findings: tuple[Finding, ...]
    alone: bool
    steps: int = 0


class CycleTrace:
    """Everything that was recorded in one cycle. ``action``: the one that runs.

    ``failed_as`` (J,): number of the failure of a job, 0 for none; ``failure_of`` returns the failure itself, since two
    with equal content may have tried other nodes. ``tried``: other jobs for which something was recorded, with
    ``errors`` by job row and task row, in the order of recording. ``rejected``: rows of jobs, and why they were not
    admitted. ``moved``: jobs whose hypernodes should be remembered.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.action = ""
        self.log: list[Entry | JobsEntry] = []
        self.faults: list[Fault] = []
        self.rejected: list[tuple[AnyArray, Blocker]] = []
        self.errors: dict[int, dict[int, FitErrors]] = {}
        # Failures by number in an array, because a full cluster has thousands of waiting jobs, and all equal ones share
        # a failure. A dict of objects would be built anew each cycle.
        self.failed_as: I64 = np.zeros(tables.jobs.capacity, dtype=np.int64)
        # Beside ``failed_as``, because failures with equal numbers may have examined other nodes, which evictions look
        # up.
        self._failures: list[Failure] = []
        self._failed_with: I32 = np.zeros(tables.jobs.capacity, dtype=np.int32)
        self.counts: Counter[Hashable] = Counter()
        self.moved: set[int] = set()
        self.tried: set[int] = set()
        self._undone: LastTrial | None = None  # of all tasks; made when something is undone

    # -- writing ------------------------------------------------------------------------------------------------------

    def tell(self, subject: str, finding: Finding) -> None:
        """Keep a finding about a job, a queue or a pod, by its key."""
        self.log.append(Entry(self.action, subject, finding))

    def tell_of_jobs(self, rows: AnyArray, finding: Finding) -> None:
        """Record a finding that many jobs share, and that names none of them."""
        # One entry, not one per job: in a full cluster most waiting jobs share a finding.
        self.log.append(JobsEntry(self.action, rows, finding))

    def blame(self, subject: str, fault: PluginFault) -> None:
        """Record that a plugin failed and that ``subject`` was skipped for it."""
        # In two places: ``faults`` decides the exit code and the metrics, and the entry reaches those who ask about the
        # job.
        self.faults.append(Fault(subject, fault.plugin, fault.point, fault.hook, fault.where, fault.problem))
        self.tell(subject, self.faults[-1].blocker)

    def note(self, row: int, errors: FitErrors) -> None:
        """Record why a task found no node, in place of an older reason."""
        job = int(self._tables.tasks.job[row])
        self.tried.add(job)
        # A job that failed like others gets records of its own, as soon as one of them differs.
        if job not in self.errors:
            self.errors[job] = dict(self.errors_of(job))
        self.errors[job][row] = errors

    def take(self, job: int, attempt: Attempt) -> None:
        """Take in what the attempt of a job undid, and what prevents its placement now."""
        self.tried.add(job)
        if self.failed_as[job]:
            self._unfail(job)
        if attempt.undone:
            if self._undone is None:
                self._undone = LastTrial.of(self._tables.tasks.capacity)
            self._undone.take(attempt.undone)
        # A task that is placed again has no undone placement to report.
        if self._undone is not None:
            for op in attempt.placed:
                self._undone.status[list(op.placement.rows)] = -1
        # Replaced and not merged: reasons from an earlier attempt describe room that may have changed since.
        self.errors[job] = dict(attempt.errors)

    def _unfail(self, job: int) -> None:
        """Give a job records of its own, because it was tried again after it had failed like others."""
        # What the shared failure had undone is copied first; otherwise the report would lose it.
        last_trial, rows = self.failure_of(job).last_trial, self._tables.jobs.tasks[job]
        if last_trial is not None:
            if self._undone is None:
                self._undone = LastTrial.of(self._tables.tasks.capacity)
            self._undone.status[rows], self._undone.node[rows], self._undone.evicted[rows] = last_trial
        self.failed_as[job] = 0

    def fail(self, jobs: AnyArray, failure: Failure) -> None:
        """Record a failure of jobs for which nothing was recorded before."""
        # Jobs that fail one after the other usually share the object, which is then kept once.
        if not self._failures or self._failures[-1] is not failure:
            self._failures.append(failure)
        self.failed_as[jobs] = failure.number
        self._failed_with[jobs] = len(self._failures) - 1

    # -- reading ------------------------------------------------------------------------------------------------------

    def failure_of(self, job: int) -> Failure:
        """Return the failure of a job with ``failed_as``."""
        return self._failures[int(self._failed_with[job])]

    def failed_like(self, job: int) -> int:
        """Return the number of the failure that a job shares in all: 0 for none, and for a job of which an action has
        noted errors of its own since."""
        return 0 if job in self.errors else int(self.failed_as[job])

    def failed_with(self, jobs: AnyArray) -> AnyArray:
        """Return the numbers of the failures of some jobs, valid in this cycle only; -1 for none. Shapes (rows,) ->
        (rows,)."""
        return np.where(self.failed_as[jobs] > 0, self._failed_with[jobs], -1)

    def errors_of(self, job: int) -> Mapping[int, FitErrors]:
        """Return why tasks of a job found no node, by row, in the order in which they were tried."""
        noted = self.errors.get(job)
        if noted is not None or not self.failed_as[job]:
            return noted if noted is not None else {}
        rows = self._tables.jobs.tasks[job]
        return {int(rows[position]): errors for position, errors in self.failure_of(job).errors}

    def first_error_of(self, job: int) -> tuple[int, FitErrors] | None:
        """Return the row of the first task of a job, in their order, for which an error is known, and the error."""
        noted, rows = self.errors.get(job), self._tables.jobs.tasks[job]
        if noted is not None:
            row = next((row for row in rows.tolist() if row in noted), None)
            return None if row is None else (row, noted[row])
        errors = self.failure_of(job).errors if self.failed_as[job] else ()
        if not errors:
            return None
        # Errors are in the order in which tasks were tried, which need not be that of the tasks.
        position, first = min(errors, key=itemgetter(0))
        return int(rows[position]), first

    def undone_of(self, job: int) -> LastTrial | None:
        """Return what was taken back of the tasks of a job, in their order, or None if nothing was."""
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
        """Return the rows of tasks for which a promise was taken back last, after pods had been evicted for it."""
        found = [] if self._undone is None else [self._undone.promises()]
        # Failures are few, even if jobs are many, so the jobs of one are found with a mask when they are needed.
        for number, failure in enumerate(self._failures):
            promised = failure.last_trial.promises() if failure.last_trial is not None else ()
            if len(promised):
                jobs = ((self.failed_as > 0) & (self._failed_with == number)).nonzero()[0].tolist()
                found += [self._tables.jobs.tasks[job][promised] for job in jobs]
        return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)

    @property
    def entries(self) -> Iterator[Entry]:
        """Yield what was recorded, in order, one entry per step and subject."""
        uids = self._tables.jobs.uids
        for entry in self.log:
            # Entries for many jobs are kept as one, and expanded only for readers.
            if isinstance(entry, Entry):
                yield entry
            else:
                yield from (Entry(entry.action, uids[row], entry.finding) for row in entry.jobs.tolist())
