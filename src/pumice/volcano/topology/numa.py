"""Which CPUs of a node a pod would get, as a kubelet assigns them: hints, how they are merged, and the CPUs themselves.

A set of NUMA nodes is a whole number with a bit for each. Source: kubelet's CPU and topology managers, Volcano
numa-aware (spec 04 §14).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import NamedTuple

from pumice.model.devices.numa import BEST_EFFORT, NONE, SINGLE, Cpu, NumaAsk

CpuSet = frozenset[int]


class Hint(NamedTuple):
    """A set of NUMA nodes that would do; ``mask`` None: any. ``preferred``: there is no smaller set that could."""

    mask: int | None
    preferred: bool


class Machine:
    """Where CPUs are. Equal machines are one object as long as somebody keeps them so."""

    def __init__(self, cpus: Sequence[Cpu], reserved: int) -> None:
        self.at: Mapping[int, Cpu] = {cpu.id: cpu for cpu in cpus}
        self._reserved = reserved

    @cached_property
    def numas(self) -> list[int]:
        """NUMA nodes by number."""
        return sorted({cpu.numa for cpu in self.at.values()})

    @cached_property
    def everywhere(self) -> int:
        """The set of all NUMA nodes."""
        return sum(1 << numa for numa in self.numas)

    @cached_property
    def reserved(self) -> CpuSet:
        """CPUs that the system has, the first by topology."""
        return taken(self, frozenset(self.at), min(self._reserved, len(self.at))) or frozenset()

    @cached_property
    def masks(self) -> list[int]:
        """Every set of NUMA nodes but none, small ones first."""
        sets = range(1, 1 << len(self.numas))
        each = (sum(1 << numa for i, numa in enumerate(self.numas) if bits >> i & 1) for bits in sets)
        return sorted(each, key=lambda mask: (mask.bit_count(), mask))

    def in_mask(self, cpus: Iterable[int], mask: int) -> CpuSet:
        """Those of some CPUs that are in a set of NUMA nodes."""
        return frozenset(cpu for cpu in cpus if mask >> self.at[cpu].numa & 1)


def hints(machine: Machine, free: CpuSet, count: int) -> list[Hint]:
    """Sets of NUMA nodes with so many free CPUs."""
    could = (m.bit_count() for m in machine.masks if len(machine.in_mask(machine.at, m)) >= count)
    least = min(could, default=len(machine.numas))
    enough = (mask for mask in machine.masks if len(machine.in_mask(free, mask)) >= count)
    return [Hint(mask, mask.bit_count() == least) for mask in enough]


def merged(policy: str, asked: Iterable[Sequence[Hint]], everywhere: int) -> tuple[Hint, bool]:
    """One hint from one of each list, and whether the policy admits it."""
    if policy == NONE:
        return Hint(None, preferred=False), True
    lists = list(asked)
    if policy == SINGLE:
        lists = [[hint for hint in each if _is_single(hint)] for each in lists]
    best = Hint(everywhere, preferred=False)
    for mixed in product(*lists):
        mask = everywhere
        for hint in mixed:
            mask &= everywhere if hint.mask is None else hint.mask
        found = Hint(mask, all(hint.preferred for hint in mixed))
        if mask and _is_better(found, best):
            best = found
    return best, policy == BEST_EFFORT or best.preferred


def _is_single(hint: Hint) -> bool:
    return hint.preferred and (hint.mask is None or hint.mask.bit_count() == 1)


def _is_better(found: Hint, best: Hint) -> bool:
    if found.preferred != best.preferred:
        return found.preferred
    assert found.mask is not None
    assert best.mask is not None
    return (found.mask.bit_count(), found.mask) < (best.mask.bit_count(), best.mask)


# -- CPUs


def taken(machine: Machine, free: CpuSet, count: int) -> CpuSet | None:
    """So many CPUs of those that are free: whole sockets, whole cores, then single ones; None where there are not
    enough."""
    if len(free) < count:
        return None
    left, found = set(free), set[int]()
    for size, groups in ((_socket_size(machine), _whole_sockets), (_core_size(machine), _whole_cores)):
        for group in groups(machine, left) if size else ():
            if count - len(found) < size:
                break
            found |= group
            left -= group
    found |= set(_single(machine, left, found)[: count - len(found)])
    return frozenset(found)


def _socket_size(machine: Machine) -> int:
    sockets = {cpu.socket for cpu in machine.at.values()}
    return len(machine.at) // len(sockets) if sockets else 0


def _core_size(machine: Machine) -> int:
    cores = {(cpu.socket, cpu.core) for cpu in machine.at.values()}
    return len(machine.at) // len(cores) if cores else 0


def _by(machine: Machine, cpus: Iterable[int], *parts: str) -> dict[tuple[int, ...], set[int]]:
    found: dict[tuple[int, ...], set[int]] = {}
    for cpu in sorted(cpus):
        found.setdefault(tuple(getattr(machine.at[cpu], part) for part in parts), set()).add(cpu)
    return found


def _whole_sockets(machine: Machine, free: set[int]) -> Iterator[set[int]]:
    every = _by(machine, machine.at, "socket")
    return iter([cpus for socket, cpus in sorted(every.items()) if cpus <= free])


def _whole_cores(machine: Machine, free: set[int]) -> Iterator[set[int]]:
    """Of sockets with few whole cores first."""
    every = _by(machine, machine.at, "socket", "core")
    whole = {place: cpus for place, cpus in every.items() if cpus <= free}
    count: dict[int, int] = {}
    for socket, _ in whole:
        count[socket] = count.get(socket, 0) + 1
    return iter([whole[place] for place in sorted(whole, key=lambda place: (count[place[0]], place))])


def _single(machine: Machine, free: set[int], found: set[int]) -> list[int]:
    """Near to those that were taken first, then where little is left."""
    of_core, of_socket = _by(machine, free, "socket", "core"), _by(machine, free, "socket")
    near = _by(machine, found, "socket")

    def rank(place: tuple[int, ...]) -> tuple[int, ...]:
        socket = (place[0],)
        return -len(near.get(socket, ())), len(of_socket[socket]), len(of_core[place]), *place

    return [cpu for place in sorted(of_core, key=rank) for cpu in sorted(of_core[place])]


# -- pods


class Assigned(NamedTuple):
    """``cpus`` that a pod would get, or ``refused``: the container for which there are none."""

    cpus: CpuSet
    refused: str = ""


def assigned(machine: Machine, free: CpuSet, ask: NumaAsk, policy: str) -> Assigned:
    """What a kubelet with this policy would give a pod, container after container."""
    found: set[int] = set()
    for name, milli in ask.containers:
        count = int(milli // 1000) if milli % 1000 == 0 else 0
        if not count:
            continue
        left = free - machine.reserved - found
        hint, admitted = merged(policy, [hints(machine, left, count)], machine.everywhere)
        cpus = placed(machine, left, hint.mask, count) if admitted else None
        if cpus is None:
            return Assigned(frozenset(), name or "?")
        found |= cpus
    return Assigned(frozenset(found))


def placed(machine: Machine, free: CpuSet, mask: int | None, count: int) -> CpuSet | None:
    """So many CPUs, of these NUMA nodes first; None where there are not enough."""
    near = machine.in_mask(free, machine.everywhere if mask is None else mask)
    found = taken(machine, near, min(count, len(near))) or frozenset()
    rest = taken(machine, free - found, count - len(found))
    return None if rest is None else found | rest
