"""GPUs that several pods share: what each group of pods holds of its device, and what follows for whole GPUs.

A device that is shared is a slot of its node. Of each slot three sums are kept, in MiB: what is held, what is about to
be left, and what is promised. The node's books of whole GPUs follow from them: a slot takes one out of what is idle
while anything is held or being left, and one out of what will be idle while anything is held or promised.
Source: KAI node_info (gpu sharing).
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
from pumice.model.status import ALLOCATED_STATUSES, STATUS_COUNT, TaskStatus

#: Slots of a node: those of one task are bits of a whole number.
SLOTS_MAX = 62
#: Sums of a slot.
HELD, LEFT, PROMISED = range(3)

_EPS = 1e-6
_MILLI = 1000.0
#: The sum in which a task counts, by its state; -1 in none.
_SUM_OF = np.full(STATUS_COUNT, -1)
_SUM_OF[list(ALLOCATED_STATUSES)] = HELD
_SUM_OF[TaskStatus.RELEASING], _SUM_OF[TaskStatus.PIPELINED] = LEFT, PROMISED
_SUM_BY_STATE: list[int] = _SUM_OF.tolist()

#: How good devices are for a class, by what part of each is used (0 for whole GPUs): larger is better.
DeviceOrder = Callable[[F64], F64]


class Writes(Protocol):
    """Who carries out a write: a session's journal."""

    def put(self, column: Column[AnyArray], index: Any, value: Any) -> None: ...
    def add(self, column: Column[AnyArray], index: Any, change: Any) -> None: ...


class Choice(NamedTuple):
    """``slots``: bits, of slots in use and of free ones for whole GPUs. ``at_once``: nobody has to leave for it."""

    slots: int
    at_once: bool


