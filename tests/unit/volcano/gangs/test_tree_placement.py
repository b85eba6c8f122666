"""Trees of CompositePodGroups: ``pumice schedule`` places or holds them as a whole, under both policy languages."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from bench import nested_trees
from bench.native_groups import CONFS
from bench.native_trees import can_start, case_of, one_pass, places
from pumice.placing.small_gangs import Searched
from pumice.placing.small_trees import SmallTrees
from pumice.runtime.policy.conf import loaded_from_text
from pumice.runtime.policy.languages import builtin_registry
from tests.unit.cli.test_native_groups import SCHEDULERS, Raw, node, schedule

BASIC: Raw = {"basic": {}}
both = pytest.mark.parametrize("dialect", SCHEDULERS)


def composite(name: str, least: int | None, parent: str = "", rack: str = "", **spec: Any) -> Raw:
    policy = BASIC if least is None else {"gang": {"minGroupCount": least}}
    return _object("CompositePodGroup", name, policy, parent, rack, **spec)


def group(name: str, least: int | None, parent: str = "all", rack: str = "", **spec: Any) -> Raw:
    policy = BASIC if least is None else {"gang": {"minCount": least}}
    return _object("PodGroup", name, policy, parent, rack, **spec)


def _object(kind: str, name: str, policy: Raw, parent: str, rack: str, **spec: Any) -> Raw:
    spec = {"schedulingPolicy": policy, **spec}
    if parent:
        spec["parentCompositePodGroupName"] = parent
    if rack:
        spec["schedulingConstraints"] = {"topology": [{"key": rack}]}
    metadata = {"name": name, "namespace": "ml"}
    return {"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": kind, "metadata": metadata, "spec": spec}


def pods(dialect: str, of: str, *cpus: int, **spec: Any) -> list[Raw]:
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{of}-{i}", "namespace": "ml"},
            "spec": {
                "schedulerName": SCHEDULERS[dialect],
                "schedulingGroup": {"podGroupName": of},
                "containers": [{"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}],
                **spec,
            },
        }
        for i, cpu in enumerate(cpus)
    ]


@both
@pytest.mark.parametrize(("cpu", "bound"), [(4, 3), (3, 0)])
def test_a_tree_is_bound_whole_or_not_at_all(tmp_path: Path, dialect: str, cpu: int, bound: int) -> None:
    tree = [composite("all", 2), group("driver", 1), group("workers", 2)]
    members = pods(dialect, "driver", 2) + pods(dialect, "workers", 1, 1)
    found = schedule(tmp_path, dialect, node("n", cpu), *tree, *members).json
    assert len(found["binds"]) == bound and len(found["unscheduled"]) == 3 - bound


@both
def test_a_group_below_its_minimum_holds_the_tree_back(tmp_path: Path, dialect: str) -> None:
    tree = [composite("all", 2), group("driver", 1), group("workers", 3)]
    members = pods(dialect, "driver", 1) + pods(dialect, "workers", 1, 1)
    found = schedule(tmp_path, dialect, node("n", 9), *tree, *members)
    assert not found.json["binds"] and len(found.json["unscheduled"]) == 3


@both
def test_a_group_that_is_not_there_yet_holds_the_tree_back_and_is_named(tmp_path: Path, dialect: str) -> None:
    tree = [composite("all", 2), group("workers", 1)]
    found = schedule(tmp_path, dialect, node("n", 9), *tree, *pods(dialect, "workers", 1, 1))
    assert not found.json["binds"]
    assert "CompositePodGroup ml/all: minGroupCount is 2, but it has 1 groups" in " ".join(found.err.split())


@both
def test_enough_groups_start_and_the_others_come_whole(tmp_path: Path, dialect: str) -> None:
    """Of three pairs, two fit; the third is not begun."""
    tree = [composite("all", 1), *(group(name, 2) for name in "abc")]
    members = [pod for name in "abc" for pod in pods(dialect, name, 1, 1)]
    found = schedule(tmp_path, dialect, node("n", 5), *tree, *members).json
    assert sorted(found["binds"]) == ["ml/a-0", "ml/a-1", "ml/b-0", "ml/b-1"]


@both
@pytest.mark.parametrize("large", ["", "racks"])
def test_a_group_that_fits_nowhere_is_passed_over(tmp_path: Path, dialect: str, large: str) -> None:
    """The first of three groups is too large, or its rack is: the others make up the minimum."""
    label = "rack" if large else ""
    tree = [composite("all", 2), *(group(name, 2, rack=label) for name in "abc")]
    members = [*pods(dialect, "a", 2, 2), *pods(dialect, "b", 1, 1), *pods(dialect, "c", 1, 1)]
    nodes = [node("n0", 2, rack="0"), node("n1", 2, rack="1")] if large else [node("n0", 1), node("n1", 3)]
    found = schedule(tmp_path, dialect, *nodes, *tree, *members).json
    assert sorted(found["binds"]) == ["ml/b-0", "ml/b-1", "ml/c-0", "ml/c-1"]


@both
def test_a_set_that_fits_nowhere_is_passed_over(tmp_path: Path, dialect: str) -> None:
    tree = [
        composite("all", 1),
        *(composite(name, 2, "all", rack="rack") for name in ("left", "right")),
        *(group(f"{name}-{i}", 1, name) for name in ("left", "right") for i in (0, 1)),
    ]
    members = [
        pod for name, cpu in (("left", 2), ("right", 1)) for i in (0, 1) for pod in pods(dialect, f"{name}-{i}", cpu)
    ]
    found = schedule(tmp_path, dialect, node("n0", 2, rack="0"), node("n1", 2, rack="1"), *tree, *members).json
    assert sorted(found["binds"]) == ["ml/right-0-0", "ml/right-1-0"]


@both
def test_a_group_with_too_few_pods_is_not_begun_while_another_is_complete(tmp_path: Path, dialect: str) -> None:
    tree = [composite("all", 1), group("a", 2), group("b", 2)]
    members = [*pods(dialect, "a", 1), *pods(dialect, "b", 1, 1)]
    found = schedule(tmp_path, dialect, node("n", 8), *tree, *members).json
    assert sorted(found["binds"]) == ["ml/b-0", "ml/b-1"]


@both
def test_a_running_group_counts_and_only_what_is_missing_is_asked_for(tmp_path: Path, dialect: str) -> None:
    """One of two groups runs already: of two more, the one that fits is enough."""
    tree = [composite("all", 2), *(group(name, 1) for name in "abc")]
    running = pods(dialect, "c", 1, nodeName="n")
    running[0]["status"] = {"phase": "Running"}
    members = [*running, *pods(dialect, "a", 4), *pods(dialect, "b", 1)]
    found = schedule(tmp_path, dialect, node("n", 3), *tree, *members).json
    assert sorted(found["binds"]) == ["ml/b-0"]


@both
def test_groups_of_a_basic_composite_start_one_by_one(tmp_path: Path, dialect: str) -> None:
    tree = [composite("all", None), group("a", 2), group("b", 2)]
    members = pods(dialect, "a", 1, 1) + pods(dialect, "b", 1, 1)
    found = schedule(tmp_path, dialect, node("n", 3), *tree, *members).json
    assert sorted(found["binds"]) == ["ml/a-0", "ml/a-1"]


@both
def test_each_inner_group_stays_in_one_rack_and_the_tree_in_one_zone(tmp_path: Path, dialect: str) -> None:
    tree = [
        composite("all", 2, rack="zone"),
        *(composite(name, 2, "all", rack="rack") for name in ("left", "right")),
        *(group(f"{name}-{i}", 1, name) for name in ("left", "right") for i in (0, 1)),
    ]
    members = [pod for name in ("left", "right") for i in (0, 1) for pod in pods(dialect, f"{name}-{i}", 1)]
    racks = [
        *(node(f"a{i}", 1, zone="a", rack=f"a{i}") for i in range(4)),  # a zone with room, but not in its racks
        *(node(f"b{i}", 1, zone="b", rack=f"b{i // 2}") for i in range(4)),
    ]
    found = schedule(tmp_path, dialect, *racks, *tree, *members).json["binds"]
    rack_of = {pod: int(name[1]) // 2 for pod, name in found.items()}
    assert set(found.values()) == {"b0", "b1", "b2", "b3"}
    for name in ("left", "right"):
        assert rack_of[f"ml/{name}-0-0"] == rack_of[f"ml/{name}-1-0"]


@both
def test_what_comes_later_to_a_group_is_bound_where_it_is(tmp_path: Path, dialect: str) -> None:
    tree = [composite("all", 1), group("workers", 1, rack="rack")]
    running = pods(dialect, "workers", 1, nodeName="b")
    running[0]["status"] = {"phase": "Running"}
    later = pods(dialect, "workers", 1, 1)[1:]
    racks = [node("a", 8, rack="a"), node("b", 2, rack="b")]
    found = schedule(tmp_path, dialect, *racks, *tree, *running, *later).json
    assert found["binds"] == {"ml/workers-1": "b"}


@both
@pytest.mark.parametrize(("inner", "bound"), [("", 1), ("zone", 2)])
def test_groups_beyond_the_minimum_stay_in_the_domain_of_the_tree(
    tmp_path: Path, dialect: str, inner: str, bound: int
) -> None:
    # With the domain at the groups each of them has one of its own.
    tree = [composite("all", 1, rack="" if inner else "zone"), *(group(name, 1, rack=inner) for name in "xy")]
    nodes = [node("a", 1, zone="a"), node("b", 1, zone="b")]
    members = [pod for name in "xy" for pod in pods(dialect, name, 1)]
    assert len(schedule(tmp_path, dialect, *nodes, *tree, *members).json["binds"]) == bound


def _levels(count: int) -> list[Raw]:
    """Return a chain of so many CompositePodGroups, the PodGroup g below the last."""
    chain = [composite(f"c{i}", 1, f"c{i - 1}" if i else "") for i in range(count)]
    return [*chain, group("g", 1, f"c{count - 1}")]


WRONG: dict[str, tuple[list[Raw], str]] = {
    "no such parent": ([group("g", 1, "al")], 'found "al", wanted the name of an existing CompositePodGroup'),
    "itself": ([composite("all", 1, "all"), group("g", 1)], "found a circle of parents (all -> all), wanted a tree"),
    "circle": (
        [composite("all", 1, "b"), composite("b", 1, "all"), group("g", 1)],
        "found a circle of parents (all -> b -> all), wanted a tree",
    ),
    "long circle": (
        [*(composite(name, 1, up) for name, up in ("ab", "bc", "cd", "de", "ea")), group("g", 1, "a")],
        "found a circle of parents (a -> b -> c -> …), wanted a tree",
    ),
    "five levels": (_levels(4), "found more than 4 levels of groups, wanted at most 4"),
}


@both
@pytest.mark.parametrize("case", WRONG)
def test_a_group_in_no_tree_waits_and_is_named(tmp_path: Path, dialect: str, case: str) -> None:
    objects, problem = WRONG[case]
    found = schedule(tmp_path, dialect, node("n", 8), *objects, *pods(dialect, "g", 1, 1))
    assert not found.json["binds"] and len(found.json["unscheduled"]) == 2
    assert f"PodGroup ml/g: spec.parentCompositePodGroupName: {problem}" in " ".join(found.err.split())


@both
def test_four_levels_are_a_tree(tmp_path: Path, dialect: str) -> None:
    found = schedule(tmp_path, dialect, node("n", 8), *_levels(3), *pods(dialect, "g", 1, 1)).json
    assert len(found["binds"]) == 2


UNREADABLE: dict[str, tuple[Raw, str]] = {
    "no minimum": ({"schedulingPolicy": {"gang": {}}}, "spec.schedulingPolicy.gang.minGroupCount: found nothing"),
    "minimum 0": ({"schedulingPolicy": {"gang": {"minGroupCount": 0}}}, "gang.minGroupCount: found 0"),
    "both policies": (
        {"schedulingPolicy": {"gang": {"minGroupCount": 1}, "basic": {}}},
        "spec.schedulingPolicy: found basic and gang",
    ),
    "two topologies": (
        {"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
        "spec.schedulingConstraints.topology: found 2 constraints",
    ),
}


@both
@pytest.mark.parametrize("case", UNREADABLE)
@pytest.mark.parametrize("level", [0, 1])
def test_a_tree_with_an_unreadable_group_waits_whole(tmp_path: Path, dialect: str, case: str, level: int) -> None:
    spec, problem = UNREADABLE[case]
    chain = [composite("top", 1), composite("all", 1, "top")]
    chain[level]["spec"].update(spec)
    members = [*pods(dialect, "g", 1), *pods(dialect, "h", 1)]
    found = schedule(tmp_path, dialect, node("n", 8), *chain, group("g", 1), group("h", 1, "top"), *members)
    assert not found.json["binds"] and len(found.json["unscheduled"]) == 2
    assert problem in found.err and "pods below it are not placed" in found.err


@both
def test_a_composite_and_a_group_may_have_one_name(tmp_path: Path, dialect: str) -> None:
    objects = [composite("all", 1), group("all", 2), composite("g", 1), group("inner", 1, "g"), group("other", 1, "")]
    members = [pod for name in ("all", "inner", "other") for pod in pods(dialect, name, 1)]
    found = schedule(tmp_path, dialect, node("n", 8), *objects, *members).json
    assert sorted(found["binds"]) == ["ml/inner-0", "ml/other-0"]


def test_misspelt_fields_are_named(tmp_path: Path) -> None:
    objects = [composite("all", 1, disruptionMod={"all": {}}), group("g", 1)]
    objects[1]["spec"]["schedulingPolicy"]["gang"]["mincount"] = 2
    found = " ".join(schedule(tmp_path, "volcano", node("n", 8), *objects, *pods("volcano", "g", 1)).err.split())
    assert "spec.disruptionMod unknown field (ignored); did you mean disruptionMode?" in found
    assert "spec.schedulingPolicy.gang.mincount unknown field (ignored); did you mean minCount?" in found


@both
def test_random_trees_start_by_whole_groups_wherever_there_is_a_placement(dialect: str) -> None:
    policy, dice = loaded_from_text(CONFS[dialect], builtin_registry(), where=dialect).policy, random.Random(7)
    cases = [each for each in (case_of(dice) for _ in range(80)) if can_start(each)]
    assert all(places(each, dialect, policy) for each in cases)
    assert 0 < sum(map(one_pass, cases)) < len(cases), "some are hard to place"


@both
def test_random_trees_with_domains_at_several_levels_start_exactly_where_brute_force_finds_a_placement(
    dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, dice = loaded_from_text(CONFS[dialect], builtin_registry(), where=dialect).policy, random.Random(1)
    cases = [nested_trees.case_of(dice) for _ in range(130)]
    can = [nested_trees.can_start(each) for each in cases]
    assert [nested_trees.starts(each, dialect, policy) for each in cases] == can and not all(can)
    monkeypatch.setattr(SmallTrees, "search", lambda *_: Searched([]))
    hard = (nested_trees.starts(each, dialect, policy) != starts for each, starts in zip(cases, can, strict=True))
    assert any(hard), "some are not placed in order"


@both
def test_a_tree_that_grows_stays_in_the_domains_of_what_runs(tmp_path: Path, dialect: str) -> None:
    """The tree is in a zone with room for one group more, and not in the rack of the set that lacks one."""
    tree = [
        composite("all", 2, rack="zone"),
        composite("inner", 2, "all", rack="rack"),
        *(group(name, 1, "inner") for name in "xy"),
        group("z", 1),
    ]
    (runs,) = pods(dialect, "x", 1, nodeName="a0")
    waits = [each for name in "yz" for each in pods(dialect, name, 1)]
    running = {**runs, "status": {"phase": "Running"}}
    nodes = [node("a0", 1, zone="a", rack="r0"), node("a1", 1, zone="a", rack="r1"), node("b", 4, zone="b", rack="r2")]
    assert not schedule(tmp_path, dialect, *nodes, *tree, running, *waits).json["binds"]
    nodes[0] = node("a0", 2, zone="a", rack="r0")
    assert schedule(tmp_path, dialect, *nodes, *tree, running, *waits).json["binds"] == {"ml/y-0": "a0", "ml/z-0": "a1"}
