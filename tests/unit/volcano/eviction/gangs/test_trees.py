"""What a tree lacks of its minimum, by sums."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pumice.placing.gang_tree import Member
from pumice.volcano.eviction.gangs import trees


@pytest.fixture(autouse=True)
def met(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The sub-jobs that have their minimum."""
    found: set[int] = set()
    monkeypatch.setattr(trees, "sub_missing", lambda ssn, sub: int(sub not in found))
    monkeypatch.setattr(trees, "sub_pipelined", lambda ssn, sub: False)
    return found


SSN: Any = SimpleNamespace()
AMOUNTS = {0: np.array([4.0, 1.0]), 1: np.array([2.0, 3.0]), 2: np.array([1.0, 9.0])}


def root(least: int, inner: int) -> Member:
    """Return a set of the group 2 and a set of the groups 0 and 1, of which ``inner`` are needed."""
    inside = Member(inner, -1, (Member(1, 0), Member(1, 1)), is_set=True)
    return Member(least, -1, (inside, Member(1, 2)), is_set=True)


@pytest.mark.parametrize(
    ("least", "inner", "have", "lacks"),
    [
        (1, 1, (), [1.0, 1.0]),
        (2, 1, (), [3.0, 10.0]),
        (2, 2, (), [7.0, 13.0]),
        (2, 2, (0,), [3.0, 12.0]),
        (2, 1, (0,), [1.0, 9.0]),
        (1, 1, (0, 2), [1.0, 1.0]),
    ],
)
def test_each_resource_is_that_of_the_groups_that_need_least(
    met: set[int], least: int, inner: int, have: tuple[int, ...], lacks: list[float]
) -> None:
    met.update(have)
    assert trees.least_need(SSN, root(least, inner), AMOUNTS).tolist() == lacks


@pytest.mark.parametrize(
    ("least", "inner", "fit", "may"),
    [(1, 2, (2,), True), (1, 2, (0,), False), (2, 1, (1, 2), True), (2, 2, (1, 2), False), (2, 1, (0, 1), False)],
)
def test_a_tree_may_get_its_minimum_from_any_of_its_groups(
    least: int, inner: int, fit: tuple[int, ...], may: bool
) -> None:
    assert trees.may_be_met(SSN, root(least, inner), fit.__contains__) is may


def test_a_group_without_pods_is_counted_on_by_no_sum() -> None:
    missing = Member(2, -1, (Member(1), Member(1, 1)), is_set=True)
    assert not trees.may_be_met(SSN, missing, lambda sub: sub >= 0)
    assert trees.least_need(SSN, missing, AMOUNTS).tolist() == [np.inf, np.inf]
