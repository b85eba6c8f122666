"""What queues deserve, to the last bit: against passes that go through the queues that still want something."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.algorithms.shares import EPS, dominant_share, queue_share, water_filling
from pumice.columns.dtypes import F64


def poured(total: F64, weight: F64, request: F64, guarantee: F64, limit: F64) -> F64:
    deserved, left, wanting = np.zeros_like(request), total.copy(), list(range(len(weight)))
    while wanting and (all_weights := sum(weight[row] for row in wanting)):
        before = deserved.copy()
        for row in wanting:
            up_to = np.minimum(before[row] + left * (weight[row] / all_weights), np.minimum(limit[row], request[row]))
            deserved[row] = np.maximum(up_to, guarantee[row])
        rest = np.maximum(left - sum(deserved - before), 0.0)
        if (rest < EPS).all() or (rest == left).all():
            break
        still = (request - deserved >= EPS).any(axis=1) & (deserved != before).any(axis=1)
        left, wanting = rest, [row for row in wanting if still[row]]
    return deserved


@pytest.mark.parametrize("count", [0, 1, 3, 15])
def test_each_pass_is_shared_by_those_that_still_want_something(count: int) -> None:
    dice, met = np.random.default_rng(count), 0
    for _ in range(100):
        shape = (count, 4)
        total = dice.integers(0, 10**6, 4) * dice.choice([0.0, 1.0, 1000.0], 4)
        weight = dice.integers(0, 5, count).astype(np.float64)
        request = dice.integers(0, 10**6, shape) * dice.choice([0.0, 1.0, 10.0], shape)
        guarantee = dice.integers(0, 10**5, shape) * dice.choice([0.0, 0.0, 1.0], shape)
        limit = np.where(dice.random(shape) < 0.5, np.inf, dice.integers(0, 10**6, shape))
        found = water_filling(total, weight, request, guarantee, limit)
        assert found.tolist() == poured(total, weight, request, guarantee, limit).tolist()
        met += int((found == request).all(axis=1).sum())
    assert met or not count


def test_dimensions_that_a_queue_does_not_deserve_are_no_part_of_its_share() -> None:
    allocated, deserved = np.array([[1.0, 9.0], [3.0, 1.0], [5.0, 5.0]]), np.array([[2.0, 0.0], [6.0, 4.0], [0.0, 0.0]])
    assert queue_share(allocated, deserved).tolist() == [0.5, 0.5, 0.0]
    assert queue_share(allocated[:, :0], deserved[:, :0]).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("allocated", "total", "share"),
    [
        pytest.param([[1.0, 4.0], [3.0, 2.0]], [4.0, 8.0], [0.5, 0.75], id="the largest part"),
        pytest.param([[1.0, 4.0], [3.0, 2.0]], [4.0, 0.05], [0.25, 0.75], id="of what there is"),
        pytest.param([[1.0, 4.0], [3.0, 2.0]], [0.0, 0.05], [0.0, 0.0], id="where nothing is there"),
        pytest.param([[-1.0, -4.0]], [4.0, 8.0], [0.0], id="never below nothing"),
        pytest.param([1.0, 4.0], [4.0, 8.0], 0.5, id="of one"),
        pytest.param([[], []], [], [0.0, 0.0], id="without dimensions"),
    ],
)
def test_the_share_of_what_somebody_holds(allocated: list[Any], total: list[float], share: Any) -> None:
    assert dominant_share(np.array(allocated), np.array(total)).tolist() == share
