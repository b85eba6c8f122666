"""Placing the tasks of one sub-job inside one domain of nodes. Source: Volcano allocate (spec 03 §2.6, §2.7)."""

from __future__ import annotations

import numpy as np

from pumice.columns.counting import HELD, PENDING, READY
from pumice.columns.dtypes import AnyArray, Bool
from pumice.columns.rows import NodeRows
from pumice.columns.views import Job, Task
from pumice.framework.placing import Choice, choose_node, constant_scores, pick_run, unopposed
from pumice.framework.session import Session
from pumice.framework.statement import Statement
from pumice.framework.verdict import FitErrors, Verdict
from pumice.model.status import TaskStatus
from pumice.volcano.worksheet import Sheet, is_gated


class Domain:
    """The nodes of one hypernode; the top one is the whole cluster."""

    __slots__ = ("hypernode", "is_top", "name", "nodes")

    def __init__(self, ssn: Session, hypernode: int) -> None:
        tree = ssn.tables.tree
        self.hypernode = hypernode
        self.is_top = hypernode == len(tree.names) - 1
        self.nodes = ssn.all_nodes if self.is_top else NodeRows(ssn.tables, tree.nodes[hypernode].astype(np.int64))
        self.name = "" if self.is_top else tree.names[hypernode]

    @property
    def rows(self) -> AnyArray | None:
        """Node rows to choose from, None for all."""
        return None if self.is_top else self.nodes.rows


def allocate_tasks(ssn: Session, stmt: Statement, sub: int, sheet: Sheet, domain: Domain) -> bool:
    """Place tasks of the sheet until the sub-job is ready or no more can be placed.

    Returns whether the sub-job is ready or pipelined; if not, its operations have been rolled back.
    """
    if not len(domain.nodes):
        return False
    mark = stmt.mark()
    if _Placer(ssn, stmt, sub, sheet, domain).run() or ssn.sub_pipelined(sub):
        return True
    stmt.rollback(mark)
    return False


class _Placer:
    """One pass over the sheet. ``hypernode`` is the one the sub-job holds so far, -1 none."""

    def __init__(self, ssn: Session, stmt: Statement, sub: int, sheet: Sheet, domain: Domain) -> None:
        self.ssn, self.stmt, self.sub, self.sheet, self.domain = ssn, stmt, sub, sheet, domain
        self.job = int(ssn.tables.subs.job[sub])
        self.queue = int(ssn.tables.jobs.queue[self.job])
        self.has_topology = ssn.tables.subs.topologies[sub] is not None
        self.hypernode = int(ssn.tables.subs.hypernode[sub])
        self.blocked: dict[int, Bool] = {}  # by role, only kept where a role has several classes

    def run(self) -> bool:
        """Place what can be placed. Whether the sub-job is ready now."""
        ssn, sheet = self.ssn, self.sheet
        missing = ssn.sub_missing(self.sub)
        full = False
        while sheet:
            row = sheet.rows[sheet.position]
            want = min(max(1, missing), sheet.run_length())
            count = ssn.allowed_count(self.queue, row, want)
            if count == 0:
                full = True
                sheet.position += sheet.run_length() if ssn.rooms_by_class else 1
                continue
            if is_gated(ssn, row) or self._role_failed(row):
                sheet.position += 1
                continue
            if not self._place(row, count) and not self._go_on():
                break
            missing = ssn.sub_missing(self.sub)
            if missing == 0:
                break
        if full:
            ssn.tell(ssn.tables.jobs.uids[self.job], "queue full", ssn.tables.queues.names[self.queue])
        return missing == 0

    def _role_failed(self, row: int) -> bool:
        """Another task of the role found no node in this attempt, so this one is not tried."""
        ssn, role = self.ssn, int(self.ssn.tables.tasks.role[row])
        if role == 0 or role not in ssn.fit_notes.failed_roles(self.sub):
            return False
        ssn.fit_notes.note(row, skipped_role(ssn, row))
        return True

    def _place(self, row: int, count: int) -> bool:
        """Place the task at the position, with up to ``count - 1`` of its equals. False when it found no node at
        all."""
        ssn, sheet = self.ssn, self.sheet
        task = Task(ssn.tables, row)
        unfit = ssn.pre_predicate(task)
        if unfit is not None:
            ssn.fit_notes.note(row, FitErrors.everywhere(unfit, len(ssn.all_nodes)))
            sheet.position += 1
            return False
        if self.has_topology:
            ssn.journal.put(ssn.tables.tasks.job_hypernode, row, self.hypernode)
        if self._can_merge(task):
            rows = sheet.rows[sheet.position : sheet.position + count]
            cls, domain = task.cls.row, self.domain.rows
            nodes = ssn.plans.pick(cls, len(rows)) if domain is None else pick_run(ssn, cls, len(rows), domain)
            if nodes and self.stmt.allocate(rows[: len(nodes)], nodes) is None:
                if domain is None:
                    ssn.plans.placed(cls, len(nodes))
                sheet.position += len(nodes)
                self._hold(nodes)
                return True
        sheet.position += 1
        return self._place_one(row)

    def _can_merge(self, task: Task) -> bool:
        ssn = self.ssn
        return (
            ssn.mergeable
            and self.sheet.uniform_roles
            and ssn.tables.tasks.nominated[task.row] < 0
            and unopposed(ssn, task, self.domain.nodes)
            and constant_scores(ssn, task, self.domain.nodes)
        )

    def _place_one(self, row: int) -> bool:
        ssn = self.ssn
        blocked = self.blocked.get(int(ssn.tables.tasks.role[row]))
        choice = choose_node(ssn, row, self.domain.nodes, blocked=blocked, hypernode=self.domain.name)
        self._remember_failures(row)
        if choice.errors is not None:
            ssn.fit_notes.note(row, choice.errors)
            return False
        if choice.node >= 0:
            self._put(row, choice)
        return True

    def _put(self, row: int, choice: Choice) -> None:
        place = self.stmt.allocate if choice.idle else self.stmt.pipeline
        refusal = place([row], [choice.node])
        if refusal is not None:
            self.ssn.tell(self.ssn.tables.tasks.pods[row].key, "placement refused", refusal.reason)
        else:
            self._hold([choice.node])

    def _hold(self, nodes: list[int]) -> None:
        if self.has_topology:
            tree = self.ssn.tables.tree
            for node in dict.fromkeys(nodes):
                self.hypernode = tree.lca(int(tree.leaf_of[node]), self.hypernode)

    def _remember_failures(self, row: int) -> None:
        """A node that failed one task of a role is not tried for the next one of that role, whatever it asks for
        (error cache)."""
        ssn = self.ssn
        role = int(ssn.tables.tasks.role[row])
        if role == 0 or self.sheet.uniform_roles or not ssn.error_cache:
            return
        task, nodes = Task(ssn.tables, row), self.domain.nodes
        fit = ssn.feasibility.of(task.cls.row)
        failed = ~(fit.allowed & fit.future_fits)
        for hook in ssn.task_predicates:
            verdict: Verdict | None = hook(task, nodes)
            if verdict is not None:
                failed[nodes.rows] |= verdict.codes > 0
        before = self.blocked.get(role)
        self.blocked[role] = failed if before is None else before | failed

    def _go_on(self) -> bool:
        """Whether the gang can still become complete after a task failed. Source: Volcano NeedContinueAllocating."""
        ssn, tables = self.ssn, self.ssn.tables
        job = Job(tables, self.job)
        if job.min_available == job.size or tables.subs.min_available[self.sub] >= len(tables.subs.tasks[self.sub]):
            return False
        if tables.jobs.has_policy[self.job]:
            return True
        failed = ssn.fit_notes.failed_roles(self.sub)
        if job.min_available < tables.jobs.role_total[self.job]:
            rows = job.tasks
            pending = rows[tables.tasks.status[rows] == PENDING]
            left = sum(1 for role in tables.tasks.role[pending].tolist() if role not in failed)
            return job.ready_count + left >= job.min_available
        held = HELD.copy()
        held[TaskStatus.SUCCEEDED] = READY[TaskStatus.SUCCEEDED]
        counts = job.role_counts(held, with_best_effort=True)
        return all(counts[role] >= job.role_min[role] for role in failed if role in job.role_min)


