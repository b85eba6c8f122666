"""Place a part of a job: task by task on the best node that fits, all of it or nothing.

Equal tasks are placed in one operation. Source: KAI allocate (common/allocate.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple, TypeVar

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

_Reason = TypeVar("_Reason")


class NoPlacement(NamedTuple):
    """Why a part was not placed. ``subs``: its pod sets that found no place, () if it was refused as a whole.
    ``finding``: what equal parts of other jobs would find too, if that is known."""

    why: Blocker
    subs: tuple[int, ...] = ()
    finding: NoPlace | None = None


class Placer:
    """Place parts of jobs in one session.

    ``as_promised``: place a task on its nominated node if possible, because other tasks were evicted from there for it.
    """

    def __init__(self, ssn: Session) -> None:
        self.ssn, self.as_promised = ssn, False
        self._best = BestNodes(ssn)
        self.feasible = self._best.feasible
        devices = ssn.ledger.devices
        self._shared = SharedGpus(ssn, devices, self._best) if devices is not None else None
        self._steps, self._is_counted = steps_of(ssn), False
        self._without_place = PartsWithoutPlace(ssn, self.feasible) if self.is_by_class else None

    def place(
        self, stmt: Statement, part: Part, within: Bool | None = None, *, virtual: bool = False
    ) -> NoPlacement | None:
        """Place all tasks of a part, or none. Return why it is not placed, or None if it is.

        ``within`` (N,): allowed nodes. ``virtual``: simulate; all tasks become pipelined, and tasks of the part that
        were evicted may keep their node.
        """
        refused = self._refused(part)
        if refused is not None:
            return NoPlacement(refused)
        grouped = self.is_grouped(part.job)
        # A part that is placed once, on all nodes, is no search.
        self._is_counted = virtual or grouped
        is_plain = not (virtual or grouped or self.as_promised) and within is None
        # One task alone is refused by what is known of its class, without a walk.
        shared = self._without_place if is_plain and len(part.rows) > 1 else None
        known = shared.of(part) if shared is not None else None
        if known is not None:
            return self._of_finding(known, active_of(self.ssn.tables, known.sub) + known.placed)
        against = self._place_all(stmt, part, Subset(within), virtual)
        if against is not None:
            if shared is not None and against.finding is not None:
                shared.keep(part, against.finding)
            return against
        # In a simulation all tasks are pipelined anyway.
        if not virtual:
            self._all_or_wait(stmt, part)
        return None

    def _place_all(self, stmt: Statement, part: Part, within: Subset, virtual: bool) -> NoPlacement | None:
        """Place all tasks of a part, or none. Return why one finds no node, or None."""
        with stmt.trial() as trial:
            if self.is_grouped(part.job):
                against = self._place_grouped(stmt, part, within, virtual)
            else:
                against = _first(self._place_pod_set(stmt, *each, within, virtual) for each in part.tasks.items())
            if against is None:
                trial.keep()
            return against

    def _place_grouped(self, stmt: Statement, part: Part, within: Subset, virtual: bool) -> NoPlacement | None:
        """Place the tasks of a part of a job with a topology or nested sub-groups. Return why one finds no node, or
        None."""
        active = partial(active_of, self.ssn.tables)
        group = groups_of(self.ssn.tables, part, partial(in_order, self.ssn, active=active))
        lacking = lacks_domain(self.ssn, group, within)
        if lacking is not None:
            return NoPlacement(Domain(), (lacking.sub,))
        return self._place_group(stmt, group, within, virtual)

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
        if self._refused(part) is not None or self.ssn.ask(points.task_refused, Task(self.ssn.tables, row)) is not None:
            return False
        cls = int(self.ssn.tables.tasks.cls[row])
        return self.feasible.has_room(cls, node) and stmt.pipeline([row], [node]) is None

    def refutes(self, part: Part, within: Bool) -> bool:
        """Return True if some task of a part fits on none of the nodes ``within`` (N,)."""
        # Counting needs no scores, which are the larger cost.
        classes = set(self.ssn.tables.tasks.cls[part.rows].tolist())
        return not all(np.count_nonzero(self.feasible.capacity(cls)[within] > 0) for cls in classes)

    def _refused(self, part: Part) -> Blocker | None:
        """Return why the queue may not take a part, or None."""
        ssn, job = self.ssn, part.job
        queue = Queue(ssn.tables, int(ssn.tables.jobs.queue[job]))
        reason = ssn.ask(may_take, queue, part.amount(ssn.tables), bool(ssn.tables.jobs.preemptible[job]))
        if reason:
            return over_limit(queue.name, reason)
        # With Volcano's policy no plugin answers ``may_take``; its plugins are asked about tasks instead.
        return None if ssn.has(may_take) else self._tasks_refused(queue, part)

    def _tasks_refused(self, queue: Queue, part: Part) -> Blocker | None:
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

    def _place_group(self, stmt: Statement, group: Group, within: Subset, virtual: bool) -> NoPlacement | None:
        """Place all tasks of a group in the first node subset that takes it. Return why none does, also if no steps are
        left, or None."""
        cut = NoPlacement(_NOT_TRIED)
        if not self._steps.spend(SUBSET_STEPS):
            return cut
        found = self.ssn.ask(node_subsets, group, within)
        against = cut if found else NoPlacement(Domain(), subs_in(group))
        # In the order of the plugin, and the first that works: the plugin topology offers narrow domains before wide
        # ones.
        for subset in found:
            # Counting rejects most subsets and spends no step.
            if subset.nodes is not None and lacks_room(
                self.ssn, self.feasible, self.ssn.tables.tasks.cls[list(group.rows)], subset.nodes
            ):
                against = NoPlacement(NoRoom(), subs_in(group))
                continue
            if not self._steps.spend(SUBSET_STEPS):
                return against
            with stmt.trial() as trial:
                if group.sub >= 0:
                    tried = self._place_pod_set(stmt, group.sub, group.rows, subset, virtual)
                else:
                    tried = _first(self._place_group(stmt, each, subset, virtual) for each in group.inside)
                if tried is None:
                    trial.keep()
                    return None
            # Where the search was cut off, what it found before says more.
            against = against if tried == cut else tried
        return against

    def _place_pod_set(
        self, stmt: Statement, sub: int, rows: Sequence[int], within: Subset, virtual: bool
    ) -> NoPlacement | None:
        """Place the tasks of a pod set. Return why one finds no node, or None."""
        why = self._place_tasks(stmt, rows, within, virtual)
        if why is None:
            return None
        # A simulation reports nothing of single pods.
        if virtual:
            return NoPlacement(why, (sub,))
        tables = self.ssn.tables
        count = int(np.count_nonzero(tables.tasks.status[list(rows)] != PENDING))
        return self._of_finding(NoPlace(sub, count, why), active_of(tables, sub))

    def _of_finding(self, found: NoPlace, active: int) -> NoPlacement:
        """Return why a part with this pod set is not placed. ``active``: as for ``_of_gang``."""
        return NoPlacement(self._of_gang(found, active), (found.sub,), found)

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

    def _place_tasks(self, stmt: Statement, rows: Sequence[int], within: Subset, virtual: bool) -> Blocker | None:
        """Place the tasks of a pod set, runs of equal tasks together. Return why one finds no node, or None."""
        tasks = self.ssn.tables.tasks
        # Each task has a node of its own then, so equal tasks cannot be chosen together.
        if self.as_promised:
            return _first(self._place_as_promised(stmt, row, within, virtual) for row in rows)
        if len(rows) == 1:
            return self._place_equal(stmt, list(rows), int(tasks.cls[rows[0]]), within, virtual)
        runs = groupby(rows, key=tasks.cls.__getitem__)
        return _first(self._place_equal(stmt, list(equal), int(cls), within, virtual) for cls, equal in runs)

    def _place_as_promised(self, stmt: Statement, row: int, within: Subset, virtual: bool) -> Blocker | None:
        """Place a task on its nominated node, or else anywhere within the subset. Return why it finds no node, or
        None."""
        tables = self.ssn.tables
        cls, node = int(tables.tasks.cls[row]), int(tables.tasks.nominated[row])
        if node >= 0 and (within.nodes is None or within.nodes[node]):
            there = np.zeros(tables.nodes.capacity, dtype=bool)
            there[node] = True
            if self._place_equal(stmt, [row], cls, Subset(there, within.score), virtual) is None:
                return None
        return self._place_equal(stmt, [row], cls, within, virtual)

    def _place_equal(self, stmt: Statement, rows: list[int], cls: int, within: Subset, virtual: bool) -> Blocker | None:
        """Place tasks of one class. Return why one finds no node, or None."""
        unfit = self.ssn.ask(points.task_refused, Task(self.ssn.tables, rows[0]))
        # One task speaks for its class, since all of ``rows`` are equal.
        if unfit is not None:
            return Refused(TASK, unfit.reason)
        share = self._shared.share_of(cls) if self._shared is not None else None
        if share is not None:
            return _first(self._place_shared(stmt, row, share, within, virtual) for row in rows)
        while rows:
            nodes = self._best.for_equal(rows, cls, within, virtual=virtual)
            if isinstance(nodes, Blocker):
                return nodes
            # One answer for the whole run: all start, or wait, like the first.
            at_once = not virtual and self._best.starts_at_once(rows[0], cls, nodes[0])
            refused = self._put(stmt, rows[: len(nodes)], nodes, at_once=at_once)
            if refused is not None:
                return refused
            self._best.took(len(nodes))
            rows = rows[len(nodes) :]
        return None

    def _place_shared(
        self, stmt: Statement, row: int, share: GpuShare, within: Subset, virtual: bool
    ) -> Blocker | None:
        """Place a task that shares GPUs. Return why no devices have room for it, also if no step is left, or None."""
        assert self._shared is not None
        if self._is_counted and not self._steps.spend(SHARED_TASK_STEPS):
            return _NOT_TRIED
        return self._shared.place(stmt, row, share, within, virtual=virtual)

    def _put(self, stmt: Statement, rows: list[int], nodes: list[int], *, at_once: bool) -> Blocker | None:
        """Place tasks of one pod set; evicted tasks keep their node or are moved. Return why a plugin refuses, or
        None."""
        tasks = self.ssn.tables.tasks
        left = tasks.status[rows] == _RELEASING
        if not left.any():
            refusal = (stmt.allocate if at_once else stmt.pipeline)(rows, nodes)
            return Refused(PLACEMENT, refusal.reason) if refusal is not None else None
        place_again(self.ssn, stmt, rows, nodes)
        return None


def _first(reasons: Iterable[_Reason | None]) -> _Reason | None:
    """Return the first reason against something, and ask for no other after it; None if there is none."""
    return next((each for each in reasons if each is not None), None)


def placer(ssn: Session) -> Placer:
    """Return the placer of the session."""
    return ssn.shared(Placer, lambda: Placer(ssn))
