"""Problems of trees of CompositePodGroups, as files are read."""

from __future__ import annotations

from pumice.model.workloads.gang import SUB_GROUPS_MAX
from pumice.runtime.problems.native_groups import tree_problems
from pumice.state.group_trees import with_trees
from tests.unit.state.test_group_trees import composite, group


def problems(*objects: object) -> list[str]:
    return [f"{each.where}: {each.what}" for each in tree_problems(with_trees(objects))]


def test_a_whole_tree_has_none() -> None:
    assert not problems(composite("all", least=2), group("a", "all"), group("b", "all"))


def test_missing_groups_are_counted_at_each_level() -> None:
    objects = composite("all", least=3), composite("in", "all", 2), group("a", "in"), group("b", "all")
    assert problems(*objects) == [
        "CompositePodGroup n/all: minGroupCount is 3, but it has 2 groups",
        "CompositePodGroup n/in: minGroupCount is 2, but it has 1 groups",
    ]


def test_a_tree_that_is_too_large_is_named_once() -> None:
    (found,) = problems(composite("all"), *(group(f"g{i}", "all") for i in range(SUB_GROUPS_MAX + 1)))
    assert found.startswith("CompositePodGroup n/all: found more than") and found.endswith("its pods are not placed")


def test_a_group_without_its_parent_is_named() -> None:
    (found,) = problems(group("a", "nowhere"))
    assert found.startswith('PodGroup n/a: spec.parentCompositePodGroupName: found "nowhere"')
