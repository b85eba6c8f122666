"""Fair shares of queues, worked out by hand. (Measured ones: tests/conformance/test_vectors_queues.)"""

from __future__ import annotations

import numpy as np
import pytest

from pumice.algorithms.queue_order import compare_requests, request_key
from pumice.algorithms.queue_tree import allocatable_share, fair_share

INF = np.inf


def shares(total: float, *queues: dict[str, float], k: float = 1.0) -> list[float]:
    """One resource, one level."""

    def column(key: str, default: float) -> np.ndarray:
        return np.array([[queue.get(key, default)] for queue in queues])

    found = fair_share(
        np.array([total]),
        [np.arange(len(queues))],
        np.full(len(queues), -1),
        column("priority", 100)[:, 0],
        column("quota", 0),
        column("limit", INF),
        column("wants", 0),
        column("weight", 1),
        column("usage", 0),
        k,
        np.arange(len(queues)),
    )
    return found[:, 0].tolist()


@pytest.mark.parametrize(
    ("total", "queues", "due"),
    [
        (10, [{"quota": 2, "weight": 1, "wants": 10}, {"quota": 2, "weight": 3, "wants": 10}], [4, 6]),
        (8, [{"quota": 4, "wants": 8}, {"quota": 4, "wants": 1}, {"wants": 8}], [6, 1, 1]),
        (10, [{"priority": 200, "limit": 6, "wants": 10}, {"wants": 10}], [6, 4]),
        (16, [{"wants": 16, "usage": 0.5}, {"wants": 16, "usage": 0.1}], [6, 10]),
        (7, [{"wants": 7}, {"wants": 7}, {"wants": 7}], [3, 2, 2]),
        (4, [{"quota": 3, "wants": 3}, {"quota": 3, "wants": 3}], [3, 3]),
        (5, [{"quota": INF, "wants": 9}, {"wants": 9}], [5, 0]),
        (5, [{"weight": 0, "wants": 9}, {"weight": 0, "wants": 9}], [0, 0]),
    ],
)
def test_what_is_left_goes_by_priority_and_weight(
    total: float, queues: list[dict[str, float]], due: list[float]
) -> None:
    assert shares(total, *queues) == due


def test_children_share_what_their_parent_is_due_each_resource_by_itself() -> None:
    ones = np.ones((5, 2))
    quota = np.array([[6.0, INF], [2.0, 0.0], [0.0, 0.0], [4.0, 1.0], [0.0, 0.0]])
    wants = np.array([[8.0, 4.0], [8.0, 4.0], [8.0, 2.0], [1.0, 2.0], [8.0, 4.0]])
    found = fair_share(
        np.array([8.0, 4.0]),
        [np.array([0, 1]), np.array([2, 3, 4])],
        np.array([-1, -1, 0, 0, 1]),
        np.full(5, 100.0),
        quota,
        INF * ones,
        wants,
        ones,
        0 * ones,
        1.0,
        np.arange(5),
    )
    assert found.tolist() == [[6, 4], [2, 0], [5, 2], [1, 2], [2, 0]]


def test_what_a_queue_may_hold() -> None:
    quota, limit, fair = np.array([[2.0, INF, 5.0]]), np.array([[INF, 7.0, 3.0]]), np.array([[4.0, 1.0, 6.0]])
    assert allocatable_share(quota, limit, fair).tolist() == [[4, 7, 3]]


def test_a_job_counts_for_its_queue_and_victims_against_it() -> None:
    allocated, job, four = [[4.0], [3.0]], [[0.0], [2.0]], [4.0]

    def first(victims: list[list[float]]) -> int:
        keys = [request_key(allocated[i], job[i], victims[i], four, four, four, [8.0], 0.0) for i in range(2)]
        return compare_requests(keys[0], keys[1], four, four)

    assert first([[0.0], [0.0]]) < 0, "the right would go beyond its quota"
    assert first([[0.0], [4.0]]) < 0, "victims count in the dominant share alone"
