"""Which queues may take back what, and in which order they do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.algorithms.queue_order import request_key
from pumice.algorithms.reclaimable import QueueStates, has_candidates, is_reclaimable, may_reclaim

INF = float("inf")


def states(**changes: Any) -> QueueStates:
    """Two queues without a parent: the first holds 1 of 4, the second 6 of 4."""
    each: dict[str, Any] = {
        "allocated": [[1.0], [6.0]],
        "non_preemptible": [[0.0], [0.0]],
        "quota": [[2.0], [4.0]],
        "fair": [[4.0], [4.0]],
        "share": [[4.0], [4.0]],
    }
    return QueueStates(np.array([-1, -1]), **{name: np.array(each[name]) for name in each} | changes)


@pytest.mark.parametrize(("need", "preemptible", "may"), [(3.0, True, True), (3.5, True, False), (2.5, False, False)])
def test_a_queue_takes_back_up_to_its_share_and_fast_up_to_its_quota(need: float, preemptible: bool, may: bool) -> None:
    assert may_reclaim(states(), 0, np.array([need]), preemptible) is may


@pytest.mark.parametrize(("lumps", "may"), [([1.0], True), ([1.0, 1.0], True), ([1.0, 1.0, 1.0], False)])
def test_each_lump_must_be_above_the_share_of_who_loses(lumps: list[float], may: bool) -> None:
    before, amounts = states(quota=np.array([[0.5], [4.0]])), np.array(lumps).reshape(-1, 1)
    found = is_reclaimable(before, 0, np.array([1.0]), True, np.ones(len(lumps), dtype=np.int64), amounts)
    assert found is may


def test_who_takes_from_nobody_may() -> None:
    nobody = np.zeros(0, dtype=np.int64)
    assert is_reclaimable(states(), 0, np.array([1.0]), True, nobody, np.zeros((0, 1)))


def test_the_key_of_a_request_has_all_that_is_compared() -> None:
    amounts = {"allocated": [2, 3], "job": [1, 0], "victims": [0, 1], "fair": [1, 3], "quota": [4, 2]}
    assert request_key(**amounts, share=[4, INF], total=[8, 8], priority=7.0) == (False, True, -7.0, False, 0.75, 0.5)
    over = request_key([2], [0], [0], [1], [2], [0], [8], 0.0)
    assert over == (True, False, 0.0, True, 2000.0, 2000.0), "of no share at all, anything is a thousand times too much"


@pytest.mark.parametrize(
    ("need", "holds", "quota", "share", "found"),
    [
        pytest.param(2.0, 6.0, 4.0, 8.0, False, id="beyond its quota the taker takes from shares that are exceeded"),
        pytest.param(2.0, 9.0, 4.0, 8.0, True, id="and finds one"),
        pytest.param(1.0, 6.0, 4.0, 8.0, True, id="within its quota it takes from quotas that are exceeded"),
        pytest.param(1.0, 4.0, 4.0, 8.0, True, id="or just reached"),
        pytest.param(1.0, 3.0, 4.0, 8.0, False, id="but not from others"),
        pytest.param(1.0, 3.0, INF, 8.0, True, id="nothing is compared with an unlimited quota"),
        pytest.param(0.0, 3.0, 4.0, 8.0, True, id="nor where nothing is asked for"),
    ],
)
def test_whose_jobs_are_candidates(need: float, holds: float, quota: float, share: float, *, found: bool) -> None:
    before = states(
        allocated=np.array([[1.0], [holds]]), quota=np.array([[2.0], [quota]]), share=np.array([[4.0], [share]])
    )
    assert has_candidates(before, 0, np.array([need]), 1) is found


def test_the_highest_queues_that_differ_are_compared() -> None:
    """Two departments with a queue each: what the leaf itself holds does not count."""
    before = QueueStates(
        np.array([-1, -1, 0, 1]),
        allocated=np.array([[1.0], [6.0], [1.0], [0.0]]),
        non_preemptible=np.zeros((4, 1)),
        quota=np.array([[2.0], [4.0], [2.0], [9.0]]),
        fair=np.full((4, 1), 4.0),
        share=np.full((4, 1), 4.0),
    )
    assert has_candidates(before, 2, np.array([1.0]), 3)
