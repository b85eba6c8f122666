"""Place a part of a job: task by task on the best node that fits, all of it or nothing.

Equal tasks are placed in one operation. Source: KAI allocate (common/allocate.go).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby

import numpy as np

from pumice.columns.counting import PENDING
from pumice.columns.dtypes import Bool
from pumice.columns.rows import TaskRows
from pumice.columns.views import Queue, Task
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.framework.plugin import points
from pumice.kai.engine.budget import SHARED_TASK_STEPS, SUBSET_STEPS, steps_of
from pumice.kai.engine.chunks import in_order
from pumice.kai.engine.groups import Group, Subset, groups_of, has_sets, subs_in
from pumice.kai.engine.parts import Part, active_of
from pumice.kai.engine.placement.best_nodes import BestNodes
from pumice.kai.engine.placement.place_again import place_again
from pumice.kai.engine.placement.shared_gpus import SharedGpus
from pumice.kai.engine.placement.without_place import NoPlace, PartsWithoutPlace
from pumice.kai.engine.points import may_take, node_subsets
from pumice.kai.engine.refutation import lacks_domain, lacks_room
from pumice.kai.reasons import over_limit
from pumice.model.blockers import (
    CAPACITY,
    PLACEMENT,
    TASK,
    Blocker,
    Domain,
    GangPartial,
    NoRoom,
    QueueLimit,
    Refused,
    SearchCut,
)
from pumice.model.devices.gpu import GpuShare
from pumice.model.status import TaskStatus

_RELEASING, _ALLOCATED = int(TaskStatus.RELEASING), int(TaskStatus.ALLOCATED)
#: Reason of a part that was not tried, because the search was cut off before it.
_NOT_TRIED: Blocker = SearchCut("", 0)


class Placer:
    """Place parts of jobs in one session.

    ``why``: reason why the last part was not placed. ``failed``: pod sets of it that found no place, () if the part was
    placed, or was refused as a whole. ``as_promised``: place a task on its nominated node if possible,
    because other tasks were evicted from there for it.
    """

    def __init__(self, ssn: Session) -> None:
        self.ssn, self.why, self.as_promised = ssn, _NOT_TRIED, False
        self.failed: tuple[int, ...] = ()
        self._best = BestNodes(ssn)
        self.feasible = self._best.feasible
        devices = ssn.ledger.devices
        self._shared = SharedGpus(ssn, devices, self._best) if devices is not None else None
        self._steps, self._is_counted = steps_of(ssn), False
        self._without_place = PartsWithoutPlace(ssn, self.feasible) if self.is_by_class else None
        self._lack = NoPlace(-1, 0, NoRoom())  # of the pod set that failed last

    def place(self, stmt: Statement, part: Part, within: Bool | None = None, *, virtual: bool = False) -> bool:
        """Place all tasks of a part, or none.

        ``within`` (N,): allowed nodes. ``virtual``: simulate; all tasks become pipelined, and tasks of the part that
        were evicted may keep their node.
        """
        self.failed = ()
        if not self._may_take(part):
            return False
        grouped = self.is_grouped(part.job)
        # A part that is placed once, on all nodes, is no search.
        self._is_counted = virtual or grouped
        is_plain = not (virtual or grouped or self.as_promised) and within is None
        # One task alone is refused by what is known of its class, without a walk.
        shared = self._without_place if is_plain and len(part.rows) > 1 else None
        known = shared.of(part) if shared is not None else None
        if known is not None:
            self._fail_like(part, known)
            return False
        if not self._place_all(stmt, part, Subset(within), virtual):
            if shared is not None:
                shared.keep(part, self._lack)
            return False
        # In a simulation all tasks are pipelined anyway.
        if not virtual:
            self._all_or_wait(stmt, part)
        return True

    def _place_all(self, stmt: Statement, part: Part, within: Subset, virtual: bool) -> bool:
        """Place all tasks of a part, or none. Return False, with ``failed`` set, if one finds no node."""
        with stmt.trial() as trial:
            if self.is_grouped(part.job):
                active = partial(active_of, self.ssn.tables)
                group = groups_of(self.ssn.tables, part, partial(in_order, self.ssn, active=active))
                lacking = lacks_domain(self.ssn, group, within)
                if lacking is not None:
                    self.why, self.failed = Domain(), (lacking.sub,)
                    return False
                if not self._place_group(stmt, group, within, virtual):
                    return False
            elif not all(self._place_pod_set(stmt, *each, within, virtual) for each in part.tasks.items()):
                return False
            trial.keep()
        return True

    def _fail_like(self, part: Part, found: NoPlace) -> None:
        """Set ``why`` and ``failed`` as if the part had been tried."""
        active = active_of(self.ssn.tables, found.sub) + found.placed
        self.why, self.failed = self._of_gang(found, active), (found.sub,)

    @property
    def is_by_class(self) -> bool:
        """True if all tasks of a class have equal answers on all nodes: no hook reads single tasks, no node is out of
        bounds and no GPUs are shared."""
        return self._best.is_by_class and self._shared is None

    def is_grouped(self, job: int) -> bool:
        """Return True if a job has a topology constraint or nested sub-groups."""
        return bool(self.ssn.tables.jobs.has_topology[job]) or has_sets(self.ssn.tables, job)

    def place_at(self, stmt: Statement, part: Part, node: int) -> bool:
        """Pipeline a pending part of one task to a node.

        Equal to a virtual ``place`` if ``is_by_class`` is True, the part is not grouped, and no other node has room.
        """
        row = part.rows[0]
        if not self._may_take(part) or self.ssn.ask(points.task_refused, Task(self.ssn.tables, row)) is not None:
            return False
        cls = int(self.ssn.tables.tasks.cls[row])
        return self.feasible.has_room(cls, node) and stmt.pipeline([row], [node]) is None

    def refutes(self, part: Part, within: Bool) -> bool:
        """Return True if some task of a part fits on none of the nodes ``within`` (N,)."""
        # Counting needs no scores, which are the larger cost.
        classes = set(self.ssn.tables.tasks.cls[part.rows].tolist())
        return not all(np.count_nonzero(self.feasible.capacity(cls)[within] > 0) for cls in classes)

    def _may_take(self, part: Part) -> bool:
        """Return True if the queue may take the part; else set ``why``."""
        ssn, job = self.ssn, part.job
        queue = Queue(ssn.tables, int(ssn.tables.jobs.queue[job]))
        reason = ssn.ask(may_take, queue, part.amount(ssn.tables), bool(ssn.tables.jobs.preemptible[job]))
        against = over_limit(queue.name, reason) if reason else None
        if against is None and not ssn.has(may_take):
            # With Volcano's policy no plugin answers ``may_take``; its plugins are asked about tasks instead.
            against = self._refused(queue, part)
        self.why = against or _NOT_TRIED
        return against is None

    def _refused(self, queue: Queue, part: Part) -> Blocker | None:
        """Return why the queue does not take all tasks of a part, or None."""
        allowed = self.ssn.ask(points.tasks_allowed, queue, TaskRows(self.ssn.tables, np.array(part.rows)))
        if allowed.tasks >= len(part.rows):
            return None
        return allowed.blocker or QueueLimit(queue.name, CAPACITY, detail=allowed.reason)

    def _all_or_wait(self, stmt: Statement, part: Part) -> None:
        """Change allocations into pipelined tasks if a pod set cannot bind its minimum yet. Source: KAI
        ConvertAllAllocatedToPipelined."""
        tables = self.ssn.tables
        # Binding a part of a gang would hold resources while the rest waits for others to be released.
        waiting = any(self._is_short(sub) for sub in tables.jobs.subs[part.job])
        if waiting:
            for rows in part.tasks.values():
                bound = [row for row in rows if tables.tasks.status[row] == _ALLOCATED]
                if bound:
                    stmt.wait(bound)

    def _is_short(self, sub: int) -> bool:
        """Return True if a pod set has pipelined tasks and fewer bound tasks than its minimum."""
        tables = self.ssn.tables
        promised = int(tables.subs.counts[sub, TaskStatus.PIPELINED])
        # A gang that runs with its minimum may bind more pods while others of it wait. Pipelined tasks are active too,
        # hence the difference.
        return promised > 0 and active_of(tables, sub) - promised < tables.subs.min_available[sub]

    def _place_group(self, stmt: Statement, group: Group, within: Subset, virtual: bool) -> bool:
        """Place all tasks of a group in the first node subset that takes it. Return False if none does or no steps are
        left."""
        if not self._steps.spend(SUBSET_STEPS):
            return False
        found = self.ssn.ask(node_subsets, group, within)
        if not found:
            self.why, self.failed = Domain(), subs_in(group)
        # In the order of the plugin, and the first that works: the plugin topology offers narrow domains before wide
        # ones.
        for subset in found:
            # Counting rejects most subsets and spends no step.
            if subset.nodes is not None and lacks_room(
                self.ssn, self.feasible, self.ssn.tables.tasks.cls[list(group.rows)], subset.nodes
            ):
                self.why, self.failed = NoRoom(), subs_in(group)
                continue
            if not self._steps.spend(SUBSET_STEPS):
                return False
            with stmt.trial() as trial:
                if group.sub >= 0:
                    placed = self._place_pod_set(stmt, group.sub, group.rows, subset, virtual)
                else:
                    placed = all(self._place_group(stmt, each, subset, virtual) for each in group.inside)
                if placed:
                    trial.keep()
                    return True
        return False

    def _place_pod_set(self, stmt: Statement, sub: int, rows: Sequence[int], within: Subset, virtual: bool) -> bool:
        """Place the tasks of a pod set. Return False, with ``failed`` set, if one finds no node."""
        placed = self._place_tasks(stmt, rows, within, virtual)
        if not placed:
            self.failed = (sub,)
            # A simulation reports nothing of single pods.
            if not virtual:
                tables = self.ssn.tables
                count = int(np.count_nonzero(tables.tasks.status[list(rows)] != PENDING))
                self._lack = NoPlace(sub, count, self.why)
                self.why = self._of_gang(self._lack, active_of(tables, sub))
        return placed

    def _of_gang(self, found: NoPlace, active: int) -> Blocker:
        """Return why a pod set finds no place: for one below its minimum with the number of its tasks that were placed
        before. ``active``: its active tasks with these. Source: KAI newFailedTaskAllocationError."""
        tables, (sub, placed, why) = self.ssn.tables, found
        job, minimum = int(tables.subs.job[sub]), int(tables.subs.min_available[sub])
        gang = tables.jobs.groups[job].gang
        named = gang.sub_groups if gang is not None else ()
        # KAI asks for the number if any pod set of the job needs several pods.
        if max((minimum, *(each.min_member for each in named))) < 2 or active >= minimum:
            return why
        role = tables.subs.uids[sub][len(tables.jobs.uids[job]) + 1 :] if named else ""
        return GangPartial(placed, minimum, why, role)

    # -- tasks --------------------------------------------------------------------------------------------------------

    def _place_tasks(self, stmt: Statement, rows: Sequence[int], within: Subset, virtual: bool) -> bool:
        """Place the tasks of a pod set, runs of equal tasks together."""
        tasks = self.ssn.tables.tasks
        # Each task has a node of its own then, so equal tasks cannot be chosen together.
        if self.as_promised:
            return all(self._place_as_promised(stmt, row, within, virtual) for row in rows)
        if len(rows) == 1:
            return self._place_equal(stmt, list(rows), int(tasks.cls[rows[0]]), within, virtual)
        for cls, equal in groupby(rows, key=tasks.cls.__getitem__):
            if not self._place_equal(stmt, list(equal), int(cls), within, virtual):
                return False
        return True

    def _place_as_promised(self, stmt: Statement, row: int, within: Subset, virtual: bool) -> bool:
        """Place a task on its nominated node, or else anywhere within the subset."""
        tables = self.ssn.tables
        cls, node = int(tables.tasks.cls[row]), int(tables.tasks.nominated[row])
        if node >= 0 and (within.nodes is None or within.nodes[node]):
            there = np.zeros(tables.nodes.capacity, dtype=bool)
            there[node] = True
            if self._place_equal(stmt, [row], cls, Subset(there, within.score), virtual):
                return True
        return self._place_equal(stmt, [row], cls, within, virtual)

    def _place_equal(self, stmt: Statement, rows: list[int], cls: int, within: Subset, virtual: bool) -> bool:
        """Place tasks of one class. Return False, with ``why`` set, if one finds no node."""
        unfit = self.ssn.ask(points.task_refused, Task(self.ssn.tables, rows[0]))
        # One task speaks for its class, since all of ``rows`` are equal.
        if unfit is not None:
            self.why = Refused(TASK, unfit.reason)
            return False
        share = self._shared.share_of(cls) if self._shared is not None else None
        if share is not None:
            return all(self._place_shared(stmt, row, share, within, virtual) for row in rows)
        while rows:
            nodes = self._best.for_equal(rows, cls, within, virtual=virtual)
            if not nodes:
                self.why = self._best.why
                return False
            # One answer for the whole run: all start, or wait, like the first.
            at_once = not virtual and self._best.starts_at_once(rows[0], cls, nodes[0])
            if not self._put(stmt, rows[: len(nodes)], nodes, at_once=at_once):
                return False
            self._best.took(len(nodes))
            rows = rows[len(nodes) :]
        return True

    def _place_shared(self, stmt: Statement, row: int, share: GpuShare, within: Subset, virtual: bool) -> bool:
        """Place a task that shares GPUs. Return False, with ``why`` set, if no devices have room for it, and if no step
        is left."""
        assert self._shared is not None
        if self._is_counted and not self._steps.spend(SHARED_TASK_STEPS):
            return False
        why = self._shared.place(stmt, row, share, within, virtual=virtual)
        self.why = why or self.why
        return why is None

    def _put(self, stmt: Statement, rows: list[int], nodes: list[int], *, at_once: bool) -> bool:
        """Place tasks of one pod set; evicted tasks keep their node or are moved. Return False, with ``why`` set, if a
        plugin refuses."""
        tasks = self.ssn.tables.tasks
        left = tasks.status[rows] == _RELEASING
        if not left.any():
            refusal = (stmt.allocate if at_once else stmt.pipeline)(rows, nodes)
            self.why = Refused(PLACEMENT, refusal.reason) if refusal is not None else self.why
            return refusal is None
        place_again(self.ssn, stmt, rows, nodes)
        return True


def placer(ssn: Session) -> Placer:
    """Return the placer of the session."""
    return ssn.shared(Placer, lambda: Placer(ssn))