class DeviceLedger:
    """``shares`` (N, S, 3): the sums of slots. ``of``, ``left`` (T,): the slots that a task is on or promised, and
    those that it leaves for them. ``mib`` (N,): memory of each device, ``known`` (N,) whether the node says it.
    ``closed`` (N, S): slots that no task may join, because their node has no device for them."""

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
        """``memory``: as ``memory_of`` the nodes."""
        self.tables, self._writer, self.shares, self.of, self.left = tables, writer, shares, of, left
        self.mib, self.known = memory
        self._gpu = tables.axis.column[GPU_RESOURCE]
        self._names: dict[tuple[int, int], str] = {}
        self._slots: dict[int, dict[str, int]] = {}  # by node, as its pods name groups; and when the oldest was made
        self._first_seen: dict[tuple[int, str], float] = {}
        self.closed: Bool = np.zeros(shares.array.shape[:2], dtype=bool)

    # -- what there is room for ---------------------------------------------------------------------------------------

    def share_of(self, cls: int) -> GpuShare | None:
        """What a class asks of shared GPUs, None for nothing."""
        found: GpuShare | None = self.tables.classes.specs[cls].gpu_share
        return found if found is not None and (found.fraction or found.memory_mib) else None

    def need(self, share: GpuShare) -> F64:
        """MiB of each device that a share takes, by node; inf where it fits no device. Shape (N,)."""
        if share.problem:
            return np.full(len(self.mib), np.inf)
        if share.memory_mib:
            return np.where(self.known & (share.memory_mib <= self.mib), float(share.memory_mib), np.inf)
        return share.fraction * self.mib

    def joins(self, need: F64, rows: AnyArray | slice = slice(None), *, soon: bool) -> Bool:
        """Which slots in use have room for so much more (rows,), of those that are not closed. ``soon``: when those
        that leave have left.

        A slot that everybody leaves is a whole GPU instead. Shape (rows, S).
        """
        held, left, promised = _sums(self.shares.array[rows])
        stays = held + promised > _EPS
        taken = held + promised if soon else held + left
        in_use = (stays if soon else stays & (held + left > _EPS)) & ~self.closed[rows]
        return np.asarray(in_use & (self.mib[rows, None] - taken - need[:, None] >= -_EPS), dtype=bool)

    def count(self, share: GpuShare, rows: AnyArray | slice = slice(None), *, soon: bool) -> I32:
        """On how many devices of each node a share has room: those in use, and whole GPUs. Shape (rows,)."""
        need = self.need(share)[rows]
        whole = np.floor(self.tables.nodes.books[rows, FUTURE if soon else IDLE, self._gpu] / _MILLI + _EPS)
        found: I32 = (self.joins(need, rows, soon=soon).sum(axis=1) + np.maximum(whole, 0.0)).astype(np.int32)
        return np.where(np.isinf(need), 0, found)

    def remainders(self) -> Bool:
        """Nodes with a device in use that is not full (N,)."""
        found: Bool = np.asarray(self.joins(np.full(len(self.mib), 2 * _EPS), soon=True).any(axis=1), dtype=bool)
        return found

    def free(self, rows: AnyArray | slice = slice(None)) -> F64:
        """What will be free of each device in use when those that leave have left; 0 of a full or closed one, and where
        there is none. Milli-devices, whole ones. Shape (rows, S)."""
        return np.maximum(np.rint(_MILLI * self._unused(rows)), 0.0)

    def unused(self) -> float:
        """What is left of devices in use when those that leave have left, all nodes together. Units: milli-devices."""
        return float(_MILLI * self._unused(slice(None)).sum())

    def _unused(self, rows: AnyArray | slice) -> F64:
        held, _, promised = _sums(self.shares.array[rows])
        taken = held + promised
        open_ones = (taken > _EPS) & ~self.closed[rows]
        return np.where(open_ones, 1.0 - taken / self.mib[rows, None], 0.0)

    def choose(self, node: int, share: GpuShare, order: DeviceOrder) -> Choice | None:
        """The best devices of a node for a share; None where there are too few.

        Of equal ones those in use go before whole GPUs, and lower slots first.
        """
        row = np.array([node])
        need = self.need(share)[row]
        soon, now = self.joins(need, row, soon=True)[0], self.joins(need, row, soon=False)[0]
        sums = self.shares.array[node]
        used = sums.sum(axis=1) / self.mib[node]
        books = self.tables.nodes.books[node, :, self._gpu] / _MILLI
        free = (sums <= _EPS).all(axis=1).nonzero()[0].tolist()
        whole = min(max(int(books[FUTURE] + _EPS), 0), len(free))  # more may be promised than will be free
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
        """Whether a task that leaves may just as well stay: it would be on the same devices, or on whole ones while
        nobody stays on its own."""
        own = int(self.of.array[row])
        if choice.slots == own:
            return True
        sums = self.shares.array[int(self.tables.tasks.node[row])]
        listed = list(slots_of(own | choice.slots))
        return not (sums[listed][:, [HELD, PROMISED]] > _EPS).any()

    # -- moves --------------------------------------------------------------------------------------------------------

    def assign(self, row: int, node: int, slots: int) -> None:
        """Say on which slots of a node a task will be, before it moves there."""
        self._name(row, node, slots)
        self._writer.put(self.of, row, slots)

    def reassign(self, row: int, node: int, slots: int) -> None:
        """The same for a task that leaves others for them."""
        self._name(row, node, slots)
        self._writer.put(self.left, row, int(self.of.array[row]))
        self._writer.put(self.of, row, slots)

    def _name(self, row: int, node: int, slots: int) -> None:
        """Slots that nobody is on are called by their first task. A name that was given in vain harms nobody: the slot
        is empty again, and is called anew."""
        empty = (self.shares.array[node] <= _EPS).all(axis=1)
        for slot in slots_of(slots):
            if empty[slot]:
                self._names[node, slot] = f"{self.tables.tasks.pods[row].uid}-{slot}"

    def groups_of(self, row: int) -> tuple[str, ...]:
        """The names of the groups with which a task shares its devices; none for one that has none."""
        node = int(self.tables.tasks.node[row])
        return tuple(self._names[node, slot] for slot in slots_of(int(self.of.array[row])))

    def groups(self) -> frozenset[tuple[int, str]]:
        """The groups that there are: row of the node, name."""
        return frozenset((node, name) for (node, _), name in self._names.items())

    def moved(self, rows: Sequence[int], nodes: Sequence[int], before: int, after: int) -> None:
        """Tasks, on these nodes, went from one state to another."""
        source, target = _SUM_BY_STATE[before], _SUM_BY_STATE[after]
        if source == target:
            return
        for row, node in zip(rows, nodes, strict=True):
            slots = int(self.of.array[row])
            if slots and node >= 0:
                self._move(row, node, slots, source, target)

    def promised(self, rows: Sequence[int], nodes: Sequence[int]) -> None:
        """Tasks that are about to leave were promised slots on these nodes; in what they leave they still count."""
        self.moved(rows, nodes, int(TaskStatus.PENDING), int(TaskStatus.PIPELINED))

    def promise_taken_back(self, row: int) -> None:
        """A task that was promised slots on another node is on those that it leaves again."""
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
        """MiB; of a share that cannot be read, all."""
        if share.problem:
            return float(self.mib[node])
        return float(share.memory_mib or share.fraction * self.mib[node])

    # -- the beginning ------------------------------------------------------------------------------------------------

    def enter(self, rows: Iterable[int]) -> None:
        """Put tasks that are on nodes already on the slots that their pods name; where they name none, on free ones.
        Written in one go: nobody else is on a slot yet."""
        tasks, sums = self.tables.tasks, np.zeros_like(self.shares.array)
        taken, entered = self._slots, dict[int, int]()
        for row in rows:
            node, share = int(tasks.node[row]), self.share_of(int(tasks.cls[row]))
            column = _SUM_BY_STATE[tasks.status[row]]
            if share is None or node < 0 or column < 0:
                continue
            pod = tasks.pods[row]
            groups = gpu_groups(pod.labels) or tuple(f"{pod.uid}/{i}" for i in range(share.devices))
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
        """Bits of the slots of some groups, each the node's next one if it has none; the last one where all are
        ``taken``."""
        slots, last = 0, self.shares.array.shape[1] - 1
        for group in groups:
            if group not in taken:
                slot = taken[group] = min(len(taken), last)
                self._names[node, slot] = group
            slots |= 1 << taken[group]
        return slots

    def close_excess(self, reserved: Collection[tuple[int, str]]) -> None:
        """Close the groups for which their node has no device left: it holds fewer devices than whole GPUs and groups.

        Anyone may write a pod that names a node and a group. Such a pod counts, but gives nobody a device to share. So
        ``reserved`` groups, for which a pod holds a device, are the last to be closed, and older ones before younger.
        """
        idle = np.floor(self.tables.nodes.books[:, IDLE, self._gpu] / _MILLI + _EPS)
        for node, slots in self._slots.items():
            excess = len(slots) - len(set(slots.values())) - int(idle[node])  # the last slot may have several groups
            if excess > 0:
                ranked = sorted(((node, g) not in reserved, self._first_seen[node, g], g) for g in slots)
                self.closed[node, [slots[group] for *_, group in ranked[-excess:]]] = True


