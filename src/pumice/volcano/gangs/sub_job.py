"""Placing the tasks of one sub-job inside one domain of nodes. Source: Volcano allocate (spec 03 §2.6, §2.7)."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from pumice.columns.counting import HELD, PENDING, READY
from pumice.columns.dtypes import Bool
from pumice.columns.rows import NodeRows
from pumice.columns.views import Job, Task
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Mark, Statement
from pumice.framework.cycle.trace import Kind
from pumice.framework.plugin.filter_result import FitErrors
from pumice.framework.plugin.hooks import At
from pumice.framework.plugin.point import Question
from pumice.model.blockers import CAPACITY, PLACEMENT, QueueLimit, Refused
from pumice.model.status import TaskStatus
from pumice.placing.choose import Choice, placing_of
from pumice.volcano import points
from pumice.volcano.gangs.attempt import OpenAttempt
from pumice.volcano.gangs.pending_tasks import SubJobQueue
from pumice.volcano.gangs.readiness import Lost, sub_missing, sub_pipelined, takes_on_by_class


class Domain:
    """The nodes of one hypernode; the top one is the whole cluster."""

    __slots__ = ("hypernode", "is_top", "name", "nodes")

    def __init__(self, ssn: Session, hypernode: int) -> None:
        tree = ssn.tables.tree
        self.hypernode = hypernode
        self.is_top = hypernode == len(tree.names) - 1
        self.nodes = (
            placing_of(ssn).feasible.all_nodes
            if self.is_top
            else NodeRows(ssn.tables, tree.nodes[hypernode].astype(np.int64))
        )
        self.name = "" if self.is_top else tree.names[hypernode]


class Reached(IntEnum):
    """What came of placing the tasks of a sub-job."""

    NOTHING = 0
    PIPELINED = 1
    READY = 2


def allocate_tasks(
    ssn: Session,
    stmt: Statement,
    sub: int,
    sheet: SubJobQueue,
    domain: Domain,
    trying: OpenAttempt,
    *,
    cached: bool = True,
) -> Reached:
    """Place tasks of the sheet until the sub-job is ready or no more can be placed.

    ``cached``: a node that failed one task of a role is not tried for the next one. Where nothing was reached, the
    operations have been rolled back.
    """
    if not len(domain.nodes):
        return Reached.NOTHING
    mark = stmt.mark()
    placer = _Placer(ssn, stmt, sub, sheet, domain, trying, cached)
    if placer.run():
        return Reached.READY
    if placer.is_in_vain:
        return Reached.NOTHING
    if sub_pipelined(ssn, sub):
        return Reached.PIPELINED
    placer.keep_lost(mark)
    stmt.rollback(mark)
    return Reached.NOTHING


class _Placer:
    """One pass over the sheet. ``hypernode`` is the one the sub-job holds so far, -1 none. ``missing``: how many more
    tasks it needs at least. ``is_in_vain``: too few of them find a node, so none was placed."""

    def __init__(
        self,
        ssn: Session,
        stmt: Statement,
        sub: int,
        sheet: SubJobQueue,
        domain: Domain,
        trying: OpenAttempt,
        cached: bool,
    ) -> None:
        self.ssn, self.stmt, self.sub, self.sheet, self.domain, self.trying = ssn, stmt, sub, sheet, domain, trying
        self.job = int(ssn.tables.subs.job[sub])
        self.queue = int(ssn.tables.jobs.queue[self.job])
        self.has_topology = ssn.tables.subs.topologies[sub] is not None
        self.hypernode = int(ssn.tables.subs.hypernode[sub])
        #: By role: nodes of the domain that have not failed a task of it. Such a node is not tried for the next one,
        #: whatever that asks for (error cache). None where that makes no difference.
        self.open_to: dict[int, Bool] | None = {} if cached and not sheet.uniform_roles else None
        self.by_class = ssn.hooks.known("queues by class", (points.allocatable,), takes_on_by_class)
        self.missing = sub_missing(ssn, self.sub)
        self.is_in_vain = False
        self.lost: Lost | None = None  # of a gang that may be left out once more is known

    def run(self) -> bool:
        """Place what can be placed. Whether the sub-job is ready now."""
        ssn, sheet = self.ssn, self.sheet
        full, reason = False, ""
        while sheet:
            rows = sheet.next(max(1, self.missing))
            count, why = self.trying.allowed(self.queue, rows, self.stmt)
            if count == 0:
                full, reason = True, reason or why
                sheet.position += sheet.run_length() if self.by_class else 1
                continue
            if sheet.is_gated(rows[0]) or self._role_failed(rows[0]):
                sheet.position += 1
                continue
            if not self._place(rows[:count]) and not self._go_on():
                break
            if self.is_in_vain:
                full = len(self.stmt.undone[-1].placement.rows) == count < len(rows)
                break
            self.missing = sub_missing(ssn, self.sub)
            if self.missing == 0:
                break
        if full:
            self.trying.findings.append(QueueLimit(ssn.tables.queues.names[self.queue], CAPACITY, detail=reason))
        return self.missing == 0

    def _role_failed(self, row: int) -> bool:
        """Another task of the role found no node in this attempt, so this one is not tried."""
        role = int(self.ssn.tables.tasks.role[row])
        if role == 0 or role not in self.trying.failed_roles(self.sub):
            return False
        self.trying.errors[row] = FitErrors(skipped=True)
        return True

    def _place(self, rows: list[int]) -> bool:
        """Place the task at the position, with those after it that can be placed together with it. False when it found
        no node at all."""
        ssn, sheet, row = self.ssn, self.sheet, rows[0]
        task = Task(ssn.tables, row)
        unfit = ssn.ask(points.task_refused, task)
        if unfit is not None:
            plugin = ssn.hooks.first_to_answer(points.task_refused, task)
            count = len(placing_of(ssn).feasible.all_nodes)
            self.trying.errors[row] = FitErrors.everywhere(unfit, count, plugin)
            sheet.position += 1
            return False
        if self.has_topology:
            ssn.journal.put(ssn.tables.tasks["job_hypernode"], row, self.hypernode)
        rows = self._together(rows)
        open_to = None if self.open_to is None else dict(self.open_to)
        between = self._held_between if self.has_topology else None
        nodes = placing_of(ssn).run(rows, self.domain.nodes, open_to, between) if rows else []
        if 0 < len(nodes) < self.missing and self._cannot_stand(rows, nodes):
            return True
        if nodes and self.stmt.allocate(rows[: len(nodes)], nodes) is None:
            placing_of(ssn).took(len(nodes))
            self.open_to = open_to
            sheet.position += len(nodes)
            self._hold(nodes)
            return True
        sheet.position += 1
        return self._place_one(row)

    def _cannot_stand(self, rows: list[int], nodes: list[int]) -> bool:
        """Whether it is known that the gang is lost with what was found for the first of some tasks. Then nothing of it
        is placed, and what would have come of that is noted: it would have been taken back, and the next task would
        have found no node."""
        placed, placing = len(nodes), placing_of(self.ssn)
        if not self._is_foreseeable():
            return False
        if placed < len(rows) and not (self._needs_all() and placing.are_all(placed)):
            return False
        self.lost = Lost(self.ssn, self.job)
        if not self.lost.with_only(placed):
            return False
        self.is_in_vain = True
        self.stmt.leave_out(rows[:placed], nodes)
        if placed < len(rows):
            cls = self.sheet.classes[0]
            self.trying.errors[rows[placed]] = placing.feasible.errors_after(cls, nodes)
        return True

    def _is_foreseeable(self) -> bool:
        """Whether all that would be asked, once tasks of the gang are placed, follows from what was said before: they
        are equal, nothing of it stands, and who is asked answers for equal tasks at once."""
        ssn, sheet, tables = self.ssn, self.sheet, self.ssn.tables
        return (
            sheet.is_one_run
            and not (sheet.position or sheet.nominated or self.trying.errors or self.stmt.operations)
            and self.domain.nodes is placing_of(ssn).feasible.all_nodes
            and bool(tables.jobs.counts[self.job, PENDING] == tables.jobs.size[self.job])
            and ssn.hooks.known("for equal tasks", tuple(_AS_TASKS_ARE_PLACED), _answer_for_equal_tasks)
        )

    def keep_lost(self, mark: Mark) -> None:
        """The sub-job is not even pipelined with what stands now."""
        since = self.stmt.save(mark)
        if self.lost is not None and len(since) == 1 and since[0].kind is Kind.ALLOCATE:
            self.lost.keep(len(since[0].placement.rows))

    def _together(self, rows: list[int]) -> list[int]:
        """The first of these tasks, of which nothing has to be asked in between; nobody, where the first one is
        nominated."""
        ssn, sheet, equal = self.ssn, self.sheet, self.sheet.run_length()
        if self.has_topology or self.trying.errors:  # what comes next may rest on what came of these
            rows = rows[:equal]
        by_class = "task" not in ssn.hooks.forms(points.pre_predicate)
        if by_class and len(rows) <= equal and not sheet.nominated:
            return rows
        asked = set(sheet.classes[sheet.position : sheet.position + 1])
        for i, row in enumerate(rows):
            cls = sheet.classes[sheet.position + i]
            if row in sheet.nominated:
                return rows[:i]
            if (
                i
                and not (by_class and cls in asked)
                and ssn.ask(points.task_refused, Task(ssn.tables, row)) is not None
            ):
                return rows[:i]
            asked.add(cls)
        return rows

    def _place_one(self, row: int) -> bool:
        ssn, role = self.ssn, int(self.ssn.tables.tasks.role[row])
        open_to = self.open_to.get(role) if self.open_to is not None else None
        choice = placing_of(ssn).choose(row, self.domain.nodes, open_to=open_to, hypernode=self.domain.name)
        if self.open_to is not None and role:
            self.open_to[role] = choice.passed
        if choice.errors is not None:
            self.trying.errors[row] = choice.errors
            return False
        if choice.node >= 0:
            self._put(row, choice)
        return True

    def _put(self, row: int, choice: Choice) -> None:
        place = self.stmt.allocate if choice.idle else self.stmt.pipeline
        refusal = place([row], [choice.node])
        if refusal is not None:
            self.trying.unlike_others = True
            self.ssn.trace.tell(self.ssn.tables.tasks.pods[row].key, Refused(PLACEMENT, refusal.reason))
        else:
            self._hold([choice.node])

    def _held_between(self, row: int, node: int, following: int) -> None:
        """What the sub-job holds when the following task is chosen for."""
        tree, tasks = self.ssn.tables.tree, self.ssn.tables.tasks
        held = tree.lca(int(tree.leaf_of[node]), int(tasks.job_hypernode[row]))
        self.ssn.journal.put(tasks["job_hypernode"], following, held)

    def _hold(self, nodes: list[int]) -> None:
        if self.has_topology:
            tree = self.ssn.tables.tree
            for node in dict.fromkeys(nodes):
                self.hypernode = tree.lca(int(tree.leaf_of[node]), self.hypernode)

    def _needs_all(self) -> bool:
        """Whether the gang cannot do without any of its tasks."""
        tables = self.ssn.tables
        whole = tables.jobs.min_available[self.job] == tables.jobs.size[self.job]
        return bool(whole or tables.subs.min_available[self.sub] >= len(tables.subs.tasks[self.sub]))

    def _go_on(self) -> bool:
        """Whether the gang can still become complete after a task failed. Source: Volcano NeedContinueAllocating."""
        if self._needs_all():
            return False
        tables = self.ssn.tables
        job = Job(tables, self.job)
        if tables.jobs.has_policy[self.job]:
            return True
        failed = self.trying.failed_roles(self.sub)
        if job.min_available < tables.jobs.role_total[self.job]:
            rows = job.tasks
            pending = rows[tables.tasks.status[rows] == PENDING]
            left = sum(1 for role in tables.tasks.role[pending].tolist() if role not in failed)
            return job.ready_count + left >= job.min_available
        held = HELD.copy()
        held[TaskStatus.SUCCEEDED] = READY[TaskStatus.SUCCEEDED]
        counts = job.role_counts(held, with_best_effort=True)
        return all(counts[role] >= job.role_min[role] for role in failed if role in job.role_min)


#: Who is asked or told of a task while others of its gang are placed, and the form in which hooks there answer for
#: equal tasks at once, or do not refuse a placement.
_AS_TASKS_ARE_PLACED: dict[Question, str] = {
    points.allocatable: "run",
    points.pre_predicate: "class",
    points.on_allocate: points.on_allocate.listens,
}


def _answer_for_equal_tasks(at: At) -> bool:
    forms_hold = all(hook.form == form for point, form in _AS_TASKS_ARE_PLACED.items() for hook in at(point))
    return forms_hold and takes_on_by_class(at)


def try_nomination(ssn: Session, stmt: Statement, sub: int, sheet: SubJobQueue, trying: OpenAttempt) -> bool:
    """Place every task of the sheet on the node it is nominated to, inside the hypernode that was pinned for the
    sub-job.

    All or nothing; a miss clears the pin. Source: Volcano nomination fast path (spec 03 §2.7).
    """
    tables = ssn.tables
    pinned = int(tables.subs.nominated[sub])
    domain = Domain(ssn, pinned)
    rows = sheet.rows[sheet.position :]
    mark = stmt.mark()
    has_topology = tables.subs.topologies[sub] is not None
    if not _nominated_within(ssn, stmt, sub, rows, domain, trying) or not _place_nominated(
        ssn, stmt, rows, pinned if has_topology else -1
    ):
        stmt.rollback(mark)
        ssn.journal.put(tables.subs["nominated"], sub, -1)
        ssn.journal.put(tables.tasks["nominated"], rows, -1)
        return False
    sheet.position = len(sheet.rows)
    ssn.journal.put(tables.subs["hypernode"], sub, tables.tree.lca(int(tables.subs.hypernode[sub]), pinned))
    return True


def _nominated_within(
    ssn: Session, stmt: Statement, sub: int, rows: list[int], domain: Domain, trying: OpenAttempt
) -> bool:
    tables = ssn.tables
    inside = set(domain.nodes.rows.tolist())
    queue = int(tables.jobs.queue[tables.subs.job[sub]])
    for row in rows:
        node = int(tables.tasks.nominated[row])
        if not trying.allowed(queue, [row], stmt).tasks or node not in inside:
            return False
        one = NodeRows(tables, np.array([node]))
        if ssn.ask(points.task_refused, Task(tables, row)) or placing_of(ssn).choose(row, one).node < 0:
            return False
    return True


def _place_nominated(ssn: Session, stmt: Statement, rows: list[int], pinned: int) -> bool:
    tables = ssn.tables
    for row in rows:
        if pinned >= 0:
            ssn.journal.put(tables.tasks["job_hypernode"], row, pinned)
        choice = placing_of(ssn).choose(row, NodeRows(tables, np.array([int(tables.tasks.nominated[row])])))
        if choice.node < 0:
            return False
        place = stmt.allocate if choice.idle else stmt.pipeline
        if place([row], [choice.node]) is not None:
            return False
    return True
