"""Place a part of a job: task by task on the best node that fits, all of it or nothing.

One sum of scores decides; whether a task can start at once is only one term of it (``nodeavailability``). Equal tasks
for the same node are placed in one operation. Source: KAI allocate (common/allocate.go), its order of nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from math import isfinite

import numpy as np

from pumice.algorithms.top_k import top_k
from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.gpus.devices import Choice, DeviceLedger
from pumice.columns.nodes import FUTURE, IDLE
from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.views import Node, Queue, Task
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.framework.plugin import points
from pumice.kai.engine.budget import SUBSET_STEPS, steps_of
from pumice.kai.engine.choices import nodes_in_turn, within_quota
from pumice.kai.engine.chunks import in_order
from pumice.kai.engine.groups import Group, Subset, groups_of, has_sets, subs_in
from pumice.kai.engine.parts import Part, active_of
from pumice.kai.engine.place_again import place_again
from pumice.kai.engine.points import device_order, may_take, node_subsets
from pumice.kai.engine.refutation import lacks_domain, lacks_room
from pumice.kai.reasons import over_limit
from pumice.model.blockers import (
    CAPACITY,
    PLACEMENT,
    TASK,
    Blocker,
    Domain,
    NoNode,
    NoRoom,
    QueueLimit,
    Refused,
    SearchCut,
)
from pumice.model.blockers.changes import Change
from pumice.model.devices.gpu import GpuShare
from pumice.model.status import TaskStatus
from pumice.placing.derived import nodes_by_name
from pumice.placing.feasibility import ClassFit, Feasibility
from pumice.placing.k_best import KBestMerge
from pumice.placing.prefetch import PrefetchedPlacements

_RELEASING, _ALLOCATED = int(TaskStatus.RELEASING), int(TaskStatus.ALLOCATED)
_ANYWHERE = Subset()
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
        self._lacks: tuple[Change, ...] = ()  # what would help the last task that single hooks refused
        self.feasible = Feasibility(ssn.world, ssn.hooks, ssn.memo, ssn.snapshot.shard)
        self._prefetched = PrefetchedPlacements(ssn.memo, self.feasible)
        self._by_name = nodes_by_name(ssn)
        self._single = ssn.hooks.answers(points.task_filters) or ssn.hooks.answers(points.task_scores)
        self._outside = self.feasible.outside
        self._steps = steps_of(ssn)

    def place(self, stmt: Statement, part: Part, within: Bool | None = None, *, virtual: bool = False) -> bool:
        """Place all tasks of a part, or none.

        ``within`` (N,): allowed nodes. ``virtual``: simulate; all tasks become pipelined, and tasks of the part that
        were evicted may keep their node.
        """
        self.failed = ()
        if not self._may_take(part):
            return False
        with stmt.trial() as trial:
            if self.is_grouped(part.job):
                active = partial(active_of, self.ssn.tables)
                group = groups_of(self.ssn.tables, part, partial(in_order, self.ssn, active=active))
                lacking = lacks_domain(self.ssn, group, Subset(within))
                if lacking is not None:
                    self.why, self.failed = Domain(), (lacking.sub,)
                    return False
                if not self._place_group(stmt, group, Subset(within), virtual):
                    return False
            elif not all(self._place_pod_set(stmt, *each, Subset(within), virtual) for each in part.tasks.items()):
                return False
            trial.keep()
        # In a simulation all tasks are pipelined anyway.
        if not virtual:
            self._all_or_wait(stmt, part)
        return True

    @property
    def is_by_class(self) -> bool:
        """True if all tasks of a class have equal answers on all nodes: no hook reads single tasks, no node is out of
        bounds and no GPUs are shared."""
        return not self._single and self._outside is None and self.ssn.ledger.devices is None

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
        return placed

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
        devices = self.ssn.ledger.devices
        share = devices.share_of(cls) if devices is not None else None
        if share is not None:
            return all(self._place_shared(stmt, row, cls, share, within, virtual) for row in rows)
        # Without any restriction, the best nodes of a class can be prefetched for jobs to come.
        anywhere = within.is_all and not virtual and not self._single and self._outside is None
        # A simulated placement takes nothing idle, so a node with idle resources stays as good for the next task. A
        # choice for several tasks at once would count them as taken.
        alone = virtual and bool(self.feasible.of(cls).idle_fits.any())
        while rows:
            # In simulations often one node has room, the one just vacated. Then no scores are needed.
            sole = self._sole(cls, within) if virtual and len(rows) == 1 else -1
            nodes = [sole] if sole >= 0 else self._ahead(rows, cls) if anywhere else []
            nodes = nodes or self._choose(rows[:1] if alone else rows, cls, within)
            if not nodes:
                return False
            # One answer for the whole run: ``_choose`` returns as many as start, or wait, like the first.
            at_once = not virtual and self._starts_at_once(rows[0], cls, nodes[0])
            if not self._put(stmt, rows[: len(nodes)], nodes, at_once=at_once):
                return False
            if anywhere:
                self._prefetched.took(len(nodes))
            rows = rows[len(nodes) :]
        return True

    def _ahead(self, rows: list[int], cls: int) -> list[int]:
        """Return nodes for the first of equal tasks on all nodes, from placements that were prefetched."""
        question = ("prefetched by one sum", cls, self.ssn.tables.classes.identity(cls))
        return self._prefetched.next(question, len(rows), lambda count: self._choose(rows, cls, _ANYWHERE, count))

    def _sole(self, cls: int, within: Subset) -> int:
        """Return the only node with room for tasks of a class, or -1 if there is none or more than one."""
        if self._single:
            return -1
        room = self.feasible.capacity(cls) > 0
        for mask in (within.nodes, None if self._outside is None else ~self._outside):
            if mask is not None:
                room &= mask
        return int(room.argmax()) if np.count_nonzero(room) == 1 else -1

    def _choose(self, rows: list[int], cls: int, within: Subset, count: int = 0) -> list[int]:
        """Return nodes for the first of equal tasks: as many as all start at once, or all wait.

        ``count``: how many to look for, if more equal tasks follow; 0: the number of tasks.
        """
        fit, count = self.feasible.of(cls), count or len(rows)
        key = self._key(rows[0], fit, within)
        if key is None:
            return []
        node = self._best(key)
        if not isfinite(key[node]):
            self.feasible.check_scores(Task(self.ssn.tables, rows[0]), key[node])
            self.why = NoNode(self._lacks)
            return []
        if count == 1 or (self._single and len(rows) == 1):
            return [node]
        if not self._single:
            return self._pick(cls, fit, key, within, count)
        of_class = np.where(
            self._fits(fit, within), fit.score if within.score is None else fit.score + within.score, -np.inf
        )
        picked = nodes_in_turn(self.ssn, self.feasible, rows, cls, of_class, within.score, self._best) or [node]
        return picked[: self._as_the_first(cls, fit, picked)]

    def _starts_at_once(self, row: int, cls: int, node: int) -> bool:
        """Return True if a node has idle resources for a task, and not only resources that are being released."""
        tables = self.ssn.tables
        # Two rows as lists: for one node this is faster than comparing arrays.
        idle, future = tables.nodes.books[node, IDLE].tolist(), tables.nodes.books[node, FUTURE].tolist()
        at_once = all(idle[which] > limit and future[which] > limit for which, limit in tables.classes.asked[cls])
        return at_once and not self.feasible.waits_for(Task(tables, row), node)

    def _key(self, row: int, fit: ClassFit, within: Subset, more: Bool | None = None) -> F64 | None:
        """Return the score of each node for a task, -inf where it cannot run, or None if it can run nowhere.
        Shape (N,)."""
        fits = self._fits(fit, within, more)
        if not fits.any():
            self.why = NoRoom()
            return None
        score: F64 = fit.score
        if self._single:
            fits, score = self._of_task(row, fits, fit)
        return np.where(fits, score if within.score is None else score + within.score, -np.inf)

    def _fits(self, fit: ClassFit, within: Subset, more: Bool | None = None) -> Bool:
        """Return where a class fits, now or later. Shape (N,)."""
        fits = fit.allowed & fit.future_fits
        for mask in (within.nodes, None if self._outside is None else ~self._outside, more):
            if mask is not None:
                fits &= mask
        return fits

    def _place_shared(
        self, stmt: Statement, row: int, cls: int, share: GpuShare, within: Subset, virtual: bool
    ) -> bool:
        """Place a task that shares GPUs on the best node with devices for it, and on the best devices there."""
        devices, fit = self.ssn.ledger.devices, self.feasible.of(cls)
        assert devices is not None
        room = self._devices_for(share, devices) >= share.devices
        key = self._key(row, fit, within, room & within_quota(self.ssn, row, share, devices))
        if key is None:
            return False
        while isfinite(key[node := self._best(key)]):
            choice = devices.choose(node, share, partial(self._order_of, row, node))
            if choice is not None:
                return self._put_shared(stmt, row, node, choice, at_once=not virtual and bool(fit.idle_fits[node]))
            # Counts are an upper bound: a node may have room on devices that cannot be combined. Then the next node is
            # tried.
            key[node] = -np.inf
        self.feasible.check_scores(Task(self.ssn.tables, row), key[node])
        self.why = NoNode(self._lacks)
        return False

    def _devices_for(self, share: GpuShare, devices: DeviceLedger) -> AnyArray:
        """Return on how many devices of each node a share has room. Shape (N,). Read-only."""
        nodes = self.ssn.tables.nodes
        assert nodes.stamps is not None
        return self.ssn.memo.by_row(
            ("devices for", share),
            (nodes.facts.version,),
            nodes.stamps,
            lambda rows: devices.count(share, rows, soon=True),
        )

    def _order_of(self, row: int, node: int, used: F64) -> F64:
        """Return a score per device, given the used part of each. Shape (devices,)."""
        tables = self.ssn.tables
        answers = self.ssn.ask(device_order, Task(tables, row), Node(tables, node), used)
        found: F64 = np.sum(answers or [0 * used], axis=0)
        return found

    def _put_shared(self, stmt: Statement, row: int, node: int, choice: Choice, *, at_once: bool) -> bool:
        """Place a task on devices of a node. Return False, with ``why`` set, if a plugin refuses."""
        tasks, devices = self.ssn.tables.tasks, self.ssn.ledger.devices
        assert devices is not None
        if tasks.status[row] != _RELEASING:
            devices.assign(row, node, choice.slots)
            refusal = (stmt.allocate if at_once and choice.at_once else stmt.pipeline)([row], [node])
            self.why = Refused(PLACEMENT, refusal.reason) if refusal is not None else self.why
            return refusal is None
        elif tasks.node[row] == node and devices.may_stay(row, choice):
            stmt.stay([row])
        else:
            devices.reassign(row, node, choice.slots)
            stmt.promise_another([row], [node])
        return True

    def _best(self, key: F64) -> int:
        """Return the node with the highest score; of equal nodes the first by name."""
        if self._by_name is None:
            return int(key.argmax())
        # argmax returns the first of equal values, so with nodes in name order the first name wins.
        return int(self._by_name[key[self._by_name].argmax()])

    def _of_task(self, row: int, fits: Bool, fit: ClassFit) -> tuple[Bool, F64]:
        """Return filters and scores of hooks that read single tasks."""
        ssn, task, nodes = self.ssn, Task(self.ssn.tables, row), self.feasible.all_nodes
        for filter_result in ssn.ask(points.task_filters, task, nodes):
            before, fits = fits, fits & (filter_result.codes == 0)
            if before.any() and not fits.any():
                self._lacks = filter_result.changes_of_most(before)
        score = ssn.ask(points.task_scores, task, nodes, fit.score)
        return fits, np.broadcast_to(score, fits.shape)

    def _pick(self, cls: int, fit: ClassFit, key: F64, within: Subset, count: int) -> list[int]:
        """Return nodes for up to ``count`` equal tasks in order, as many as all start at once or all wait."""
        places = top_k(key if self._by_name is None else key[self._by_name], count)
        rows = places if self._by_name is None else self._by_name[places]
        if not len(rows):
            return []

        def score_after(rows: AnyArray, after: F64) -> F64:
            look = self.feasible.look(cls, NodeRows(self.ssn.tables, rows, after=after, cls=cls))
            score = look.score if within.score is None else look.score + within.score[rows]
            return np.where(look.allowed & look.future_fits, score, -np.inf)

        picked = KBestMerge(rows, places, [[score] for score in key[rows].tolist()], count, score_after).climb()
        return picked[: self._as_the_first(cls, fit, picked)]

    def _as_the_first(self, cls: int, fit: ClassFit, picked: list[int]) -> int:
        """Return how many leading tasks start at once like the first, or wait like the first."""
        after, times = [], dict.fromkeys(picked, 0.0)
        for node in picked:
            after.append(times[node])
            times[node] += 1.0
        nodes = NodeRows(self.ssn.tables, np.array(picked), after=np.array(after), cls=cls)
        same = nodes.has_room(cls, IDLE) & nodes.has_room(cls, FUTURE) == fit.idle_fits[picked[0]]
        return len(picked) if same.all() else int(same.argmin())

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
