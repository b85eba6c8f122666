"""GPUs that several pods share: what pods hold of each device, and how many whole GPUs that leaves.

Each shared device is a slot of its node, with three sums in MiB: what is held, what is being released, and what is
promised. The node's books of whole GPUs follow from them: a slot takes one GPU from what is idle while something is
held
or being released, and one from what will be idle while something is held or promised.
Source: KAI ``NodeInfo`` (gpu_sharing_node_info.go).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from pumice.columns.column import Column
from pumice.columns.dtypes import F64, I32, I64, AnyArray, Bool
from pumice.columns.nodes import FUTURE, IDLE, PIPELINED, RELEASING, USED, NodeFacts
from pumice.columns.tables import Tables
from pumice.model.devices.gpu import GPU_RESOURCE, UNKNOWN_GPU_MEMORY_MIB, GpuShare, gpu_groups, node_gpu_memory
from pumice.model.pod import Pod
from pumice.model.status import ALLOCATED_STATUSES, STATUS_COUNT, TaskStatus

#: The most slots of a node. A task's slots are the bits of one int64, whose sign bit must stay 0.
SLOTS_MAX = 62
#: The sums of a slot.
HELD, LEFT, PROMISED = range(3)

_EPS = 1e-6
_MILLI = 1000.0
#: The sum in which a task counts, by its state; -1 for none.
_SUM_OF = np.full(STATUS_COUNT, -1)
_SUM_OF[[*ALLOCATED_STATUSES, TaskStatus.STUCK]] = HELD
_SUM_OF[TaskStatus.RELEASING], _SUM_OF[TaskStatus.PIPELINED] = LEFT, PROMISED
_SUM_BY_STATE: list[int] = _SUM_OF.tolist()

#: Scores devices by the part of each that is used (0 for whole GPUs). Larger is better.
DeviceOrder = Callable[[F64], F64]


class Writes(Protocol):
    """What carries out writes: a session's journal."""

    def put(self, column: Column[AnyArray], index: Any, value: Any) -> None: ...
    def add(self, column: Column[AnyArray], index: Any, change: Any) -> None: ...


class Choice(NamedTuple):
    """Devices that were chosen for a task.

    ``slots`` has a bit for each slot: in use, or free for a whole GPU. ``at_once``: no task has to leave before.
    """

    slots: int
    at_once: bool


