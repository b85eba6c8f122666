"""Rows of a job's tasks in the order of their pods, compared two by two, whatever their names end in."""

from __future__ import annotations

from functools import cmp_to_key
from random import Random

import pytest

from pumice.model.pod_order import compare_pods, name_index
from pumice.state.task_order import order_rows
from pumice.testing.build import pod

INDEXED = [f"g-worker-{i}" for i in (0, 1, 2, 10, 11)]
TIED = [*INDEXED, "g-driver-1", "h-driver-2", "g-x-01"]
PLAIN = ["a", "b-1", "c-d-e", "worker"]


@pytest.mark.parametrize("names", [INDEXED, TIED, PLAIN])
@pytest.mark.parametrize("seed", range(5))
def test_rows_are_in_the_order_of_their_pods(names: list[str], seed: int) -> None:
    dice = Random(seed)
    pods = [pod(name, creation=float(dice.randrange(3))) for name in names]
    rows = dice.sample(range(len(pods)), len(pods))
    compared = sorted(rows, key=cmp_to_key(lambda a, b: compare_pods(pods[a], pods[b])))
    assert order_rows({row: pods[row] for row in rows}) == compared


@pytest.mark.parametrize(
    ("name", "index"),
    [("g-w-7", 7), ("a-b-c-07", 7), ("g-w-", None), ("g-7", None), ("g", None), ("g-w-x", None), ("--1", 1)],
)
def test_the_index_of_a_name_has_two_parts_before_it(name: str, index: int | None) -> None:
    assert name_index(name) == index
