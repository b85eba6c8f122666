"""Find places for a few different items in bins of several dimensions, by a bounded search of all placements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

#: An item that got no place.
NOWHERE = -1

Amounts = Sequence[float]


class Items(NamedTuple):
    """``kinds``: of each item; items of one kind are adjacent and equal. ``needs`` and ``may``: of each kind,
    what an item needs in each dimension, and in which bins it may be."""

    kinds: Sequence[int]
    needs: Sequence[Amounts]
    may: Sequence[Sequence[bool]]


class Assigned(NamedTuple):
    """``bins``: of each item its bin or ``NOWHERE``; None if there is no placement, or none was found in the steps.
    ``steps``: bins that were looked at."""

    bins: list[int] | None
    steps: int


def assign(items: Items, rooms: Sequence[Amounts], wanted: int, steps_max: int, tolerance: float = 0.0) -> Assigned:
    """Return a placement of ``wanted`` of the items. Without a cut it is found if there is one.

    ``rooms``: what is free in each bin, in each dimension. ``tolerance``: an item fits if it lacks less than this. The
    order of items decides which placement is found first: the largest should come first.
    """
    search = _Search(items, [tuple(room) for room in rooms], len(items.kinds) - wanted, steps_max, tolerance)
    found = wanted <= len(items.kinds) and search.run(0, 0, 0)
    return Assigned(search.bins if found else None, search.steps)


class _Search:
    def __init__(
        self, items: Items, rooms: list[tuple[float, ...]], skips: int, steps_max: int, tolerance: float
    ) -> None:
        self.items, self.rooms, self.skips, self.steps_max, self.tolerance = items, rooms, skips, steps_max, tolerance
        self.bins = [NOWHERE] * len(items.kinds)
        self.steps = 0

    def run(self, at: int, least: int, skipped: int) -> bool:
        """Place the items from ``at`` on. ``least``: the first bin for this item: of equal items the later one is never
        in an earlier bin, since exchanging them changes nothing."""
        kinds = self.items.kinds
        if at == len(kinds):
            return True
        if self.steps >= self.steps_max:
            return False
        kind = kinds[at]
        need = self.items.needs[kind]
        # Equal items are adjacent, so only the first of a kind may start from the first bin again.
        for each in self._candidates(kind, need, least):
            room = self.rooms[each]
            self.rooms[each] = tuple(free - taken for free, taken in zip(room, need, strict=True))
            self.bins[at] = each
            # An equal item goes to this bin or a later one: an earlier one would be an exchange of the two, which
            # changes nothing.
            same = at + 1 < len(kinds) and kinds[at + 1] == kind
            if self.run(at + 1, each if same else 0, skipped):
                return True
            self.rooms[each], self.bins[at] = room, NOWHERE
        # If this item is left out, so are those equal to it: any of them could have had its place.
        end = at
        while end < len(kinds) and kinds[end] == kind:
            end += 1
        left_out = skipped + end - at
        return left_out <= self.skips and self.run(end, 0, left_out)

    def _candidates(self, kind: int, need: Amounts, least: int) -> list[int]:
        """Return bins in which an item fits, those with the least room first, and of equal bins one."""
        may = self.items.may
        found: dict[tuple[tuple[float, ...], tuple[bool, ...]], int] = {}
        for each in range(least, len(self.rooms)):
            # Counted here and not per item, because this loop is what grows with the cluster.
            self.steps += 1
            if not may[kind][each]:
                continue
            room = self.rooms[each]
            if all(
                taken <= 0 or taken - free < (self.tolerance or 1e-9) for free, taken in zip(room, need, strict=True)
            ):
                # Bins with equal room that take the same kinds are interchangeable, so one of them is enough. On a
                # cluster of equal nodes this leaves few to try.
                found.setdefault((room, tuple(allowed[each] for allowed in may)), each)
        # The fullest first: large rooms stay whole for items to come.
        return [each for (room, _), each in sorted(found.items(), key=lambda item: (sum(item[0][0]), item[1]))]