class DeviceLedger:
    """The sums of all slots.

    ``shares`` (N, S, 3) has the sums. ``of`` (T,) has the slots that a task holds or is promised, ``left`` (T,) those
    that it leaves for promised ones. ``mib`` (N,) is the memory of each device, ``known`` (N,) whether the node has it
    in a label. ``closed`` (N, S) marks slots that no task may join, because their node has no device for them.
    """

    __slots__ = (
        *("_first_seen", "_gpu", "_names", "_slots", "_writer"),
        *("closed", "known", "left", "mib", "of", "shares", "tables"),
    )

    def __init__(
        self,
        tables: Tables,
        writer: Writes,
        shares: Column[AnyArray],
        of: Column[AnyArray],
        left: Column[AnyArray],
        memory: tuple[F64, Bool],
    ) -> None:
        """``memory`` is what ``memory_of`` returns for the nodes."""
        self.tables, self._writer, self.shares, self.of, self.left = tables, writer, shares, of, left
        self.mib, self.known = memory
        self._gpu = tables.axis.column[GPU_RESOURCE]
        self._names: dict[tuple[int, int], str] = {}
        # The groups that pods of each node name, with their slots, and the creation time of the oldest pod of each.
        self._slots: dict[int, dict[str, int]] = {}
        self._first_seen: dict[tuple[int, str], float] = {}
        self.closed: Bool = np.zeros(shares.array.shape[:2], dtype=bool)

    # -- room for shares ----------------------------------------------------------------------------------------------

    def share_of(self, cls: int) -> GpuShare | None:
        """Return what a class requests of shared GPUs, or None."""
        found: GpuShare | None = self.tables.classes.specs[cls].gpu_share
        return found if found is not None and (found.fraction or found.memory_mib) else None

    def need(self, share: GpuShare) -> F64:
        """Return the MiB that a share takes of each device, by node; inf where it fits on no device. Shape (N,)."""
        if share.problem:  # a request that could not be parsed: the largest possible one
            return np.full(len(self.mib), np.inf)
        if share.memory_mib:
            # On a node that does not state the memory of its devices, a request in MiB cannot be compared.
            return np.where(self.known & (share.memory_mib <= self.mib), float(share.memory_mib), np.inf)
        return share.fraction * self.mib

    def joins(self, need: F64, rows: AnyArray | slice = slice(None), *, soon: bool) -> Bool:
        """Return which slots in use that are not closed have room for ``need`` MiB more. Shape (rows, S).

        ``soon``: after the tasks that are leaving have left, instead of now.
        """
        held, left, promised = _sums(self.shares.array[rows])
        # A slot that all its tasks are leaving is not joined: it will be a whole GPU, and is counted as one.
        stays = held + promised > _EPS
        taken = held + promised if soon else held + left
        in_use = (stays if soon else stays & (held + left > _EPS)) & ~self.closed[rows]
        return np.asarray(in_use & (self.mib[rows, None] - taken - need[:, None] >= -_EPS), dtype=bool)

    def count(self, share: GpuShare, rows: AnyArray | slice = slice(None), *, soon: bool) -> I32:
        """Return on how many devices of each node a share has room: slots in use, and whole GPUs. Shape (rows,).

        ``soon`` is about whole GPUs. A slot counts with what is leaving it in both cases, as in KAI's ``NodeInfo``.
        """
        need = self.need(share)[rows]
        whole = np.floor(self.tables.nodes.books[rows, FUTURE if soon else IDLE, self._gpu] / _MILLI + _EPS)
        found: I32 = (self.joins(need, rows, soon=True).sum(axis=1) + np.maximum(whole, 0.0)).astype(np.int32)
        return np.where(np.isinf(need), 0, found)

    def remainders(self) -> Bool:
        """Return which nodes have a device in use that is not full. Shape (N,)."""
        # Room for twice _EPS, for ``joins`` accepts a need that exceeds the room by up to _EPS.
        found: Bool = np.asarray(self.joins(np.full(len(self.mib), 2 * _EPS), soon=True).any(axis=1), dtype=bool)
        return found

    def free(self, rows: AnyArray | slice = slice(None)) -> F64:
        """Return what will be free of each device in use after the tasks that are leaving have left.

        0 for slots that are full, closed or not in use. Units: milli-devices, rounded. Shape (rows, S).
        """
        return np.maximum(np.rint(_MILLI * self._unused(rows)), 0.0)

    def unused(self) -> float:
        """Return the sum over all nodes of what will be free of devices in use. Units: milli-devices, not rounded."""
        return float(_MILLI * self._unused(slice(None)).sum())

    def _unused(self, rows: AnyArray | slice) -> F64:
        held, _, promised = _sums(self.shares.array[rows])
        taken = held + promised
        open_ones = (taken > _EPS) & ~self.closed[rows]
        return np.where(open_ones, 1.0 - taken / self.mib[rows, None], 0.0)

    def choose(self, node: int, share: GpuShare, order: DeviceOrder) -> Choice | None:
        """Return the best devices of a node for a share, or None if there are too few.

        Among devices with equal scores, slots in use go before whole GPUs, and lower slots before higher ones.
        """
        row = np.array([node])
        need = self.need(share)[row]
        soon, now = self.joins(need, row, soon=True)[0], self.joins(need, row, soon=False)[0]
        sums = self.shares.array[node]
        used = sums.sum(axis=1) / self.mib[node]
        books = self.tables.nodes.books[node, :, self._gpu] / _MILLI
        free = (sums <= _EPS).all(axis=1).nonzero()[0].tolist()
        # Not negative: pods that ended up on the node in other ways can make it owe more GPUs than it has.
        whole = min(max(int(books[FUTURE] + _EPS), 0), len(free))
        joined = soon.nonzero()[0].tolist()
        scores = order(np.append(used[joined], np.zeros(whole))).tolist()
        slots = joined + free[:whole]
        best = sorted(range(len(slots)), key=lambda i: (-scores[i], i >= len(joined), i))[: share.devices]
        if np.isinf(need[0]) or len(best) < share.devices:
            return None
        chosen = [slots[i] for i in best]
        fresh = sum(i >= len(joined) for i in best)
        at_once = fresh <= int(books[IDLE] + _EPS) and all(now[slot] or slot in free for slot in chosen)
        return Choice(sum(1 << slot for slot in chosen), at_once)

    def may_stay(self, row: int, choice: Choice) -> bool:
        """Return True if a task that is leaving may stay instead of moving to a choice on the same node.

        So it is if the devices are the same, or if neither its own devices nor the chosen ones have other tasks that
        hold them or are promised them.
        """
        own = int(self.of.array[row])
        if choice.slots == own:
            return True
        sums = self.shares.array[int(self.tables.tasks.node[row])]
        listed = list(slots_of(own | choice.slots))
        return not (sums[listed][:, [HELD, PROMISED]] > _EPS).any()

    # -- moves --------------------------------------------------------------------------------------------------------

    def assign(self, row: int, node: int, slots: int) -> None:
        """Set the slots of a node that a task will hold. Called before the task moves there."""
        self._name(row, node, slots)
        self._writer.put(self.of, row, slots)

    def reassign(self, row: int, node: int, slots: int) -> None:
        """Set the slots that a task is promised while it still leaves others (see ``assign``)."""
        self._name(row, node, slots)
        self._writer.put(self.left, row, int(self.of.array[row]))
        self._writer.put(self.of, row, slots)

    def _name(self, row: int, node: int, slots: int) -> None:
        """Name empty slots after their first task."""
        # Names are not rolled back. That does no harm: after a rollback the slot is empty, and is named again.
        empty = (self.shares.array[node] <= _EPS).all(axis=1)
        for slot in slots_of(slots):
            if empty[slot]:
                self._names[node, slot] = f"{self.tables.tasks.pods[row].uid}-{slot}"

    def groups_of(self, row: int) -> tuple[str, ...]:
        """Return the names of the groups of pods with which a task shares its devices."""
        node = int(self.tables.tasks.node[row])
        return tuple(self._names[node, slot] for slot in slots_of(int(self.of.array[row])))

    def groups(self) -> frozenset[tuple[int, str]]:
        """Return all groups, as pairs of the row of the node and the name."""
        return frozenset((node, name) for (node, _), name in self._names.items())

    def moved(self, rows: Sequence[int], nodes: Sequence[int], before: int, after: int) -> None:
        """Update the sums for tasks that moved, on these nodes, from one state to another."""
        source, target = _SUM_BY_STATE[before], _SUM_BY_STATE[after]
        if source == target:
            return
        for row, node in zip(rows, nodes, strict=True):
            slots = int(self.of.array[row])
            if slots and node >= 0:
                self._move(row, node, slots, source, target)

    def promised(self, rows: Sequence[int], nodes: Sequence[int]) -> None:
        """Update the sums for tasks that are leaving and were promised slots on these nodes."""
        # As if from pending, which is in no sum: in the sums of the slots that they leave they still count.
        self.moved(rows, nodes, int(TaskStatus.PENDING), int(TaskStatus.PIPELINED))

    def promise_taken_back(self, row: int) -> None:
        """Undo ``promised`` for one task, which keeps the slots that it leaves."""
        if self.of.array[row]:
            self.moved([row], [int(self.tables.tasks.node[row])], int(TaskStatus.PIPELINED), int(TaskStatus.PENDING))
            self._writer.put(self.of, row, int(self.left.array[row]))

    def _move(self, row: int, node: int, slots: int, source: int, target: int) -> None:
        share = self.share_of(int(self.tables.tasks.cls[row]))
        assert share is not None, "only tasks that share have slots"
        need = float(min(self._need_at(share, node), self.mib[node]))
        change = np.zeros(self.shares.array.shape[1:])
        chosen = list(slots_of(slots))
        if source >= 0:
            change[chosen, source] -= need
        if target >= 0:
            change[chosen, target] += need
        before = whole_gpus(self.shares.array[node])
        self._writer.add(self.shares, node, change)
        books = whole_gpus(self.shares.array[node]) - before
        if books.any():
            delta = np.zeros_like(self.tables.nodes.books[node])
            delta[:, self._gpu] = _MILLI * books
            self._writer.add(self.tables.nodes["books"], node, delta)

    def _need_at(self, share: GpuShare, node: int) -> float:
        """Return the MiB that a share takes of each device of a node."""
        # A request that could not be parsed counts as the whole device.
        if share.problem:
            return float(self.mib[node])
        return float(share.memory_mib or share.fraction * self.mib[node])

    # -- opening of a session -----------------------------------------------------------------------------------------

    def enter(self, rows: Iterable[int]) -> None:
        """Put tasks that are on nodes already on the slots that their pods name, or on free ones if they name none."""
        # Summed in arrays and written once: no slot is in use before, so no sum has to be read from a column.
        tasks, sums = self.tables.tasks, np.zeros_like(self.shares.array)
        taken, entered, named = self._slots, dict[int, int](), _named_groups(self.tables)
        for row in rows:
            node, share = int(tasks.node[row]), self.share_of(int(tasks.cls[row]))
            column = _SUM_BY_STATE[tasks.status[row]]
            if share is None or node < 0 or column < 0:
                continue
            pod = tasks.pods[row]
            # A slot without a name gets one that is a valid label, because pods that join it are labelled with it.
            groups = named(pod) or tuple(f"{pod.uid}-{i}" for i in range(share.devices))
            for group in groups:
                seen = self._first_seen.get((node, group), pod.creation)
                self._first_seen[node, group] = min(seen, pod.creation)
            slots = entered[row] = self._named_slots(node, groups, taken.setdefault(node, {}))
            sums[node, list(slots_of(slots)), column] += min(self._need_at(share, node), self.mib[node])
        if not entered:
            return
        nodes = np.array(sorted(taken))
        self._writer.put(self.of, list(entered), list(entered.values()))
        self._writer.put(self.shares, nodes, sums[nodes])
        delta = np.zeros_like(self.tables.nodes.books[nodes])
        delta[:, :, self._gpu] = _MILLI * whole_gpus(sums[nodes])
        self._writer.add(self.tables.nodes["books"], nodes, delta)

    def _named_slots(self, node: int, groups: Iterable[str], taken: dict[str, int]) -> int:
        """Return the bits of the slots of some groups. A new group gets the node's next slot, and is added to
        ``taken``."""
        # Groups for which no slot is left share the last one, so that their memory still counts.
        slots, last = 0, self.shares.array.shape[1] - 1
        for group in groups:
            if group not in taken:
                slot = taken[group] = min(len(taken), last)
                self._names[node, slot] = group
            slots |= 1 << taken[group]
        return slots

    def close_excess(self, reserved: Collection[tuple[int, str]]) -> None:
        """Close groups on nodes that have fewer devices than whole GPUs in use and groups.

        ``reserved`` has the groups for which a pod holds a device. They are closed last, and of the others the youngest
        first.
        """
        # Any user may create a pod that names a node and a group. It counts on the node, but must not make the
        # scheduler believe in a device that other pods could share.
        idle = np.floor(self.tables.nodes.books[:, IDLE, self._gpu] / _MILLI + _EPS)
        for node, slots in self._slots.items():
            # Several groups may have the last slot, which counts as one GPU only (``_named_slots``).
            excess = len(slots) - len(set(slots.values())) - int(idle[node])
            if excess > 0:
                ranked = sorted(((node, g) not in reserved, self._first_seen[node, g], g) for g in slots)
                self.closed[node, [slots[group] for *_, group in ranked[-excess:]]] = True


