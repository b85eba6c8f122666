"""The search of small trees is bounded: trees that are too large are not counted in domains at all."""

from __future__ import annotations

import random

import pytest

from bench import nested_trees
from bench.native_groups import CONFS
from pumice.placing import small_trees
from pumice.runtime.policy.conf import loaded_from_text
from pumice.runtime.policy.languages import builtin_registry


@pytest.mark.parametrize("dialect", CONFS)
@pytest.mark.parametrize(("bound", "value"), [("LOOKS_MAX", 0), ("CHOICES_MAX", 0), ("LOOKS_IN_ALL_MAX", 0)])
def test_a_bound_ends_the_search_and_leaves_the_tree_waiting_whole(
    dialect: str, bound: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, dice = loaded_from_text(CONFS[dialect], builtin_registry(), where=dialect).policy, random.Random(1)
    # Its first groups in order leave no room for the last.
    case = [nested_trees.case_of(dice) for _ in range(126)][125]
    assert nested_trees.starts(case, dialect, policy)
    monkeypatch.setattr(small_trees, bound, value)
    assert not nested_trees.starts(case, dialect, policy)


@pytest.mark.parametrize("dialect", CONFS)
def test_a_tree_with_more_pods_than_are_searched_is_not_counted(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    fit = small_trees._Choices._fit
    monkeypatch.setattr(small_trees._Choices, "_fit", lambda *args: counted.append(1) or fit(*args))
    policy = loaded_from_text(CONFS[dialect], builtin_registry(), where=dialect).policy
    nodes = (nested_trees.PlacedNode(4, "z", "r"),) * 4
    for pods in (8, 9):
        groups = (nested_trees.TreeNode("", (1,) * pods), nested_trees.TreeNode("rack", (1,) * pods))
        case = nested_trees.NestedCase(nodes, nested_trees.TreeNode("zone", least=2, inside=groups))
        # One pod more than there is room for, so that nothing starts in order.
        case = nested_trees.NestedCase(nodes[:3], case.tree)
        assert not nested_trees.starts(case, dialect, policy)
        assert bool(counted) is (pods == 8)
        counted.clear()
