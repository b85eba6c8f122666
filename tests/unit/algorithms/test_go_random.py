"""Numbers of Go's generator: those that Go 1 gives for the same seeds, and orders that are orders."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.algorithms.go_random import GoRandom, _power_of_x, _reduced


def test_the_sequence_of_a_seed_is_that_of_go() -> None:
    """The numbers were printed by a program of Go 1.26."""
    dice = GoRandom(1)
    assert [dice.below(100) for _ in range(10)] == [81, 87, 47, 59, 81, 18, 25, 40, 56, 0]
    dice = GoRandom(42)
    assert [dice.int63() for _ in range(3)] == [3440579354231278675, 608747136543856411, 5571782338101878760]
    assert dice.shuffled(8) == [6, 5, 3, 7, 4, 2, 0, 1]
    assert dice.permutation(8) == [3, 7, 4, 6, 0, 2, 5, 1]
    assert GoRandom(0).int63() == 8717895732742165505


@pytest.mark.parametrize("count", [1, 2, 3, 607, 1000])
def test_orders_have_each_once_and_numbers_stay_below(count: int) -> None:
    dice = GoRandom(7)
    assert sorted(dice.shuffled(count)) == sorted(dice.permutation(count)) == list(range(count))
    assert all(0 <= dice.below(count) < count for _ in range(700))


def test_powers_of_x_are_what_single_steps_give() -> None:
    one = np.zeros(607, dtype=np.uint64)
    one[0] = 1
    for exponent in range(1500):
        assert exponent % 499 or _power_of_x(exponent).tolist() == one.tolist()
        one = _reduced(np.concatenate((np.zeros(1, dtype=np.uint64), one)))
