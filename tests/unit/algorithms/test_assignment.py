"""Placements of a few different items, against all that there are."""

from __future__ import annotations

import itertools
import random

import pytest

from pumice.algorithms.assignment import NOWHERE, Items, assign


def brute_force(items: Items, rooms: list[list[float]], wanted: int) -> bool:
    """Return True if any assignment of all items to bins or to none places ``wanted``."""
    places = range(NOWHERE, len(rooms))
    for bins in itertools.product(places, repeat=len(items.kinds)):
        if sum(each != NOWHERE for each in bins) >= wanted and is_valid(items, rooms, list(bins)):
            return True
    return False


def is_valid(items: Items, rooms: list[list[float]], bins: list[int]) -> bool:
    left = [list(room) for room in rooms]
    for kind, each in zip(items.kinds, bins, strict=True):
        if each == NOWHERE:
            continue
        if not items.may[kind][each]:
            return False
        for i, need in enumerate(items.needs[kind]):
            left[each][i] -= need
    return all(amount >= 0 for room in left for amount in room)


@pytest.mark.parametrize("seed", range(150))
def test_a_placement_is_found_if_there_is_one(seed: int) -> None:
    dice = random.Random(seed)
    bins, kinds = dice.randint(1, 3), dice.randint(1, 3)
    needs = [[float(dice.randint(0, 4)), float(dice.randint(0, 4))] for _ in range(kinds)]
    may = [[dice.random() < 0.8 for _ in range(bins)] for _ in range(kinds)]
    rooms = [[float(dice.randint(0, 8)), float(dice.randint(0, 8))] for _ in range(bins)]
    items = Items(sorted(dice.choices(range(kinds), k=dice.randint(1, 5))), needs, may)
    wanted = dice.randint(1, len(items.kinds))
    found = assign(items, rooms, wanted, 100_000)
    assert (found.bins is not None) == brute_force(items, rooms, wanted)
    if found.bins is not None:
        assert sum(each != NOWHERE for each in found.bins) >= wanted and is_valid(items, rooms, found.bins)


def test_steps_are_bounded() -> None:
    items = Items([0] * 8 + [1] * 8, [[3.0], [5.0]], [[True] * 8, [True] * 8])
    found = assign(items, [[float(7 + i % 2)] for i in range(8)], 16, 500)
    assert found.bins is None and 500 <= found.steps < 500 + 8
