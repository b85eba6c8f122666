"""Best fit by kinds: it never overfills a bin, and places what any order would place of one kind."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.algorithms.packing import best_fit, places


@pytest.mark.parametrize("seed", range(30))
def test_no_bin_is_overfilled_and_no_item_is_where_it_may_not_be(seed: int) -> None:
    dice = np.random.default_rng(seed)
    needs, rooms = dice.integers(0, 5, (3, 2)).astype(float), dice.integers(0, 12, (6, 2)).astype(float)
    counts, may = dice.integers(0, 9, 3), dice.random((3, 6)) < 0.7
    found = best_fit(needs, counts, may, rooms)
    assert (found.T @ needs <= rooms).all()
    assert (found.sum(axis=1) <= counts).all()
    assert not found[~may].any()


@pytest.mark.parametrize("seed", range(10))
def test_items_of_one_kind_are_placed_as_often_as_there_is_room(seed: int) -> None:
    dice = np.random.default_rng(seed)
    need, rooms = np.array([3.0, 2.0]), dice.integers(0, 12, (6, 2)).astype(float)
    may = dice.random(6) < 0.7
    found = best_fit(need[None], np.array([100]), may[None], rooms)
    assert (found[0] == np.where(may, places(need, rooms), 0)).all()


def test_small_items_leave_large_bins_to_large_ones() -> None:
    found = best_fit(
        np.array([[6.0], [3.0]]), np.array([2, 2]), np.ones((2, 4), bool), np.array([[4.0], [8], [4], [8]])
    )
    assert found.tolist() == [[0, 1, 0, 1], [1, 0, 1, 0]]
