"""Fair shares in one step, against the slow and plain way: pour until nobody wants more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.algorithms.fair_level import fair_shares
from pumice.algorithms.shares import water_filling

AMOUNT = st.integers(0, 40).map(float)


def shares(total: float, weights: list[float], most: list[float], least: list[float] | None = None) -> list[float]:
    low = np.zeros(len(most)) if least is None else np.array(least)
    return fair_shares(np.array([total]), np.array(weights), low[:, None], np.array(most)[:, None])[:, 0].tolist()


@pytest.mark.parametrize(
    ("total", "weights", "most", "expected"),
    [
        pytest.param(8, [1, 3], [12, 16], [2, 6], id="by-weight"),
        pytest.param(8, [1, 3], [12, 3], [5, 3], id="what-one-does-not-want-goes-to-the-other"),
        pytest.param(8, [1, 3], [1, 2], [1, 2], id="enough-for-all"),
        pytest.param(8, [1, 1, 1], [8, 0, 8], [4, 0, 4], id="who-wants-nothing-gets-nothing"),
        pytest.param(0, [1, 1], [8, 8], [0, 0], id="nothing-there"),
        pytest.param(9, [1, 2, 3], [1, 9, 9], [1, 3.2, 4.8], id="three"),
    ],
)
def test_by_weight_up_to_what_is_wanted(
    total: float, weights: list[float], most: list[float], expected: list[float]
) -> None:
    assert shares(total, weights, most) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("total", "least", "expected"),
    [
        pytest.param(8, [4, 0, 0], [4, 2, 2], id="a-guarantee-comes-first"),
        pytest.param(8, [1, 0, 0], [8 / 3] * 3, id="a-guarantee-below-the-share-changes-nothing"),
        pytest.param(8, [6, 6, 0], [6, 6, 0], id="guarantees-of-more-than-there-is"),
    ],
)
def test_guarantees(total: float, least: list[float], expected: list[float]) -> None:
    assert shares(total, [1, 1, 1], [9, 9, 9], least) == pytest.approx(expected)


def test_nobody() -> None:
    assert fair_shares(np.array([3.0]), np.zeros(0), np.zeros((0, 1)), np.zeros((0, 1))).shape == (0, 1)


@given(
    st.lists(st.tuples(st.integers(1, 9).map(float), AMOUNT, AMOUNT, AMOUNT, AMOUNT), min_size=1, max_size=12),
    AMOUNT,
    AMOUNT,
)
def test_the_same_as_pouring_pass_by_pass(queues: list[tuple[float, ...]], cpu: float, gpu: float) -> None:
    weight = np.array([queue[0] for queue in queues])
    most = 100 * np.array([queue[1:3] for queue in queues])
    least = np.minimum(20 * np.array([queue[3:5] for queue in queues]), most)
    total = 100 * np.array([cpu, gpu])
    found = fair_shares(total, weight, least, most)
    assert (found >= least - 1e-6).all() and (found <= most + 1e-6).all()
    if not (least.sum(axis=0) > 0).any():  # Volcano's passes put the guarantee on top of what was poured before
        assert found == pytest.approx(water_filling(total, weight, most, least, most), abs=1.0)
    room = np.maximum(total, least.sum(axis=0))
    assert found.sum(axis=0) == pytest.approx(np.minimum(room, most.sum(axis=0)))
    level = found / weight[:, None]
    for one in range(len(queues)):
        for other in range(len(queues)):  # who has more a weight than another could not have less, or that one not more
            richer = level[one] > level[other] + 1e-6
            assert not (richer & (found[one] > least[one] + 1e-6) & (found[other] < most[other] - 1e-6)).any()
