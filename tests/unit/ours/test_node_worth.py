"""What nodes are worth: devices are cut as is best, cores that run out make devices worthless, models fill evenly; and
what comes in bounds neither work nor answers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from pumice.ours.fragments import F64, Ask, Room, Shape
from pumice.ours.node_worth import PARTS, NodeWorth, bids, part_worths

ANY = (True,)


def parts(**pods: float) -> F64:
    """``p60=2``: two pods ask for 60 hundredths."""
    found = np.zeros(PARTS + 1)
    for name, count in pods.items():
        found[int(name[1:])] = count
    return found


def room(cores: float, *gpus: float) -> Room:
    return Room(np.array([cores]), np.array([gpus]), np.array([0]))


def test_parts_are_worth_what_they_take_where_devices_are_cut_best() -> None:
    """Two of 47 fill a device, though they leave 6; 81 takes one alone, for few ask for less than 19."""
    worths = part_worths(parts(p81=100.0, p47=100.0, p16=5.0, p100=50.0))
    assert worths[[100, 81, 47, 16]].tolist() == pytest.approx([1000.0, 1000.0, 500.0, 0.0])


def test_a_part_that_fills_what_others_leave_is_worth_nothing_until_many_ask_for_it() -> None:
    assert part_worths(parts(p81=100.0, p16=99.0))[16] == 0.0
    assert part_worths(parts(p81=100.0, p16=101.0))[16] > 0.0


def test_no_cut_is_worth_more_than_a_device_and_the_dual_is_that_of_the_best_cuts() -> None:
    """50 devices are needed for 60 of 60 and 40 of 40, of which 40 share: 60 x 60 alone is 60 devices."""
    asked = parts(p60=60.0, p40=40.0)
    worths = part_worths(asked)
    assert float(worths @ asked) == pytest.approx(60.0 * 1000.0)
    for sixties, forties in product(range(2), range(3)):
        if 60 * sixties + 40 * forties <= PARTS:
            assert sixties * worths[60] + forties * worths[40] <= 1000.0 + 1e-6


def test_with_a_hundred_sizes_the_work_is_bounded_and_no_cut_is_worth_more_than_a_device() -> None:
    worths = part_worths(np.concatenate(([0.0], (np.arange(PARTS) * 37 % 101 + 1.0))))
    most = [0.0]
    for gap in range(1, PARTS + 1):
        most.append(max(worths[size] + most[gap - size] for size in range(1, gap + 1)))
    assert 0.0 < most[PARTS] <= 1000.0 + 1e-3


def test_a_part_costs_nothing_where_the_best_cut_has_it_and_more_elsewhere() -> None:
    """There are more of 600 than of 400, so that a 400 costs nothing beside a 600; and half a device beside a 500."""
    asks = ((600.0, 120.0), (400.0, 100.0), (500.0, 20.0))
    worth = NodeWorth([Shape(Ask(0.0, 1, milli), ANY, pods) for milli, pods in asks], 2)
    assert worth.loss(room(0.0, 500.0, 400.0), Ask(0.0, 1, 400.0)).tolist() == [[500.0, 0.0]]


def test_a_device_without_the_cores_for_it_is_worth_nothing() -> None:
    worth = NodeWorth([Shape(Ask(8_000.0, 1, 1000.0), ANY, 10.0), Shape(Ask(4_000.0, 1, 1000.0), ANY, 10.0)], 4)
    assert worth.of(room(0.0, 1000.0, 1000.0))[0] == 0.0
    assert worth.of(room(1e6, 1000.0, 1000.0))[0] == 2000.0
    assert 0.0 < worth.of(room(4_000.0, 1000.0, 1000.0))[0] <= 1000.0


def test_a_pod_that_takes_the_last_cores_beside_a_free_device_costs_that_device() -> None:
    worth = NodeWorth([Shape(Ask(4_000.0, 1, 1000.0), ANY, 10.0)], 4)
    hungry = Ask(8_000.0, 1, 1000.0)
    assert worth.loss(room(8_000.0, 1000.0, 1000.0), hungry)[0, 0] == 2000.0
    assert worth.loss(room(64_000.0, 1000.0, 1000.0), hungry)[0, 0] == 1000.0
    no_gpu = Ask(8_000.0, 0, 0.0)
    assert worth.loss(room(12_000.0, 1000.0, 1000.0), no_gpu)[0, 0] == 1000.0
    assert worth.loss(room(64_000.0, 1000.0, 1000.0), no_gpu)[0, 0] == 0.0


def test_several_devices_for_one_pod_are_worth_it_only_together() -> None:
    worth = NodeWorth([Shape(Ask(0.0, 4, 1000.0), ANY, 10.0)], 8)
    found = [worth.of(room(0.0, *([1000.0] * count + [0.0] * (8 - count))))[0] for count in range(9)]
    assert found == [0.0, 0.0, 0.0, 0.0, 4000.0, 4000.0, 4000.0, 4000.0, 8000.0]


def test_models_fill_evenly_and_nodes_of_one_by_name() -> None:
    gain = np.array([0.0, 0.0, 1.0])
    found = bids(gain, 1000.0, np.array([0.5, 0.25, 0.25]))
    assert found[0] < found[1] == found[2], "a milli-device is less than a step"
    assert bids(gain, 0.0, np.array([0.5, 0.25, 0.25])).tolist() == [0.0, 0.0, 0.0]


def test_nothing_asked_for_and_nothing_there_have_worths_too() -> None:
    assert NodeWorth([], 0).of(room(1000.0, 0.0)).tolist() == [0.0]
    cores_only = NodeWorth([Shape(Ask(1000.0, 0, 0.0), ANY, 5.0)], 8)
    assert cores_only.loss(room(4000.0, 1000.0), Ask(1000.0, 1, 300.0)).tolist() == [[0.0]]
    more_than_there_are = NodeWorth([Shape(Ask(1000.0, 9, 1000.0), ANY, 5.0)], 8)
    assert more_than_there_are.of(room(4000.0, *[1000.0] * 8)).tolist() == [0.0]
    assert part_worths(np.zeros(PARTS + 1)).tolist() == [0.0] * (PARTS + 1)
