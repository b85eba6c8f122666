"""What befell one job befalls the next one like it: failures that need not be found out again.

A waiting job of which nothing is placed fails in the same way as the last one of its shape and queue, as long as
nothing has been placed in between. Then what that try left behind (notes, and where the undone tries had put tasks) is
written for the new job as if it had been tried. Only where all plugins of the policy declare that they answer by shape,
and none has anything to say about a single task, such as by its labels, which no shape holds.

A failure outlives its cycle while the nodes are as they were, to the byte, and the queue would answer as it did.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

import numpy as np

from pumice.algorithms.numbers import Numbers
from pumice.columns.counting import PENDING
from pumice.columns.dtypes import F64, I8, I32, AnyArray, Bool
from pumice.columns.hypernodes import HyperNodeTree
from pumice.columns.nodes import NodeFacts
from pumice.columns.queues import QueueTable
from pumice.columns.snapshot import Shard
from pumice.columns.views import Task
from pumice.framework import points
from pumice.framework.placing import constant_scores, unopposed
from pumice.framework.policy import Policy
from pumice.framework.session import Room, Session
from pumice.framework.story import Entry
from pumice.framework.verdict import FitErrors
from pumice.volcano.placement import skipped_role

#: Failures kept at most; when there are more, all are forgotten.
KNOWN_MAX = 20_000
#: Failures that are kept for the next cycle at most: each holds some bytes a node.
KEPT_MAX = 2_000
_MEMORY, _NUMBERS = "failures of allocate", "numbers of failures"


class Aftermath(NamedTuple):
    """What an undone try left on the tasks of a job, by their position; errors in the order of noting, None for a task
    whose role had failed before."""

    status: I8
    node: I32
    evicted: Bool
    errors: tuple[tuple[int, FitErrors | None], ...]

    @property
    def is_nothing(self) -> bool:
        return not self.errors and max(self.status.tolist()) < 0

    def befall(self, ssn: Session, jobs: list[int], rows: AnyArray) -> None:
        """Leave the same on the tasks of other jobs. ``rows``: task rows of each. Shape (jobs, tasks).

        Whether that is news, and their status due, the caller says.
        """
        tasks = ssn.tables.tasks
        tried = (self.status >= 0).nonzero()[0]
        if len(tried):
            tasks.last_status[rows[:, tried]] = self.status[tried]
            tasks.last_node[rows[:, tried]] = self.node[tried]
            tasks.last_evicted[rows[:, tried]] = self.evicted[tried]
        for position, errors in self.errors:
            for job, row in zip(jobs, rows[:, position].tolist(), strict=True):
                ssn.fit_notes.note_again(job, row, skipped_role(ssn, row) if errors is None else errors)


class Watch:
    """Sees what one try leaves on tasks that had no notes before it, and what it was told."""

    __slots__ = ("_before", "_rooms", "_rows", "_ssn", "_told", "standing")

    def __init__(self, ssn: Session, rows: AnyArray) -> None:
        self._ssn, self._rows = ssn, rows
        self.standing, self._told, self._rooms = ssn.standing, len(ssn.story), len(ssn.rooms)
        tasks = ssn.tables.tasks
        self._before = tasks.last_status[rows]
        tasks.last_status[rows] = -1

    def leave(self) -> None:
        """What an earlier try had left is there again where this one left nothing."""
        tasks, rows = self._ssn.tables.tasks, self._rows
        untouched = tasks.last_status[rows] < 0
        tasks.last_status[rows[untouched]] = self._before[untouched]

    def end(self, job: int) -> Aftermath:
        """The same, and what was left."""
        rows, tasks = self._rows, self._ssn.tables.tasks
        left = Aftermath(
            tasks.last_status[rows], tasks.last_node[rows], tasks.last_evicted[rows], self._errors(job, rows)
        )
        self.leave()
        return left

    def failure(self, job: int) -> Failure | None:
        """The same, and all that is to be said of the failed try; None where others had a part in it."""
        left, ssn = self.end(job), self._ssn
        story = ssn.story[self._told :]
        if any(not isinstance(entry, Entry) or entry.subject != ssn.tables.jobs.uids[job] for entry in story):
            return None
        position = {row: i for i, row in enumerate(self._rows.tolist())}
        rooms = tuple(room._replace(task=position[room.task]) for room in ssn.rooms[self._rooms :])
        told = tuple((entry.what, entry.detail) for entry in story)
        is_nothing = left.is_nothing
        queue_alone = is_nothing and bool(rooms) and not any(room.allowed for room in rooms)
        return Failure(_number_of(ssn, left), self.standing, left, not is_nothing, told, rooms, queue_alone)

    def _errors(self, job: int, rows: AnyArray) -> tuple[tuple[int, FitErrors | None], ...]:
        notes = self._ssn.fit_notes.by_job.get(job)
        if not notes:
            return ()
        position = {row: i for i, row in enumerate(rows.tolist())}
        return tuple(
            (position[row], None if errors.skipped else errors) for row, errors in notes.items() if row in position
        )


Told = tuple[tuple[str, str], ...]  # what, and about what


class Failure(NamedTuple):
    """Failures with one ``number`` give a job one status. ``standing`` is how much stood in the session when it was
    found out, ``told`` what the story says of the job, ``rooms`` what its queue answered, about tasks by their
    position. ``queue_alone``: the queue took on none of them, and no node was looked at."""

    number: int
    standing: int
    aftermath: Aftermath
    leaves_something: bool
    told: Told
    rooms: tuple[Room, ...]
    queue_alone: bool


def _number_of(ssn: Session, left: Aftermath) -> int:
    """The number for all that a job's status says of a failure: never 0, and none that an earlier memory has given."""
    first, numbers = ssn.snapshot.memory.setdefault(_NUMBERS, (ssn.snapshot.number << 32, Numbers()))
    texts = tuple((position, errors and errors.text) for position, errors in left.errors)
    number: int = first + numbers.of((left.status.tobytes(), left.evicted.tobytes(), texts))
    return number


