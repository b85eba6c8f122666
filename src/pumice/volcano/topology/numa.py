"""Compute which CPUs of a node a kubelet would assign to a pod: hints, their merge, and the CPUs.

A set of NUMA nodes is a bit mask. Source: CPU manager and topology manager of kubelet, Volcano numa-aware plugin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import NamedTuple

from pumice.model.devices.numa import BEST_EFFORT, NONE, SINGLE, Cpu, NumaAsk

CpuSet = frozenset[int]


class Hint(NamedTuple):
    """A set of NUMA nodes that suffices. ``mask`` None: any set. ``preferred``: no smaller set could suffice."""

    mask: int | None
    preferred: bool


class Machine:
    """CPUs of a node. Nodes with equal CPUs may share one object, and with it what is computed here."""

    def __init__(self, cpus: Sequence[Cpu], reserved: int) -> None:
        self.at: Mapping[int, Cpu] = {cpu.id: cpu for cpu in cpus}
        self._reserved = reserved

    @cached_property
    def numas(self) -> list[int]:
        """NUMA nodes in ascending order."""
        return sorted({cpu.numa for cpu in self.at.values()})

    @cached_property
    def everywhere(self) -> int:
        """The set of all NUMA nodes."""
        return sum(1 << numa for numa in self.numas)

    @cached_property
    def reserved(self) -> CpuSet:
        """CPUs reserved for the system, the first by topology."""
        # As kubelet takes them when it starts, from the whole machine: only so are they the same CPUs as on the node.
        return take_cpus(self, frozenset(self.at), min(self._reserved, len(self.at))) or frozenset()

    @cached_property
    def masks(self) -> list[int]:
        """All non-empty sets of NUMA nodes, small ones first."""
        sets = range(1, 1 << len(self.numas))
        each = (sum(1 << numa for i, numa in enumerate(self.numas) if bits >> i & 1) for bits in sets)
        # Small sets first, as kubelet's IterateBitMasks goes through them.
        return sorted(each, key=lambda mask: (mask.bit_count(), mask))

    def in_mask(self, cpus: Iterable[int], mask: int) -> CpuSet:
        """Return the CPUs that are in a set of NUMA nodes."""
        return frozenset(cpu for cpu in cpus if mask >> self.at[cpu].numa & 1)


def hints(machine: Machine, free: CpuSet, count: int) -> list[Hint]:
    """Return the sets of NUMA nodes with enough free CPUs."""
    could = (m.bit_count() for m in machine.masks if len(machine.in_mask(machine.at, m)) >= count)
    # A hint is preferred by what the machine could hold when empty, and not by what is free now.
    least = min(could, default=len(machine.numas))
    enough = (mask for mask in machine.masks if len(machine.in_mask(free, mask)) >= count)
    return [Hint(mask, mask.bit_count() == least) for mask in enough]


def merged(policy: str, asked: Iterable[Sequence[Hint]], everywhere: int) -> tuple[Hint, bool]:
    """Merge one hint of each list into the best combination. Return it, and whether the policy admits it."""
    if policy == NONE:
        return Hint(None, preferred=False), True
    lists = list(asked)
    # Filtered before the merge: a set of several NUMA nodes must not win because it is preferred. Source: kubelet
    # policy_single_numa_node.go.
    if policy == SINGLE:
        lists = [[hint for hint in each if _is_single(hint)] for each in lists]
    best = Hint(everywhere, preferred=False)
    # All combinations, as in kubelet. Their number is bounded by the small number of NUMA nodes.
    for mixed in product(*lists):
        mask = everywhere
        for hint in mixed:
            mask &= everywhere if hint.mask is None else hint.mask
        found = Hint(mask, all(hint.preferred for hint in mixed))
        # An empty set would be a pod on no NUMA node at all.
        if mask and _is_better(found, best):
            best = found
    return best, policy == BEST_EFFORT or best.preferred


def _is_single(hint: Hint) -> bool:
    """Return True if a hint is preferred and has one NUMA node."""
    return hint.preferred and (hint.mask is None or hint.mask.bit_count() == 1)


def _is_better(found: Hint, best: Hint) -> bool:
    """Return True if a hint is better: preferred, then narrower, then with lower bits."""
    if found.preferred != best.preferred:
        return found.preferred
    assert found.mask is not None
    assert best.mask is not None
    return (found.mask.bit_count(), found.mask) < (best.mask.bit_count(), best.mask)


# -- CPUs


def take_cpus(machine: Machine, free: CpuSet, count: int) -> CpuSet | None:
    """Take CPUs from those that are free: whole sockets, whole cores, then single ones. Return None if there are too
    few. Source: takeByTopology of kubelet."""
    if len(free) < count:
        return None
    left, found = set(free), set[int]()
    # Sockets before cores: an exclusive socket shares no cache with another pod.
    for size, groups in ((_socket_size(machine), _whole_sockets), (_core_size(machine), _whole_cores)):
        for group in groups(machine, left) if size else ():
            # A whole group would be more than what is asked for, so it stays whole for another pod.
            if count - len(found) < size:
                break
            found |= group
            left -= group
    found |= set(_single(machine, left, found)[: count - len(found)])
    return frozenset(found)


def _socket_size(machine: Machine) -> int:
    """Return the number of CPUs per socket."""
    sockets = {cpu.socket for cpu in machine.at.values()}
    return len(machine.at) // len(sockets) if sockets else 0


def _core_size(machine: Machine) -> int:
    """Return the number of CPUs per core."""
    cores = {(cpu.socket, cpu.core) for cpu in machine.at.values()}
    return len(machine.at) // len(cores) if cores else 0


def _by(machine: Machine, cpus: Iterable[int], *parts: str) -> dict[tuple[int, ...], set[int]]:
    """Group CPUs by parts of their location."""
    found: dict[tuple[int, ...], set[int]] = {}
    for cpu in sorted(cpus):
        found.setdefault(tuple(getattr(machine.at[cpu], part) for part in parts), set()).add(cpu)
    return found


def _whole_sockets(machine: Machine, free: set[int]) -> Iterator[set[int]]:
    """Return the sockets whose CPUs are all free."""
    every = _by(machine, machine.at, "socket")
    return iter([cpus for socket, cpus in sorted(every.items()) if cpus <= free])


def _whole_cores(machine: Machine, free: set[int]) -> Iterator[set[int]]:
    """Return the cores whose CPUs are all free, those in sockets with few such cores first."""
    every = _by(machine, machine.at, "socket", "core")
    whole = {place: cpus for place, cpus in every.items() if cpus <= free}
    count: dict[int, int] = {}
    for socket, _ in whole:
        count[socket] = count.get(socket, 0) + 1
    return iter([whole[place] for place in sorted(whole, key=lambda place: (count[place[0]], place))])


def _single(machine: Machine, free: set[int], found: set[int]) -> list[int]:
    """Return free CPUs in order: near CPUs that are taken already, then where few are left."""
    of_core, of_socket = _by(machine, free, "socket", "core"), _by(machine, free, "socket")
    near = _by(machine, found, "socket")

    def rank(place: tuple[int, ...]) -> tuple[int, ...]:
        socket = (place[0],)
        # Sockets in which this pod has CPUs go first, and then those that are nearly used up, so that whole ones
        # remain.
        return -len(near.get(socket, ())), len(of_socket[socket]), len(of_core[place]), *place

    return [cpu for place in sorted(of_core, key=rank) for cpu in sorted(of_core[place])]


# -- pods


class Assigned(NamedTuple):
    """``cpus`` that a pod would get, or ``refused``: the container for which there are none."""

    cpus: CpuSet
    refused: str = ""


def assigned(machine: Machine, free: CpuSet, ask: NumaAsk, policy: str) -> Assigned:
    """Return the CPUs that a kubelet with this policy would assign to a pod, container by container."""
    found: set[int] = set()
    for name, milli in ask.containers:
        # Kubelet assigns exclusive CPUs only to containers that ask for whole CPUs.
        count = int(milli // 1000) if milli % 1000 == 0 else 0
        if not count:
            continue
        # Kubelet never gives reserved CPUs away, whatever is free.
        left = free - machine.reserved - found
        # One list, because Volcano's only provider of hints is the CPU manager.
        hint, admitted = merged(policy, [hints(machine, left, count)], machine.everywhere)
        cpus = placed(machine, left, hint.mask, count) if admitted else None
        if cpus is None:
            return Assigned(frozenset(), name or "?")
        found |= cpus
    return Assigned(frozenset(found))


def placed(machine: Machine, free: CpuSet, mask: int | None, count: int) -> CpuSet | None:
    """Return CPUs, taken from these NUMA nodes first, or None if there are too few."""
    # Aligned CPUs first, as kubelet does: what is missing comes from other NUMA nodes.
    near = machine.in_mask(free, machine.everywhere if mask is None else mask)
    found = take_cpus(machine, near, min(count, len(near))) or frozenset()
    rest = take_cpus(machine, free - found, count - len(found))
    return None if rest is None else found | rest
