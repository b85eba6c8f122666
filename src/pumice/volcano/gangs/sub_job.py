"""Place the tasks of one sub-job inside one domain of nodes. Source: Volcano allocate action
(allocateResourcesForTasks).
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from pumice.columns.counting import HELD, PENDING, READY
from pumice.columns.dtypes import Bool
from pumice.columns.rows import NodeRows
from pumice.columns.views import Job, Task
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.framework.plugin.combine import Allowed
from pumice.framework.plugin.filter_result import FitErrors
from pumice.model.blockers import CAPACITY, PLACEMENT, QueueLimit, Refused
from pumice.model.status import TaskStatus
from pumice.placing.batch import placing_of
from pumice.placing.choose import Choice
from pumice.volcano import points
from pumice.volcano.gangs.attempt import OpenAttempt
from pumice.volcano.gangs.pending_tasks import SubJobQueue
from pumice.volcano.gangs.readiness import refuses_by_class, sub_missing, sub_pipelined


class Domain:
    """The nodes of one hypernode, or only some of them. The top hypernode contains the whole cluster."""

    __slots__ = ("hypernode", "is_top", "name", "nodes")

    def __init__(self, ssn: Session, hypernode: int, only: NodeRows | None = None) -> None:
        tree = ssn.tables.tree
        self.hypernode = hypernode
        self.is_top = hypernode == len(tree.names) - 1
        if only is not None:
            self.nodes = only
        elif self.is_top:
            # The same object for the whole cluster lets batches and prefetched placements recognise it.
            self.nodes = placing_of(ssn).feasible.all_nodes
        else:
            self.nodes = NodeRows(ssn.tables, tree.nodes[hypernode].astype(np.int64))
        self.name = "" if self.is_top else tree.names[hypernode]


class _Try(IntEnum):
    """What came of a task. ``PASSED_OVER``: filters let it pass, but it was not placed."""

    FAILED = 0
    PASSED_OVER = 1
    PLACED = 2


class Progress(IntEnum):
    """What the placement of a sub-job has reached."""

    NOTHING = 0
    PIPELINED = 1
    READY = 2


def allocate_tasks(
    ssn: Session,
    stmt: Statement,
    sub: int,
    sub_queue: SubJobQueue,
    domain: Domain,
    attempt: OpenAttempt,
    *,
    cached: bool = True,
) -> Progress:
    """Place tasks of the sub-job until it is ready or no more can be placed.

    ``cached``: a node that failed for one task of a role is not tried for the next one. If nothing is reached, the
    operations are rolled back.
    """
    if not len(domain.nodes):
        return Progress.NOTHING
    mark = stmt.mark()
    placer = _Placer(ssn, stmt, sub, sub_queue, domain, attempt, cached)
    if placer.run():
        return Progress.READY
    # Checked last, so that a sub-job which is ready now is not reported as one that waits for others to leave.
    if sub_pipelined(ssn, sub):
        return Progress.PIPELINED
    stmt.rollback(mark)
    return Progress.NOTHING


class _Placer:
    """One pass over the tasks of a sub-job.

    ``hypernode``: the hypernode that the sub-job occupies so far, -1 for none. ``missing``: how many more tasks it
    needs at least.
    """

    def __init__(
        self,
        ssn: Session,
        stmt: Statement,
        sub: int,
        sub_queue: SubJobQueue,
        domain: Domain,
        attempt: OpenAttempt,
        cached: bool,
    ) -> None:
        self.ssn, self.stmt, self.sub, self.sub_queue, self.domain, self.attempt = (
            ssn,
            stmt,
            sub,
            sub_queue,
            domain,
            attempt,
        )
        self.job = int(ssn.tables.subs.job[sub])
        self.queue = int(ssn.tables.jobs.queue[self.job])
        self.has_topology = ssn.tables.subs.topologies[sub] is not None
        self.hypernode = int(ssn.tables.subs.hypernode[sub])
        #: Volcano's error cache: per role, the nodes of the domain that have not failed for a task of it. A node that
        #: failed is not tried for the next task, even if that asks for less. None if it makes no difference.
        self.open_to: dict[int, Bool] | None = {} if cached and not sub_queue.uniform_roles else None
        self.by_class = ssn.hooks.known("refusals by class", (points.allocatable,), refuses_by_class)
        self.missing = sub_missing(ssn, self.sub)

    def run(self) -> bool:
        """Place what can be placed. Return True if the sub-job is ready."""
        ssn, sub_queue = self.ssn, self.sub_queue
        refused: Allowed | None = None
        while sub_queue:
            # At most what is still missing, because Volcano commits a job as soon as it is ready and puts it back into
            # its queue. What is left of it then competes with other jobs.
            rows = sub_queue.next(max(1, self.missing))
            answer = self.attempt.allowed(self.queue, rows, self.stmt)
            if answer.tasks == 0:
                # The first that gives a reason.
                refused = refused if refused is not None and refused.reason else answer
                # Volcano skips a task that its queue refuses and asks for the next one. If equal tasks get equal
                # answers, the whole run is skipped at once.
                sub_queue.position += sub_queue.run_length() if self.by_class else 1
                continue
            if sub_queue.is_gated(rows[0]) or self._role_failed(rows[0]):
                sub_queue.position += 1
                continue
            outcome = self._place(rows[: answer.tasks])
            # A gang that can no longer become ready stops at once: its other tasks would be placed only to be taken
            # back.
            if outcome is _Try.FAILED and not self._go_on():
                break
            # Volcano asks after a placement only. A ready job therefore tries its next task at once after one that
            # failed, and does not wait for another turn.
            if outcome is _Try.PLACED:
                self.missing = sub_missing(ssn, self.sub)
                if self.missing == 0:
                    break
        if refused is not None:
            limit = QueueLimit(ssn.tables.queues.names[self.queue], CAPACITY, detail=refused.reason)
            self.attempt.findings.append(refused.blocker or limit)
        return self.missing == 0

    def _role_failed(self, row: int) -> bool:
        """Return True, and record it, if another task of the role found no node in this attempt. Source: Volcano
        TaskHasFitErrors."""
        role = int(self.ssn.tables.tasks.role[row])
        if role == 0 or role not in self.attempt.failed_roles(self.sub):
            return False
        self.attempt.fail(row, FitErrors(skipped=True))
        return True

    def _place(self, rows: list[int]) -> _Try:
        """Place the next task, and those after it that can be placed together with it. Return what came of the first
        one."""
        ssn, sub_queue, row = self.ssn, self.sub_queue, rows[0]
        task = Task(ssn.tables, row)
        unfit = ssn.ask(points.task_refused, task)
        if unfit is not None:
            plugin = ssn.hooks.first_to_answer(points.task_refused, task)
            count = len(placing_of(ssn).feasible.all_nodes)
            self.attempt.fail(row, FitErrors.everywhere(unfit, count, plugin))
            sub_queue.position += 1
            return _Try.FAILED
        if self.has_topology:
            ssn.journal.put(ssn.tables.tasks["job_hypernode"], row, self.hypernode)
        rows = self._batch(rows)
        # Copied, because a run that is not used must not change the error cache.
        open_to = None if self.open_to is None else dict(self.open_to)
        between = self._held_between if self.has_topology else None
        nodes = placing_of(ssn).run(rows, self.domain.nodes, open_to, between) if rows else []
        if nodes and self.stmt.allocate(rows[: len(nodes)], nodes) is None:
            placing_of(ssn).took(len(nodes))
            self.open_to = open_to
            sub_queue.position += len(nodes)
            self._hold(nodes)
            return _Try.PLACED
        sub_queue.position += 1
        return self._place_one(row)

    def _batch(self, rows: list[int]) -> list[int]:
        """Return the leading tasks that can be placed together, because no question is asked between them. Empty if
        the first one is nominated."""
        ssn, sub_queue, equal = self.ssn, self.sub_queue, self.sub_queue.run_length()
        # With a topology, or after errors, tasks of another class depend on how these are placed.
        if self.has_topology or self.attempt.errors:
            rows = rows[:equal]
        by_class = "task" not in ssn.hooks.forms(points.pre_predicate)
        if by_class and len(rows) <= equal and not sub_queue.nominated:
            return rows
        asked = set(sub_queue.classes[sub_queue.position : sub_queue.position + 1])
        for i, row in enumerate(rows):
            cls = sub_queue.classes[sub_queue.position + i]
            if row in sub_queue.nominated:
                return rows[:i]
            if (
                i
                and not (by_class and cls in asked)
                and ssn.ask(points.task_refused, Task(ssn.tables, row)) is not None
            ):
                return rows[:i]
            asked.add(cls)
        return rows

    def _place_one(self, row: int) -> _Try:
        """Place one task."""
        ssn, role = self.ssn, int(self.ssn.tables.tasks.role[row])
        open_to = self.open_to.get(role) if self.open_to is not None else None
        choice = placing_of(ssn).choose(row, self.domain.nodes, open_to=open_to, hypernode=self.domain.name)
        if self.open_to is not None and role:
            self.open_to[role] = choice.passed
        if choice.errors is not None:
            self.attempt.fail(row, choice.errors)
            return _Try.FAILED
        # Volcano skips a task for which filters pass but no node is chosen; that is no error.
        return self._put(row, choice) if choice.node >= 0 else _Try.PASSED_OVER

    def _put(self, row: int, choice: Choice) -> _Try:
        """Allocate or pipeline a task to the chosen node."""
        place = self.stmt.allocate if choice.idle else self.stmt.pipeline
        refusal = place([row], [choice.node])
        if refusal is not None:
            # A plugin refused this placement for reasons of its own, which need not hold for equal jobs.
            self.attempt.unlike_others = True
            self.ssn.trace.tell(self.ssn.tables.tasks.pods[row].key, Refused(PLACEMENT, refusal.reason))
            return _Try.PASSED_OVER
        self._hold([choice.node])
        return _Try.PLACED

    def _held_between(self, row: int, node: int, following: int) -> None:
        """Update what the sub-job occupies before the next task of a batch is scored."""
        tree, tasks = self.ssn.tables.tree, self.ssn.tables.tasks
        held = tree.lca(int(tree.leaf_of[node]), int(tasks.job_hypernode[row]))
        self.ssn.journal.put(tasks["job_hypernode"], following, held)

    def _hold(self, nodes: list[int]) -> None:
        """Update the hypernode that the sub-job occupies."""
        if self.has_topology:
            tree = self.ssn.tables.tree
            for node in dict.fromkeys(nodes):
                self.hypernode = tree.lca(int(tree.leaf_of[node]), self.hypernode)

    def _needs_all(self) -> bool:
        """Return True if the gang needs every one of its tasks."""
        tables = self.ssn.tables
        whole = tables.jobs.min_available[self.job] == tables.jobs.size[self.job]
        return bool(whole or tables.subs.min_available[self.sub] >= len(tables.subs.tasks[self.sub]))

    def _go_on(self) -> bool:
        """Return True if the gang can still become ready after a task failed. Source: Volcano
        NeedContinueAllocating."""
        if self._needs_all():
            return False
        tables = self.ssn.tables
        job = Job(tables, self.job)
        if tables.jobs.has_policy[self.job]:
            return True
        failed = self.attempt.failed_roles(self.sub)
        # The minimums of roles add up to more than the job needs, so they do not bind (roles_matter). It is enough that
        # tasks of roles that have not failed can fill the job's own minimum.
        if job.min_available < tables.jobs.role_total[self.job]:
            rows = job.tasks
            pending = rows[tables.tasks.status[rows] == PENDING]
            left = sum(1 for role in tables.tasks.role[pending].tolist() if role not in failed)
            return job.ready_count + left >= job.min_available
        held = HELD.copy()
        # A task that has succeeded holds nothing, and still counts for its role.
        held[TaskStatus.SUCCEEDED] = READY[TaskStatus.SUCCEEDED]
        counts = job.role_counts(held, with_best_effort=True)
        return all(counts[role] >= job.role_min[role] for role in failed if role in job.role_min)


def try_nomination(ssn: Session, stmt: Statement, sub: int, sub_queue: SubJobQueue, attempt: OpenAttempt) -> bool:
    """Place every task on its nominated node, within the hypernode that is nominated for the sub-job.

    All or nothing; a failure clears the nomination. Source: Volcano allocate action, fast path for nominated
    hypernodes.
    """
    tables = ssn.tables
    pinned = int(tables.subs.nominated[sub])
    domain = Domain(ssn, pinned)
    rows = sub_queue.rows[sub_queue.position :]
    mark = stmt.mark()
    has_topology = tables.subs.topologies[sub] is not None
    # All tasks are checked before the first is placed: a nomination is a promise for the whole gang, and half of it is
    # worth nothing.
    if not _nominated_within(ssn, stmt, sub, rows, domain, attempt) or not _place_nominated(
        ssn, stmt, rows, pinned if has_topology else -1
    ):
        stmt.rollback(mark)
        # Otherwise each later attempt of this session would try the same nodes first, and fail in the same way.
        ssn.journal.put(tables.subs["nominated"], sub, -1)
        ssn.journal.put(tables.tasks["nominated"], rows, -1)
        return False
    sub_queue.position = len(sub_queue.rows)
    ssn.journal.put(tables.subs["hypernode"], sub, tables.tree.lca(int(tables.subs.hypernode[sub]), pinned))
    return True


def _nominated_within(
    ssn: Session, stmt: Statement, sub: int, rows: list[int], domain: Domain, attempt: OpenAttempt
) -> bool:
    """Return True if all tasks are nominated to nodes in the domain and can still be placed there."""
    tables = ssn.tables
    inside = set(domain.nodes.rows.tolist())
    queue = int(tables.jobs.queue[tables.subs.job[sub]])
    for row in rows:
        node = int(tables.tasks.nominated[row])
        if not attempt.allowed(queue, [row], stmt).tasks or node not in inside:
            return False
        one = NodeRows(tables, np.array([node]))
        if ssn.ask(points.task_refused, Task(tables, row)) or placing_of(ssn).choose(row, one).node < 0:
            return False
    return True


def _place_nominated(ssn: Session, stmt: Statement, rows: list[int], pinned: int) -> bool:
    """Place tasks on their nominated nodes. Return False if one cannot be placed."""
    tables = ssn.tables
    for row in rows:
        if pinned >= 0:
            ssn.journal.put(tables.tasks["job_hypernode"], row, pinned)
        # Chosen again, because the tasks placed before may have taken the room.
        choice = placing_of(ssn).choose(row, NodeRows(tables, np.array([int(tables.tasks.nominated[row])])))
        if choice.node < 0:
            return False
        place = stmt.allocate if choice.idle else stmt.pipeline
        if place([row], [choice.node]) is not None:
            return False
    return True