class Ground(NamedTuple):
    """What failures rest on beside what queues answer: all that a plugin which answers by shape may look at."""

    policy: Policy
    shard: Shard | None
    facts: NodeFacts
    tree: HyperNodeTree
    queues: QueueTable
    books: F64
    view: F64

    @staticmethod
    def under(ssn: Session) -> Ground:
        tables = ssn.tables
        nodes = tables.nodes
        return Ground(
            ssn.policy,
            ssn.snapshot.shard,
            nodes.facts,
            tables.tree,
            tables.queues,
            nodes.books.copy(),
            nodes.view.copy(),
        )

    def holds(self, ssn: Session) -> bool:
        """All but what is free on the nodes."""
        tables = ssn.tables
        return (
            self.policy is ssn.policy
            and self.shard == ssn.snapshot.shard
            and self.facts is tables.nodes.facts
            and self.tree is tables.tree
            and self.queues is tables.queues
        )

    def has_same_room(self, ssn: Session) -> bool:
        nodes = ssn.tables.nodes
        return np.array_equal(self.books, nodes.books) and np.array_equal(self.view, nodes.view)


Kind = tuple[int, int]  # queue and shape
Known = dict[Kind, Failure]


def _of_queues_alone(known: Known) -> Known:
    """Those that hold whatever is free on the nodes, as long as the queue gives the same answer."""
    return {kind: failure for kind, failure in known.items() if failure.queue_alone}