def _named_groups(tables: Tables) -> Callable[[Pod], tuple[str, ...]]:
    """Return a function from a pod to the groups with which it shares its devices, () if they have no name."""
    # The labels of a pod that is about to be bound are written after the decision, and those of a failed attempt may
    # still be there: until it is seen on its node, what was decided counts.
    decided = {grant.key: grant.gpu_groups for grant in tables.device_grants.objs if grant.gpu_groups}
    if not decided:
        return lambda pod: gpu_groups(pod.labels)
    return lambda pod: decided.get(pod.key) or gpu_groups(pod.labels)


def _sums(shares: F64) -> tuple[F64, F64, F64]:
    """Return the three sums of slots apart. Shapes (…, S, 3) -> three times (…, S)."""
    return shares[..., HELD], shares[..., LEFT], shares[..., PROMISED]


def slots_of(bits: int) -> Iterator[int]:
    """Iterate over the slots whose bits are set, lowest first."""
    return (slot for slot in range(bits.bit_length()) if bits >> slot & 1)


def charge_of_memory(memory_mib: float, mib: float) -> float:
    """Return the milli-devices that memory of a device of ``mib`` counts in quotas. Source: KAI, which rounds up to
    hundredths of a device."""
    return float(np.ceil(100.0 * memory_mib / mib - _EPS)) * 10.0


