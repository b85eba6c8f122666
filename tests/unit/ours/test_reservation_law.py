"""Law: a reserved gang starts no later than was said, as long as estimates hold; and what moves a start is named."""

from __future__ import annotations

import numpy as np
import pytest

from bench.reserved_starts import World, check_moves, check_told
from pumice.model.blockers import OVERRUN
from pumice.ours.reservations.room_over_time import (
    Demand,
    Parts,
    RoomOverTime,
    fits,
    places,
    places_lost_by,
    places_taken,
)


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


@pytest.mark.parametrize("reservations", [1, 64])
@pytest.mark.parametrize("seed", range(6))
def test_gangs_of_sub_groups_start_no_later_than_was_said(seed: int, reservations: int) -> None:
    check_told(World(seed, reservations=reservations, in_parts=True))
    check_moves(World(seed, 3.0, reservations, in_parts=True))


def test_starts_are_said_at_all() -> None:
    assert sum(len(World(seed).play()) for seed in range(3)) > 5


@pytest.mark.parametrize("size", [0, 1, 2, 3])
@pytest.mark.parametrize("seed", range(20))
def test_a_pod_never_takes_more_places_than_are_counted(seed: int, size: int) -> None:
    dice = np.random.default_rng(seed)
    free = dice.integers(0, 30, size=(6, 3)).astype(float)
    parts = Parts(size, dice.integers(0, 4, size=6)) if size else None
    demand = Demand(100, dice.integers(0, 5, size=3).astype(float), dice.random(6) < 0.8, parts=parts)
    each = dice.integers(0, 9, size=3).astype(float)
    before = places(free, demand)
    for row in range(6):
        if (free[row] >= each).all():
            left = free.copy()
            left[row] -= each
            lost = int(before.sum() - places(left, demand).sum())
            assert lost <= places_lost_by(each[None, :], demand)[0] or not demand.each.any()


@pytest.mark.parametrize("seed", range(20))
def test_places_are_those_of_whole_parts_in_each_domain(seed: int) -> None:
    dice = np.random.default_rng(seed)
    free, domain, size = dice.integers(0, 5, size=(8, 1)).astype(float), dice.integers(0, 3, size=8), 1 + seed % 4
    demand = Demand(2 * size, np.ones(1), dice.random(8) < 0.8, parts=Parts(size, domain))
    found, alone = places(free, demand), places(free, demand._replace(parts=None))
    of_domains = [0, *(int(alone[domain == each].sum()) // size * size for each in (1, 2))]
    assert (found <= alone).all() and [found[domain == each].sum() for each in range(3)] == of_domains
    room = RoomOverTime(free * 0, np.arange(8), free, np.arange(8.0))
    assert room.places_at(demand, np.array([7.0])) == [sum(of_domains)]
    counts = fits(free, [demand])
    assert (counts is None) == (sum(of_domains) < 2 * size)
    if counts is not None:
        assert all(counts[0][domain == each].sum() % size == 0 for each in range(3)) and counts[0].sum() == 2 * size


def test_pods_of_parts_take_places_of_parts_together() -> None:
    nodes, parts = np.ones(4, dtype=bool), Parts(3, np.array([1, 1, 2, 2]))
    demand = Demand(6, np.ones(1), nodes, parts=parts)
    assert places_taken(demand._replace(parts=None), demand) == 18  # each of the six may spoil a part
    assert places_taken(demand, demand) == 6
    assert places_taken(demand._replace(parts=Parts(2, parts.domain)), demand) == 9
    assert places_taken(demand, demand._replace(parts=None)) == 6


@pytest.mark.parametrize("seed", range(20))
def test_the_earliest_moment_is_that_of_a_search_through_all(seed: int) -> None:
    dice = np.random.default_rng(seed)
    free, ends = dice.integers(0, 4, size=(5, 2)).astype(float), dice.integers(1, 9, size=12).astype(float)
    room = RoomOverTime(free, dice.integers(0, 5, size=12), dice.integers(0, 4, size=(12, 2)).astype(float), ends)
    demands = [Demand(int(dice.integers(1, 6)), np.array([2.0, 1.0]), np.ones(5, dtype=bool)) for _ in range(2)]
    moments = [0.0, *np.unique(ends).tolist()]
    wanted = next((at for at in moments if fits(room.at(at), demands) is not None), float("inf"))
    assert room.earliest(demands, 0.0) == wanted
