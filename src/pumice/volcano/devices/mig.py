"""Find instances of a card (MIG): the group by which it is split, the position in the group, and the name.

A card is split by one group at a time, chosen by its first pod. Positions count through all instances of a group.
Source: Volcano vGPU device in mode mig.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

#: Largest number of instances of a group: those in use are the bits of an integer.
INSTANCES_MAX = 48


class Instance(Struct, frozen=True):
    """Instances of one size. ``memory`` in MiB."""

    name: str
    memory: int
    count: int


class Geometry(Struct, frozen=True):
    """A group, that is, one way to split a card into instances, in order."""

    group: str
    instances: tuple[Instance, ...] = ()

    def memory_at(self, place: int) -> int:
        """Return the memory of the instance at a position, 0 if there is none."""
        for each in self.instances:
            if 0 <= place < each.count:
                return each.memory
            # Positions count through the sizes of a group, so a position beyond this size is an earlier one of the
            # next.
            place -= each.count
        return 0


class InstanceSlot(NamedTuple):
    """An instance: its group from 1, its position in the group, and its memory in MiB."""

    group: int
    place: int
    memory: int


def find(geometries: Sequence[Geometry], group: int, in_use: int, memory: int) -> InstanceSlot | None:
    """Return the smallest free instance with enough memory, of the first group that has one.

    ``group``: the group by which the card is split (from 1, 0 for none); only that one counts then. ``in_use``: its
    instances in use, as bits.
    """
    # A number that is out of range marks a conflict, and then no instance can be used.
    numbers = range(1, len(geometries) + 1) if not group else (group,) if 1 <= group <= len(geometries) else ()
    for number in numbers:
        found = _smallest(geometries[number - 1], in_use, memory)
        if found is not None:
            return InstanceSlot(number, *found)
    return None


def _smallest(geometry: Geometry, in_use: int, memory: int) -> tuple[int, int] | None:
    """Return (position, memory) of the smallest free instance that suffices."""
    best, first = None, 0
    for each in geometry.instances:
        free = next((place for place in range(first, first + each.count) if not in_use >> place & 1), None)
        if free is not None and each.memory >= memory and (best is None or each.memory < best[1]):
            best = free, each.memory
        first += each.count
    return best


def name_of(card: str, geometry: Geometry, place: int) -> str:
    """Return the name of an instance of a card: ``GPU-0[group1-0]``."""
    return f"{card}[{geometry.group}-{place}]"


def place_in(name: str) -> tuple[str, int] | None:
    """Return the group and the position in the name of an instance, or None for a whole card."""
    inside = name.partition("[")[2].partition("]")
    group, dash, place = inside[0].rpartition("-")
    # The name is part of an annotation, which any controller may have written.
    if not inside[1] or not dash or not (place.isascii() and place.isdecimal() and len(place) <= 4):
        return None
    return group, int(place)
