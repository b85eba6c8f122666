"""GPUs of tasks and nodes, as the search for victims compares them."""

from __future__ import annotations

from pumice.kai.engine.victims.gpus import free_gpus, gpus_of, gpus_of_each
from tests.unit.kai.cluster import job, node, opened, queue, rows_of, store


def test_gpus_of_tasks_and_what_is_free_on_nodes() -> None:
    fills = [*job("x", "q", ["a"], gpus=2), *job("y", "q", ["b"], gpus=1)]
    ssn = opened(store(queue("q"), node("a", 3), node("b", 1), fills))
    rows = [rows_of(ssn)[name] for name in ("x-0", "y-0")]
    assert gpus_of_each(ssn, rows).tolist() == [gpus_of(ssn, row) for row in rows] == [2000.0, 1000.0]
    assert free_gpus(ssn).tolist() == [1000.0, 0.0]


def test_without_gpus_there_are_none() -> None:
    ssn = opened(store(queue("q"), node("a", 0), job("x", "q", ["a"], gpus=0)))
    assert gpus_of_each(ssn, [0]).tolist() == [0.0] and free_gpus(ssn).tolist() == [0.0]
