"""Instances that a card can be cut into (MIG): in which group, at which place in it, and what they are called.

A card is cut by one group at a time: the one that its first pod needs. The place of an instance counts through the
group. Source: Volcano's vGPU device in mode mig (spec 04 §24).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

#: Instances of one group: those in use are bits of a number.
INSTANCES_MAX = 48


class Instance(Struct, frozen=True):
    """So many instances of one size. ``memory`` in MiB."""

    name: str
    memory: int
    count: int


class Geometry(Struct, frozen=True):
    """A group: a way to cut a card. Its instances in order."""

    group: str
    instances: tuple[Instance, ...] = ()

    def memory_at(self, place: int) -> int:
        """The memory of the instance at a place; 0 where there is none."""
        for each in self.instances:
            if 0 <= place < each.count:
                return each.memory
            place -= each.count
        return 0


class Found(NamedTuple):
    """An instance: the number of its group from 1, its place in it, and its memory in MiB."""

    group: int
    place: int
    memory: int


def find(geometries: Sequence[Geometry], group: int, in_use: int, memory: int) -> Found | None:
    """The smallest free instance with so much memory, of the first group that has one; of the one that the card is cut
    by (``group`` from 1, 0 for none), while any of its instances is ``in_use`` (a bit each)."""
    numbers = range(1, len(geometries) + 1) if not group else (group,) if 1 <= group <= len(geometries) else ()
    for number in numbers:
        found = _smallest(geometries[number - 1], in_use, memory)
        if found is not None:
            return Found(number, *found)
    return None


def _smallest(geometry: Geometry, in_use: int, memory: int) -> tuple[int, int] | None:
    """(place, memory) of the smallest free instance that will do."""
    best, first = None, 0
    for each in geometry.instances:
        free = next((place for place in range(first, first + each.count) if not in_use >> place & 1), None)
        if free is not None and each.memory >= memory and (best is None or each.memory < best[1]):
            best = free, each.memory
        first += each.count
    return best


def name_of(card: str, geometry: Geometry, place: int) -> str:
    """What an instance of a card is called: ``GPU-0[group1-0]``."""
    return f"{card}[{geometry.group}-{place}]"


def place_in(name: str) -> tuple[str, int] | None:
    """The group and the place that the name of an instance says; None for the name of a whole card."""
    inside = name.partition("[")[2].partition("]")
    group, dash, place = inside[0].rpartition("-")
    if not inside[1] or not dash or not (place.isascii() and place.isdecimal() and len(place) <= 4):
        return None
    return group, int(place)
