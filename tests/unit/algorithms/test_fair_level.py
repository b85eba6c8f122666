"""Fair parts of demand vectors, against the slow and plain way: raise all until something is used up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.algorithms.fair_level import F64, fair_parts

AMOUNT = st.integers(0, 40).map(float)


def shares(total: float, weights: list[float], most: list[float], least: list[float] | None = None) -> list[float]:
    low, demand = (np.array(each, dtype=float)[None, :, None] for each in (least or [0.0] * len(most), most))
    return (fair_parts(np.array([[float(total)]]), np.array(weights), low, demand) * demand[..., 0])[0].tolist()


@pytest.mark.parametrize(
    ("total", "weights", "most", "expected"),
    [
        pytest.param(8, [1, 3], [12, 16], [2, 6], id="by-weight"),
        pytest.param(8, [1, 3], [12, 3], [5, 3], id="what-one-does-not-want-goes-to-the-other"),
        pytest.param(8, [1, 3], [1, 2], [1, 2], id="enough-for-all"),
        pytest.param(8, [1, 1, 1], [8, 0, 8], [4, 0, 4], id="who-wants-nothing-gets-nothing"),
        pytest.param(0, [1, 1], [8, 8], [8, 8], id="what-is-not-there-does-not-count"),
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


def test_no_queues() -> None:
    assert fair_parts(np.array([[3.0]]), np.zeros(0), np.zeros((1, 0, 1)), np.zeros((1, 0, 1))).shape == (1, 0)


def parts(total: list[float], weight: list[float], demand: list[list[float]]) -> list[float]:
    asked = np.array([demand], dtype=float)
    return fair_parts(np.array([total], dtype=float), np.array(weight), np.zeros_like(asked), asked)[0].tolist()


def test_the_example_of_the_paper() -> None:
    # 9 cores and 18 GB; tasks of 1 core and 4 GB, and of 3 cores and 1 GB: three of the one, two of the other.
    assert parts([9, 18], [1, 1], [[100, 400], [300, 100]]) == pytest.approx([3 / 100, 2 / 100])


def test_a_resource_in_plenty_is_deserved_only_with_one_that_is_short() -> None:
    # Of 10 GPUs both want 20; cores are in plenty, and each gets those of its half.
    assert parts([10, 1000], [1, 1], [[20, 40], [20, 400]]) == pytest.approx([5 / 20, 5 / 20])


def test_queues_that_do_not_ask_for_what_is_used_up_go_on() -> None:
    assert parts([10, 10], [1, 1, 1], [[20, 0], [20, 0], [0, 8]]) == pytest.approx([5 / 20, 5 / 20, 1.0])


@given(
    st.lists(st.tuples(st.integers(1, 9).map(float), AMOUNT, AMOUNT, AMOUNT, AMOUNT), min_size=1, max_size=8),
    AMOUNT,
    AMOUNT,
)
def test_equal_to_raising_all_in_small_steps(queues: list[tuple[float, ...]], cpu: float, gpu: float) -> None:
    weight = np.array([queue[0] for queue in queues])
    demand = np.array([queue[1:3] for queue in queues])
    total = np.array([cpu, gpu])
    found = fair_parts(total[None], weight, np.zeros((1, *demand.shape)), demand[None])[0]
    assert found == pytest.approx(poured(total, weight, demand), abs=0.02)


def poured(total: F64, weight: F64, demand: F64) -> F64:
    """Raise all parts together in small steps, until something that a queue asks for is used up."""
    share = np.divide(demand, total, out=np.zeros_like(demand), where=total > 0).max(axis=1)
    found, going = np.where(share > 0, 0.0, 1.0), share > 0
    used = found @ np.where(total > 0, demand, 0.0)
    step = 0.01 * np.divide(weight, share, out=np.zeros_like(share), where=going)
    step *= 0.01 / max(step.max(initial=0.0), 1e-12)
    for _ in range(200_000):
        more = np.where(going, np.minimum(found + step, 1.0) - found, 0.0)
        if not more.any():
            break
        used = (found + more) @ demand
        over = (used > total + 1e-9) & (total > 0)
        if over.any():
            going &= ~(demand[:, over] > 0).any(axis=1)
            continue
        found += more
    return found
