"""Share and remember failed attempts.

A pending job of which nothing is placed fails like the last one of the same queue and scheduling signature, as long as
everything is unchanged that the failed attempt rests on: the nodes, or only the queue if no node was examined. The
recorded failure is then copied to the job as if it had been tried. This holds within a cycle and across cycles.

A plugin that reads a single job or task is asked about each one. If it has an answer for one of them, the failure
belongs to that job alone and is not shared.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pumice.columns.column import Column
from pumice.columns.counting import PENDING
from pumice.columns.dtypes import AnyArray, some
from pumice.columns.rows import TaskRows
from pumice.columns.views import Queue, Task
from pumice.framework.cycle.trace import Attempt, CycleTrace, Failure, LastTrial
from pumice.framework.cycle.world import World
from pumice.framework.memo import Ground, Memo, ground
from pumice.framework.plugin import point, points
from pumice.framework.plugin.hooks import At, Hooks
from pumice.framework.plugin.resolution import Reading
from pumice.placing.batch import Placing


# Sorted once for a policy and not for each failure: which hooks there are does not change between cycles.
class _Reads(NamedTuple):
    """What the hooks of an attempt read.

    ``about_one``: whether a hook reads a single job or task, and ``of_one`` what they read. ``about_tasks``: what hooks
    about tasks and nodes read. ``but_pods``: the same without pods, since a hook with something to say about pods
    makes the failure the job's own. ``equal``: what hooks read that answer equally for all jobs of one signature.
    ``of_queue``: what hooks about the queue read. ``apart``: columns by name, in which jobs must be equal to share a
    failure, if they are columns of jobs.
    """

    about_one: bool
    of_one: Reading
    about_tasks: Reading
    but_pods: Reading
    equal: Reading
    of_queue: Reading
    apart: tuple[str, ...]

    @classmethod
    def of(cls, at: At, asks: tuple[point.Question, ...]) -> _Reads:
        """Sort the hooks of an attempt that asks at ``asks``."""
        about_tasks = [hook for hook in at(*points.ABOUT_NODES) if hook.form not in ("class", "class_node")]
        before, of_queue = at(*asks, points.pre_predicate), at(points.allocatable)
        equal = [hook for hook in before if hook.for_equals]
        one = [hook for hook in (*before, *of_queue) if not hook.for_equal_tasks]
        apart = [hook for hook in (*before, *of_queue) if hook.for_equal_tasks and not hook.for_equals]
        return cls(
            bool(one),
            of_one=Reading.of(one),
            about_tasks=Reading.of(about_tasks),
            but_pods=Reading.of(about_tasks, pods=False),
            equal=Reading.of(equal),
            of_queue=Reading.of(of_queue),
            apart=tuple(dict.fromkeys(word for hook in apart for word in hook.reads or ())),
        )


class Failures:
    """Failures of one kind of attempt, ``what``, which asks about the job at ``asks``.

    ``rest_on``: columns that attempts rest on besides nodes and what hooks at ``asks`` read. ``like``: what else must
    be equal for jobs to share a failure; with it, jobs may have failed in another way earlier in this session.
    """

    def __init__(
        self,
        world: World,
        hooks: Hooks,
        memo: Memo,
        placing: Placing,
        trace: CycleTrace,
        what: str,
        asks: tuple[point.Question, ...],
        rest_on: Iterable[Column[Any]] = (),
        like: Callable[[int], Hashable] | None = None,
    ) -> None:
        self._world, self._tables, self._hooks, self._memo = world, world.tables, hooks, memo
        self._placing, self._trace = placing, trace
        self._what, self._like = what, like
        asked = (*points.ABOUT_NODES, points.pre_predicate, points.allocatable, *asks)
        reads = self._reads = hooks.known(("failures", asks), asked, lambda at: _Reads.of(at, asks))
        self._columns_alone = reads.equal.columns(world)
        self._columns = [*reads.but_pods.columns(world), *self._columns_alone, *rest_on]
        self._queue_columns = reads.of_queue.columns(world)
        names = [name for name in reads.apart if name in world.columns and world.axis_of(name) == "job"]
        self._apart = [world.columns[name] for name in names]
        self._nominations = some(self._tables.tasks.nominated >= 0)
        self._plain: dict[int, bool] = {}
        # A hook at best_node chooses freely between equal nodes, so attempts of equal jobs may differ.
        self._usable = not hooks.has(points.best_node)

    # -- which jobs, and what failures rest on ------------------------------------------------------------------------

    def is_fresh(self, job: int) -> bool:
        """Return True if nothing of the job is placed, tried or nominated, so that it can share failures."""
        table, trace = self._tables.jobs, self._trace
        return (
            self._usable
            and bool(table.signature[job] >= 0)
            # Equal by counts is enough: the signature covers all tasks, and here all of them are pending.
            and bool(table.counts[job, PENDING] == table.size[job])
            and not (self._like is None and trace.failed_as[job])
            # An earlier action may have found something for this job that others do not share.
            and job not in trace.errors
            and not (self._nominations and (self._tables.tasks.nominated[table.tasks[job]] >= 0).any())
        )

    def are_equal(self, jobs: AnyArray) -> bool:
        """Return True if all of these jobs are fresh, and those of one queue and signature share a failure."""
        table, trace, errors = self._tables.jobs, self._trace, self._trace.errors
        signatures = table.signature[jobs]
        if not self._usable or some(signatures < 0) or self._reads.about_one:
            return False
        if some(table.counts[jobs, PENDING] != table.size[jobs]):
            return False
        if self._like is None and np.count_nonzero(trace.failed_as[jobs]):
            return False
        listed = jobs.tolist()
        if errors and not errors.keys().isdisjoint(listed):
            return False
        # One job of each signature is enough, since the answer is equal for all of them.
        if not self._all_plain(dict(zip(signatures.tolist(), listed, strict=True)).values()):
            return False
        nominated = self._tables.tasks.nominated
        return not (self._nominations and any((nominated[table.tasks[job]] >= 0).any() for job in listed))

    def distinguishing_columns(self, rows: AnyArray) -> list[AnyArray]:
        """Return columns (rows,) in which jobs must be equal to share a failure, besides what the action adds."""
        return [self._tables.jobs.signature[rows], *(column.array[rows] for column in self._apart)]

    def holds_for_equal(self, job: int) -> bool:
        """Return True if a failure of the job holds for equal jobs, and a failure of a task for equal tasks."""
        return self._usable and int(self._tables.jobs.signature[job]) >= 0 and not self._is_single(job)

    def _is_single(self, job: int) -> bool:
        """Return True if a failure of the job holds for no other job."""
        return self._reads.about_one or not self._is_plain(job)

    def _is_plain(self, job: int) -> bool:
        """Return True if hooks about single tasks answer per class for the job's tasks."""
        found = self._plain.get(int(self._tables.jobs.signature[job]))
        return self._all_plain((job,)) if found is None else found

    def _all_plain(self, jobs: Iterable[int]) -> bool:
        """Return True if hooks about single tasks answer per class for the tasks of all of these jobs."""
        tables, rests_on = self._tables, None
        for job in jobs:
            signature = int(tables.jobs.signature[job])
            found = self._plain.get(signature)
            if found is None:
                # Made once for all of them, since nothing moves while hooks are asked.
                if rests_on is None:
                    about_tasks = self._reads.about_tasks.columns(self._world)
                    rests_on = (*self._placing.feasible.everything(), tables.tree.version, *ground(*about_tasks))
                found = self._plain[signature] = self._from_memo_if_plain(job, rests_on)
            if not found:
                return False
        return True

    def _from_memo_if_plain(self, job: int, rests_on: Ground) -> bool:
        """Return whether hooks about single tasks answer per class, from the memo."""
        question = "plain", int(self._tables.jobs.signature[job])
        known: tuple[bool] = self._memo.get(question, rests_on, lambda: (self._ask_if_plain(job),))
        return known[0]

    def _ask_if_plain(self, job: int) -> bool:
        """Ask the hooks about one task of each class."""
        tables, nodes = self._tables, self._placing.feasible.all_nodes
        rows = tables.jobs.tasks[job]
        # By array, because most gangs have thousands of tasks and one class.
        one_of = rows[np.unique(tables.tasks.cls[rows], return_index=True)[1]]
        return all(self._placing.is_plain(Task(tables, row), nodes) for row in one_of.tolist())

    def _kind(self, job: int) -> tuple[Hashable, ...]:
        """Return the key under which failures of equal jobs are kept."""
        jobs = self._tables.jobs
        apart = tuple(column.array.item(job) for column in self._apart)
        return self._what, int(jobs.queue[job]), int(jobs.signature[job]), self._like and self._like(job), apart

    def _question(self, job: int, *, single: bool, alone: bool) -> Hashable:
        """Return the memo key of a failure. ``single``: of this job only. ``alone``: no node was examined."""
        jobs, kind = self._tables.jobs, (*self._kind(job), alone)
        return (*kind, jobs.uids[job], jobs.groups[job].uid) if single else kind

    def _rests_on(self, job: int, *, single: bool, alone: bool) -> Ground:
        """Return the versions on which a failure rests."""
        tables = self._tables
        if alone:
            # The queue refused all tasks, so nodes and pods played no part. Such a failure survives placements of
            # other jobs.
            found: Ground = (tables.nodes.facts.version, tables.tree.version, *ground(*self._columns_alone))
        else:
            found = (*self._placing.feasible.everything(), tables.tree.version, *ground(*self._columns))
        if single:
            assert tables.jobs.stamps is not None
            # A hook that reads a single job or task may look at any pod.
            pods = ground(tables.tasks["view_node"], tables.tasks["pods"])
            found += (int(tables.jobs.stamps[job]), *pods, *self._reads.of_one.rests_on(self._world))
        return found

    # -- attempts -----------------------------------------------------------------------------------------------------

    def key(self, job: int) -> Hashable:
        """Return what is equal for jobs that share a failure, apart from what earlier actions found."""
        jobs = self._tables.jobs
        apart = tuple(column.array.item(job) for column in self._apart)
        same = self._what, int(jobs.queue[job]), int(jobs.signature[job]), int(jobs.priority[job]), apart
        return (*same, jobs.uids[job]) if self._is_single(job) else same

    def keep(self, job: int, attempt: Attempt, steps: int = 0) -> None:
        """Keep how the attempt of a fresh job failed, after so many steps, and write it into the trace."""
        rows = self._tables.jobs.tasks[job]
        # Tasks are stored by position in their job, so that the failure can be applied to another job.
        order = rows.argsort()

        def positions(some: Sequence[int]) -> AnyArray:
            # By array, because a gang may have thousands of tasks and fails often.
            found: AnyArray = order[np.searchsorted(rows, some, sorter=order)]
            return found

        last_trial = LastTrial.of(len(rows), attempt.undone, positions) if attempt.undone else None
        failed = positions([row for row, _ in attempt.errors]).tolist() if attempt.errors else ()
        errors = tuple((at, each) for at, (_, each) in zip(failed, attempt.errors, strict=True))
        asked = tuple(each._replace(tasks=tuple(positions(each.tasks).tolist())) for each in attempt.asked)
        alone = last_trial is None and not errors and bool(asked) and not any(question.allowed for question in asked)
        said = (b"", b"") if last_trial is None else (last_trial.status.tobytes(), last_trial.evicted.tobytes())
        content = ("said", *said, tuple((at, each.skipped, each.said) for at, each in errors))
        # Failures with equal content share a number, by which later actions compare them.
        number = self._memo.get(content, (), self._tables.versions.next)
        failure = Failure(
            number, last_trial, errors, asked, attempt.asked_again, self._queue_now(job), attempt.findings, alone, steps
        )
        single = self._is_single(job)
        question, rests_on = (
            self._question(job, single=single, alone=alone),
            self._rests_on(job, single=single, alone=alone),
        )
        self._memo.keep(question, rests_on, failure)
        kind = self._kind(job)
        # Both kinds are noted, so that ``of`` asks only for what exists; most jobs fail in one way all the time.
        self._memo.keep(kind, (), tuple(sorted({alone, *(self._memo.recall(kind, ()) or ())})))
        self._trace.fail(np.array([job]), failure)

    def of(self, job: int) -> Failure | None:
        """Return how a fresh job would fail, or None if it has to be tried."""
        known: tuple[bool, ...] | None = self._memo.recall(self._kind(job), ())
        if known is None:
            # No equal job has failed so far. This early return is what a cycle without failures pays.
            return None
        single, queue_now = self._is_single(job), self._queue_now(job)
        for alone in known:
            question = self._question(job, single=single, alone=alone)
            rests_on = self._rests_on(job, single=single, alone=alone)
            failure: Failure | None = self._memo.recall(question, rests_on)
            if failure is None:
                continue
            # The usual case: a queue in which nothing has happened.
            if failure.queue == queue_now:
                return failure
            # The queue changed, but if it still gives the same answers, the failure holds, and rests on the queue as
            # it is now.
            if not failure.asked_again and self._answers_as_before(job, failure):
                return self._memo.keep(question, rests_on, failure._replace(queue=queue_now))
        return None

    def _queue_now(self, job: int) -> Ground:
        """Return the versions on which answers about the job's queue rest."""
        queues = self._tables.queues
        assert queues.stamps is not None
        return (int(queues.stamps[self._tables.jobs.queue[job]]), *ground(*self._queue_columns))

    def _answers_as_before(self, job: int, failure: Failure) -> bool:
        """Return True if the queue gives the same answers that the failure rests on."""
        tables, rows = self._tables, self._tables.jobs.tasks[job]
        queue = Queue(tables, int(tables.jobs.queue[job]))
        return all(
            self._hooks.ask(points.tasks_allowed, queue, TaskRows(tables, rows[list(each.tasks)]))
            == (each.allowed, each.reason, each.blocker)
            for each in failure.asked
        )
