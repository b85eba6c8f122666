"""Law: a reserved gang starts no later than was said, as long as estimates hold; and what moves a start is named."""

from __future__ import annotations

import numpy as np
import pytest

from bench.reserved_starts import World, check_moves, check_told
from pumice.model.blockers import OVERRUN
from pumice.ours.room_over_time import Demand, RoomOverTime, fits, places, places_lost


@pytest.mark.parametrize("seed", range(12))
def test_a_reserved_gang_starts_no_later_than_was_said(seed: int) -> None:
    check_told(World(seed))


@pytest.mark.parametrize("seed", range(16))
def test_a_start_that_was_said_moves_later_only_by_a_named_event(seed: int) -> None:
    check_moves(World(seed, lies=3.0))


def test_starts_do_move_where_estimates_are_lies() -> None:
    worlds = [World(seed, lies=3.0) for seed in range(6)]
    for world in worlds:
        world.play()
    moved = [each for world in worlds for found in world.findings.values() for _, each in found if each.moved_by]
    assert {cause.kind for each in moved for cause in each.moved_by} >= {OVERRUN} and len(moved) > 5


def test_starts_are_said_at_all() -> None:
    assert sum(len(World(seed).play()) for seed in range(3)) > 5


@pytest.mark.parametrize("seed", range(20))
def test_a_pod_never_takes_more_places_than_are_counted(seed: int) -> None:
    dice = np.random.default_rng(seed)
    free = dice.integers(0, 30, size=(6, 3)).astype(float)
    demand = Demand(100, dice.integers(0, 5, size=3).astype(float), dice.random(6) < 0.8)
    each = dice.integers(0, 9, size=3).astype(float)
    before = places(free, demand)
    for row in range(6):
        if (free[row] >= each).all():
            left = free.copy()
            left[row] -= each
            assert (before - places(left, demand)).sum() <= places_lost(each, demand) or not demand.each.any()


@pytest.mark.parametrize("seed", range(20))
def test_the_earliest_moment_is_that_of_a_search_through_all(seed: int) -> None:
    dice = np.random.default_rng(seed)
    free, ends = dice.integers(0, 4, size=(5, 2)).astype(float), dice.integers(1, 9, size=12).astype(float)
    room = RoomOverTime(free, dice.integers(0, 5, size=12), dice.integers(0, 4, size=(12, 2)).astype(float), ends)
    demands = [Demand(int(dice.integers(1, 6)), np.array([2.0, 1.0]), np.ones(5, dtype=bool)) for _ in range(2)]
    moments = [0.0, *np.unique(ends).tolist()]
    wanted = next((at for at in moments if fits(room.at(at), demands) is not None), float("inf"))
    assert room.earliest(demands, 0.0) == wanted
