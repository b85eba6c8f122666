"""Bad input about Kubernetes' own groups: what is named, what counts instead, and that nothing is bound by half."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.unit.cli.test_native_groups import SCHEDULERS, Raw, node, schedule
from tests.unit.volcano.gangs.test_tree_placement import composite, group, pods

both = pytest.mark.parametrize("dialect", SCHEDULERS)


class Bad(Struct):
    """``says``: what is named, with the object, the field and what counts. ``bound``: pods of two of a group g that are
    bound all the same."""

    objects: list[Raw]
    says: str
    bound: int = 0


def _chain(length: int) -> list[Raw]:
    up = [composite(f"c{i}", 1, f"c{i - 1}" if i else "") for i in range(length)]
    return [*up, group("g", 1, f"c{length - 1}")]


def _misspelt() -> Raw:
    found = group("g", 2, "")
    found["spec"]["schedulingPolicy"]["gang"]["minCuont"] = 3
    return found


CASES = {
    "groups in a circle": Bad(
        [composite("a", 1, "b"), composite("b", 1, "a"), group("g", 1, "a")],
        "PodGroup ml/g: spec.parentCompositePodGroupName: found a circle of parents (a -> b -> a), wanted a tree; its"
        " pods are not placed",
    ),
    "a group that is its own parent": Bad(
        [composite("a", 1, "a"), group("g", 1, "a")], "found a circle of parents (a -> a), wanted a tree; its pods"
    ),
    "depth above 4": Bad(
        _chain(4),
        "PodGroup ml/g: spec.parentCompositePodGroupName: found more than 4 levels of groups, wanted at most 4; its"
        " pods are not placed",
    ),
    "a parent that does not exist": Bad(
        [group("g", 1, "al")],
        'PodGroup ml/g: spec.parentCompositePodGroupName: found "al", wanted the name of an existing CompositePodGroup;'
        " its pods are not placed",
    ),
    "minimum above its pods": Bad(
        [group("g", 5, "")], "PodGroup ml/g: spec.schedulingPolicy.gang.minCount is 5, but it has 2 pods"
    ),
    "minimum above its groups": Bad(
        [composite("all", 3), group("g", 1)], "CompositePodGroup ml/all: minGroupCount is 3, but it has 1 groups"
    ),
    "a minimum that is none": Bad(
        [group("g", 0, "")], "PodGroup ml/g: spec.schedulingPolicy.gang.minCount: found 0, wanted an integer"
    ),
    "unknown keys": Bad(
        [_misspelt()],
        "PodGroup ml/g: spec.schedulingPolicy.gang.minCuont unknown field (ignored); did you mean minCount?",
        bound=2,
    ),
    "both policies": Bad(
        [group("g", 2, "", schedulingPolicy={"basic": {}, "gang": {"minCount": 2}})],
        "PodGroup ml/g: spec.schedulingPolicy: found basic and gang, wanted one of basic and gang",
    ),
    "a version that is unknown": Bad(
        [{**group("g", 2, ""), "apiVersion": "scheduling.k8s.io/v9"}], "PodGroup ml/g does not exist"
    ),
}


@both
@pytest.mark.parametrize("case", CASES)
def test_bad_groups_are_named_and_nothing_is_bound_by_half(tmp_path: Path, dialect: str, case: str) -> None:
    bad = CASES[case]
    found = schedule(tmp_path, dialect, node("n", 8), *bad.objects, *pods(dialect, "g", 1, 1))
    assert bad.says in " ".join(found.err.split())
    assert len(found.json["binds"]) == bad.bound, "and none is lost"
    assert len(found.json["unscheduled"]) == 2 - bad.bound


@both
@pytest.mark.parametrize("annotation", ["scheduling.k8s.io/group-name", "pod-group-name"])
def test_of_both_forms_on_one_pod_the_native_one_counts(tmp_path: Path, dialect: str, annotation: str) -> None:
    """The gang of two is bound whole, although one of its pods names a group of another kind too."""
    members: list[dict[str, Any]] = pods(dialect, "g", 1, 1)
    members[0]["metadata"]["annotations"] = {annotation: "other"}
    found = schedule(tmp_path, dialect, node("n", 8), group("g", 2, ""), *members)
    assert len(found.json["binds"]) == 2
    said = "Pod ml/g-0: spec.schedulingGroup and an annotation name different groups; the annotation (other) is ignored"
    assert said in " ".join(found.err.split())
    alone = schedule(tmp_path, dialect, node("n", 8), group("g", 3, ""), *members)
    assert not alone.json["binds"]