def memory_charge(tables: Tables, rows: Sequence[int]) -> float:
    """Return the milli-devices that tasks with requests in MiB count in quotas, on their present nodes."""
    tasks, classes, found = tables.tasks, tables.classes, 0.0
    for row in rows:
        mib, node = float(classes.share_mib[tasks.cls[row]]), int(tasks.node[row])
        if mib and node >= 0:
            share = classes.specs[tasks.cls[row]].gpu_share
            assert share is not None
            device = node_gpu_memory(tables.nodes.facts.objs[node].labels) or UNKNOWN_GPU_MEMORY_MIB
            found += share.devices * charge_of_memory(mib, device)
    return found


def whole_gpus(sums: F64) -> F64:
    """Return what slots add to each book of whole GPUs of their node. Shapes (…, S, 3) -> (…, 5)."""
    held, left, promised = (each > _EPS for each in _sums(sums))
    found = np.zeros((*sums.shape[:-2], 5))
    found[..., IDLE] = -(held | left).sum(axis=-1)
    found[..., USED] = (held | left).sum(axis=-1)
    found[..., RELEASING] = (left & ~held & ~promised).sum(axis=-1)
    found[..., PIPELINED] = (promised & ~held & ~left).sum(axis=-1)
    found[..., FUTURE] = -(held | promised).sum(axis=-1)
    return found