class Failures:
    """Failures of whole jobs found in this action so far, and in the last cycle if the ground still holds. Not
    ``usable`` under plugins that look at more of a job than its shape."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self._known: Known = {}
        self._older: Known = {}
        self._of_shape: dict[int, Failure] = {}  # the last one, whatever its queue
        self._ground: Ground | None = None
        self._began = ssn.standing
        self._by_class: dict[int, bool] = {}
        self._nominations = bool((ssn.tables.tasks.nominated >= 0).any())
        self.usable = ssn.policy.by_shape and not ssn.has(points.best_node)
        ground, known = ssn.snapshot.memory.pop(_MEMORY, (None, {}))
        if known and self.usable and ground.holds(ssn):
            same_room = ground.has_same_room(ssn)
            self._ground, self._older = (ground, known) if same_room else (None, _of_queues_alone(known))

    def remember(self) -> None:
        """Keep for the next cycle what still stands at the end of the action."""
        ssn = self._ssn
        kept = {kind: f for kind, f in self._known.items() if f.standing == ssn.standing or f.queue_alone}
        if self._began == ssn.standing:
            kept, ground = self._older | kept, self._ground
        else:
            kept, ground = _of_queues_alone(self._older) | kept, None
        if kept:
            few = dict(islice(kept.items(), KEPT_MAX))
            ssn.snapshot.memory[_MEMORY] = (ground or Ground.under(ssn), few)

    def repeat(self, job: int) -> bool:
        """Let the job fail like the last one of its kind, if it would; False when it has to be tried."""
        known = self._like(job)
        if known is None or not self._is_fresh(job):
            return False
        alone = np.array([job])
        self._leave(alone, known)
        self._tell(alone, known.told)
        return True

    def known_of_all(self, rows: list[int]) -> Known | None:
        """The failure of each kind among these jobs of one queue, if all of them would fail like the last one of their
        kind."""
        jobs = self._ssn.tables.jobs
        listed = np.array(rows)
        shapes = jobs.shape[listed].tolist()
        if (
            self._nominations
            or min(shapes) < 0
            or (jobs.counts[listed, PENDING] != jobs.size[listed]).any()
            or not self._ssn.fit_notes.by_job.keys().isdisjoint(rows)
        ):
            return None
        found: Known = {}
        for shape, row in dict(zip(shapes, rows, strict=True)).items():
            failure = self._like(row)
            if failure is None:
                return None
            found[int(jobs.queue[row]), shape] = failure
        return found

    def repeat_all(self, rows: list[int], known: Known) -> None:
        """Let them fail so, in their order."""
        listed, queue = np.array(rows), int(self._ssn.tables.jobs.queue[rows[0]])
        shape_of = self._ssn.tables.jobs.shape[listed]
        told = {failure.told for failure in known.values()}
        for (_, shape), failure in known.items():
            self._leave(listed[shape_of == shape], failure)
        if len(told) == 1:
            self._tell(listed, told.pop())
            return
        for i, shape in enumerate(shape_of.tolist()):
            self._tell(listed[i : i + 1], known[queue, shape].told)

    def _like(self, job: int) -> Failure | None:
        """The failure of the last one of the job's kind, if it still says something; else one of its shape in another
        queue or in the last cycle, if its own queue would answer the same."""
        jobs = self._ssn.tables.jobs
        kind = int(jobs.queue[job]), int(jobs.shape[job])
        known = self._known.get(kind)
        if known is not None:
            if known.standing == self._ssn.standing:
                return known
            if known.queue_alone and self._is_fresh(job):
                return self._taken_over(known, kind, job)
        return self._elsewhere(kind, job) or self._recall(kind, job)

    def _leave(self, rows: AnyArray, known: Failure) -> None:
        if known.leaves_something:
            jobs, tasks = rows.tolist(), self._ssn.tables.jobs.tasks
            known.aftermath.befall(self._ssn, jobs, np.array([tasks[job] for job in jobs]))
            self._ssn.failed_as[rows] = known.number

    def _tell(self, rows: AnyArray, told: Told) -> None:
        for what, detail in told:
            self._ssn.tell_of_jobs(rows, what, detail)

    def _elsewhere(self, kind: Kind, job: int) -> Failure | None:
        """A failure in another queue, unless it was for lack of room in that one."""
        known = self._of_shape.get(kind[1])
        if known is None or known.standing != self._ssn.standing or known.told or not self._is_fresh(job):
            return None
        return self._taken_over(known, kind, job)

    def _recall(self, kind: Kind, job: int) -> Failure | None:
        """A failure of the last cycle, if what it rests on is the same."""
        older = self._older.get(kind)
        if older is None or not self._is_fresh(job):
            return None
        if older.queue_alone or (self._ssn.standing == self._began and self._is_by_class(job)):
            return self._taken_over(older, kind, job)
        return None

    def _taken_over(self, failure: Failure, kind: Kind, job: int) -> Failure | None:
        """The failure as one of this kind, if the job's queue answers what it rests on."""
        ssn, rows = self._ssn, self._ssn.tables.jobs.tasks[job]
        if any(ssn.allowed_count(kind[0], int(rows[r.task]), r.wanted) != r.allowed for r in failure.rooms):
            return None
        return self._keep(kind, failure._replace(standing=ssn.standing))

    def _keep(self, kind: Kind, failure: Failure) -> Failure:
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[kind] = self._of_shape[kind[1]] = failure
        return failure

    def watch(self, job: int) -> Watch | None:
        """Call before a job is tried, and ``note`` after it. None: its failure would say nothing about others."""
        if not self._is_fresh(job):
            return None
        return Watch(self._ssn, self._ssn.tables.jobs.tasks[job])

    def note(self, job: int, watch: Watch) -> None:
        """Keep how a job failed, if it did."""
        ssn, jobs = self._ssn, self._ssn.tables.jobs
        if ssn.standing != watch.standing:
            watch.leave()
            return
        failure = watch.failure(job)
        if failure is None or ssn.job_ready(job) or not self._is_by_class(job):
            return  # it comes back for what is left of it, or its like may fare otherwise
        self._keep((int(jobs.queue[job]), int(jobs.shape[job])), failure)

    def _is_fresh(self, job: int) -> bool:
        ssn, jobs = self._ssn, self._ssn.tables.jobs
        return (
            self.usable
            and jobs.shape[job] >= 0
            and jobs.counts[job, PENDING] == jobs.size[job]
            and not ssn.fit_notes.by_job.get(job)
            and not (self._nominations and (ssn.tables.tasks.nominated[jobs.tasks[job]] >= 0).any())
        )

    def _is_by_class(self, job: int) -> bool:
        """Whether all that is said about single tasks of the job is said of their whole class; once for jobs of a
        shape."""
        ssn, jobs, shape = self._ssn, self._ssn.tables.jobs, int(self._ssn.tables.jobs.shape[job])
        found = self._by_class.get(shape)
        if found is None:
            rows = jobs.tasks[job]
            one_of = dict(zip(ssn.tables.tasks.cls[rows].tolist(), rows.tolist(), strict=True))
            tasks = [Task(ssn.tables, row) for row in one_of.values()]
            found = self._by_class[shape] = all(
                unopposed(ssn, task, ssn.all_nodes) and constant_scores(ssn, task, ssn.all_nodes) for task in tasks
            )
        return found