def _sums(shares: F64) -> tuple[F64, F64, F64]:
    """The three sums of slots, each for itself. Shape (…, S, 3) -> (…, S)."""
    return shares[..., HELD], shares[..., LEFT], shares[..., PROMISED]


def slots_of(bits: int) -> Iterator[int]:
    """The slots that a number stands for, lowest first."""
    return (slot for slot in range(bits.bit_length()) if bits >> slot & 1)


def charge_of_memory(memory_mib: float, mib: float) -> float:
    """Milli-devices that memory of a device of ``mib`` counts in a quota: hundredths of it, rounded up. Source: KAI."""
    return float(np.ceil(100.0 * memory_mib / mib - _EPS)) * 10.0


def memory_charge(tables: Tables, rows: Sequence[int]) -> float:
    """Milli-devices that tasks count in quotas for memory of GPUs, on the nodes that they are on."""
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
    """What slots do to a node's books of whole GPUs, in the order of those. Shape (…, S, 3) -> (…, 5)."""
    held, left, promised = (each > _EPS for each in _sums(sums))
    found = np.zeros((*sums.shape[:-2], 5))
    found[..., IDLE] = -(held | left).sum(axis=-1)
    found[..., USED] = (held | left).sum(axis=-1)
    found[..., RELEASING] = (left & ~held & ~promised).sum(axis=-1)
    found[..., PIPELINED] = (promised & ~held & ~left).sum(axis=-1)
    found[..., FUTURE] = -(held | promised).sum(axis=-1)
    return found


def memory_of(facts: NodeFacts) -> tuple[F64, Bool]:
    """MiB of each device, and whether the node says so. Shapes (N,)."""
    stated = np.array([node_gpu_memory(node.labels) for node in facts.objs], dtype=np.float64)
    return np.where(stated > 0, stated, float(UNKNOWN_GPU_MEMORY_MIB)), stated > 0


def slot_count(tables: Tables, rows: Iterable[int]) -> int:
    """How many slots nodes need: for the groups that are there, and one more for each device."""
    gpu = tables.axis.column[GPU_RESOURCE]
    most = int(tables.nodes.facts.allocatable[:, gpu].max(initial=0.0) / _MILLI)
    groups: dict[int, set[str]] = {}
    for row in rows:
        node, pod = int(tables.tasks.node[row]), tables.tasks.pods[row]
        if node >= 0:
            groups.setdefault(node, set()).update(gpu_groups(pod.labels) or {pod.uid})
    return min(SLOTS_MAX, most + max(most, *(len(each) for each in groups.values()), 0))


def sharing_tasks(tables: Tables) -> I64:
    """Rows of the tasks that ask for parts of GPUs."""
    specs = tables.classes.specs
    shares = np.array([spec is not None and spec.gpu_share is not None for spec in specs], dtype=bool)
    if not shares.any() or GPU_RESOURCE not in tables.axis.column:
        return np.zeros(0, dtype=np.int64)
    found: I64 = (tables.tasks.alive & (tables.tasks.cls >= 0)).nonzero()[0]
    sharing: I64 = found[shares[tables.tasks.cls[found]]]
    return sharing