def skipped_role(ssn: Session, row: int) -> FitErrors:
    """That a task was not tried because another one of its role had found no node."""
    tasks = ssn.tables.tasks
    name, role = tasks.pods[row].name, ssn.tables.roles[int(tasks.role[row])]
    text = f"Task {name} with role spec {role} has already predicated failed, skip"
    return FitErrors(message=text, skipped=True)


def try_nomination(ssn: Session, stmt: Statement, sub: int, sheet: Sheet) -> bool:
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
    if not _nominated_within(ssn, sub, rows, domain) or not _place_nominated(
        ssn, stmt, rows, pinned if has_topology else -1
    ):
        stmt.rollback(mark)
        ssn.journal.put(tables.subs.nominated, sub, -1)
        ssn.journal.put(tables.tasks.nominated, rows, -1)
        return False
    sheet.position = len(sheet.rows)
    ssn.journal.put(tables.subs.hypernode, sub, tables.tree.lca(int(tables.subs.hypernode[sub]), pinned))
    return True


def _nominated_within(ssn: Session, sub: int, rows: list[int], domain: Domain) -> bool:
    tables = ssn.tables
    inside = set(domain.nodes.rows.tolist())
    queue = int(tables.jobs.queue[tables.subs.job[sub]])
    for row in rows:
        node = int(tables.tasks.nominated[row])
        if not ssn.allowed_count(queue, row, 1) or node not in inside:
            return False
        one = NodeRows(tables, np.array([node]))
        if ssn.pre_predicate(Task(tables, row)) or choose_node(ssn, row, one).node < 0:
            return False
    return True


def _place_nominated(ssn: Session, stmt: Statement, rows: list[int], pinned: int) -> bool:
    tables = ssn.tables
    for row in rows:
        if pinned >= 0:
            ssn.journal.put(tables.tasks.job_hypernode, row, pinned)
        choice = choose_node(ssn, row, NodeRows(tables, np.array([int(tables.tasks.nominated[row])])))
        if choice.node < 0:
            return False
        place = stmt.allocate if choice.idle else stmt.pipeline
        if place([row], [choice.node]) is not None:
            return False
    return True