def memory_of(facts: NodeFacts) -> tuple[F64, Bool]:
    """Return the MiB of each device, and whether the node states it in a label. Shapes (N,)."""
    stated = np.array([node_gpu_memory(node.labels) for node in facts.objs], dtype=np.float64)
    return np.where(stated > 0, stated, float(UNKNOWN_GPU_MEMORY_MIB)), stated > 0


def slot_count(tables: Tables, rows: Iterable[int]) -> int:
    """Return how many slots nodes need: one for each group that exists, and one more for each device."""
    # A device can be left by one group and promised to another, and each of the two needs a slot.
    gpu = tables.axis.column[GPU_RESOURCE]
    most = int(tables.nodes.facts.allocatable[:, gpu].max(initial=0.0) / _MILLI)
    groups, named = dict[int, set[str]](), _named_groups(tables)
    for row in rows:
        node, pod = int(tables.tasks.node[row]), tables.tasks.pods[row]
        if node >= 0:
            groups.setdefault(node, set()).update(named(pod) or {pod.uid})
    return min(SLOTS_MAX, most + max(most, *(len(each) for each in groups.values()), 0))


def sharing_tasks(tables: Tables) -> I64:
    """Return the rows of tasks that request parts of GPUs."""
    specs = tables.classes.specs
    shares = np.array([spec is not None and spec.gpu_share is not None for spec in specs], dtype=bool)
    if not shares.any() or GPU_RESOURCE not in tables.axis.column:
        return np.zeros(0, dtype=np.int64)
    found: I64 = (tables.tasks.alive & (tables.tasks.cls >= 0)).nonzero()[0]
    sharing: I64 = found[shares[tables.tasks.cls[found]]]
    return sharing
