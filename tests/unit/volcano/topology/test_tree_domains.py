"""Evictions in domains of a node label: for a tree of CompositePodGroups of which each PodGroup has its own domain, and
pod by pod for a gang that is in its domain already."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.kit import run
from tests.unit.cli.test_native_groups import QUEUES, Raw, node
from tests.unit.volcano.gangs.test_tree_placement import composite, group, pods

CONF = """
actions: "enqueue, allocate, gangpreempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
"""
CLASSES: list[Raw] = [
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    for name, value in (("low", 10), ("high", 60))
]


def racks(**sizes: int) -> list[Raw]:
    """Return nodes of one core, in racks of these sizes."""
    return [node(f"{rack}{i}", 1, rack=rack, zone=rack[0]) for rack, size in sizes.items() for i in range(size)]


def filled(nodes: list[Raw], *, together: bool = False) -> list[Raw]:
    """Return a pod of its own group on each node, or of one group ``together``, which can spare all but one."""
    found: list[Raw] = []
    for each in nodes:
        name = each["metadata"]["name"]
        (pod,) = pods("volcano", f"old-{name}", 1, nodeName=name)
        of = "old" if together else f"old-{name}"
        spec = {**pod["spec"], "schedulingGroup": {"podGroupName": of}}
        found += [group(of, None, "", priorityClassName="low")] * (not (together and found))
        found.append({**pod, "spec": spec, "status": {"phase": "Running"}})
    return found


def tree(*, inner: str = "", root: str = "", least: int = 2) -> list[Raw]:
    """Return two groups of two pods. ``inner``, ``root``: labels of the domains of each group, and of the tree."""
    groups = [group(name, 2, rack=inner, priorityClassName="high") for name in "xy"]
    members = [pod for name in "xy" for pod in pods("volcano", name, 1, 1)]
    return [composite("all", least, rack=root, priorityClassName="high"), *groups, *members]


def result(tmp_path: Path, *objects: Raw, action: str = "gangpreempt") -> tuple[list[str], dict[str, str]]:
    """Return the nodes of victims, and the node that each pod waits for."""
    items = [QUEUES["volcano"], *CLASSES, *objects]
    (tmp_path / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    (tmp_path / "policy.conf").write_text(CONF.replace("gangpreempt", action))
    found = run("schedule", tmp_path / "all.json", "--conf", tmp_path / "policy.conf", "--json").json
    victims = sorted(each.removeprefix("ml/old-").removesuffix("-0") for each in found["evicts"])
    return victims, {pod.removeprefix("ml/"): on for pod, on in found["pipelined"].items()}


def test_both_groups_go_to_one_rack_that_holds_them(tmp_path: Path) -> None:
    nodes = racks(a=2, b=4, c=2)
    victims, placed = result(tmp_path, *nodes, *filled(nodes), *tree(inner="rack"))
    assert victims == ["b0", "b1", "b2", "b3"] and len(placed) == 4


def test_each_group_has_a_rack_where_none_holds_both(tmp_path: Path) -> None:
    nodes = racks(a=2, b=2, c=1)
    victims, placed = result(tmp_path, *nodes, *filled(nodes), *tree(inner="rack"))
    assert victims == ["a0", "a1", "b0", "b1"]
    assert {placed["x-0"][0], placed["x-1"][0]} != {placed["y-0"][0], placed["y-1"][0]}
    assert len({placed["x-0"][0], placed["x-1"][0]}) == 1


def test_nothing_is_evicted_where_no_rack_holds_a_group(tmp_path: Path) -> None:
    nodes = racks(a=1, b=1, c=1, d=1)
    assert result(tmp_path, *nodes, *filled(nodes), *tree(inner="rack")) == ([], {})


def test_one_group_is_enough_if_the_tree_needs_one(tmp_path: Path) -> None:
    nodes = racks(a=2, b=1)
    victims, placed = result(tmp_path, *nodes, *filled(nodes), *tree(inner="rack", least=1))
    assert victims == ["a0", "a1"] and sorted(placed) == ["x-0", "x-1"]


def test_the_racks_are_in_the_domain_of_the_tree(tmp_path: Path) -> None:
    # Only the zone "m" has two racks of two nodes.
    nodes = racks(a=2, b=3, m1=2, m2=2)
    victims, _ = result(tmp_path, *nodes, *filled(nodes), *tree(inner="rack", root="zone"))
    assert victims == ["m10", "m11", "m20", "m21"]


def _nested(*, left: str, right: str, inner: str = "", least: int = 2) -> list[Raw]:
    """Return two CompositePodGroups of two groups of one pod. ``left``, ``right``, ``inner``: labels of the domains of
    each, and of their groups."""
    sets = [
        composite(name, 2, "all", rack=label, priorityClassName="high")
        for name, label in (("left", left), ("right", right))
    ]
    names = [(of, f"{of}-{i}") for of in ("left", "right") for i in (0, 1)]
    groups = [group(name, 1, of, rack=inner, priorityClassName="high") for of, name in names]
    members = [pod for _, name in names for pod in pods("volcano", name, 1)]
    return [composite("all", least, priorityClassName="high"), *sets, *groups, *members]


def test_each_set_of_groups_has_a_rack(tmp_path: Path) -> None:
    nodes = racks(a=1, b=2, c=2, d=1)
    victims, placed = result(tmp_path, *nodes, *filled(nodes), *_nested(left="rack", right="rack"))
    assert victims == ["b0", "b1", "c0", "c1"]
    assert placed["left-0-0"][0] == placed["left-1-0"][0] != placed["right-0-0"][0] == placed["right-1-0"][0]


def test_a_set_without_a_domain_goes_where_the_other_leaves_room(tmp_path: Path) -> None:
    nodes = racks(a=1, b=2, d=1)
    victims, placed = result(tmp_path, *nodes, *filled(nodes), *_nested(left="rack", right=""))
    assert victims == ["a0", "b0", "b1", "d0"]
    assert {placed["left-0-0"], placed["left-1-0"]} == {"b0", "b1"}


def test_nothing_is_evicted_where_no_rack_holds_a_set_of_groups(tmp_path: Path) -> None:
    nodes = racks(a=1, b=1, c=1, d=1)
    assert result(tmp_path, *nodes, *filled(nodes), *_nested(left="rack", right="rack")) == ([], {})


def test_domains_of_groups_are_in_that_of_their_set(tmp_path: Path) -> None:
    # The zones a and b hold a set each, in racks of which each holds one pod.
    nodes = racks(a1=1, a2=1, b1=1, b2=1, c1=1)
    victims, placed = result(tmp_path, *nodes, *filled(nodes), *_nested(left="zone", right="zone", inner="rack"))
    assert victims == ["a10", "a20", "b10", "b20"]
    assert placed["left-0-0"][0] == placed["left-1-0"][0] != placed["right-0-0"][0]


def test_a_set_of_groups_that_fits_in_no_rack_is_left_out(tmp_path: Path) -> None:
    # "left" wants two pods in one rack, and "right" has a pod in each of two.
    nodes = racks(a=1, b=1, c=1)
    victims, placed = result(tmp_path, *nodes, *filled(nodes), *_nested(left="rack", right="", least=1))
    assert len(victims) == 2 and sorted(placed) == ["right-0-0", "right-1-0"]


def test_a_group_inside_a_set_that_does_not_fit_is_left_out(tmp_path: Path) -> None:
    groups = [group(f"left-{i}", size, "left", priorityClassName="high") for i, size in enumerate((3, 1))]
    members = [pod for i, size in enumerate((3, 1)) for pod in pods("volcano", f"left-{i}", *(1,) * size)]
    sets = [composite("left", 1, "all", rack="rack", priorityClassName="high")]
    nodes = racks(a=2, b=2)
    tree = [composite("all", 1, priorityClassName="high"), *sets, *groups, *members]
    victims, placed = result(tmp_path, *nodes, *filled(nodes), *tree)
    assert len(victims) == 1 and list(placed) == ["left-1-0"]


@pytest.mark.parametrize("free", ["a", "b"])
def test_a_rack_that_is_free_takes_a_group_without_victims(tmp_path: Path, free: str) -> None:
    nodes = racks(a=2, b=2)
    busy = [each for each in nodes if not each["metadata"]["name"].startswith(free)]
    victims, placed = result(tmp_path, *nodes, *filled(busy), *tree(inner="rack"))
    assert victims == sorted(each["metadata"]["name"] for each in busy) and len(placed) == 4


@pytest.mark.parametrize(("here", "victims"), [("b", ["b1"]), ("a", ["a0"])])
def test_a_gang_in_its_rack_makes_room_there_pod_by_pod(tmp_path: Path, here: str, victims: list[str]) -> None:
    nodes = racks(a=2, b=2)
    own = {"a": "a1", "b": "b0"}[here]
    busy = [each for each in nodes if each["metadata"]["name"] != own]
    running, waiting = pods("volcano", "g", 1, 1)
    running = {**running, "spec": {**running["spec"], "nodeName": own}, "status": {"phase": "Running"}}
    gang = group("g", 2, "", rack="rack", priorityClassName="high")
    found, placed = result(tmp_path, *nodes, *filled(busy, together=True), gang, running, waiting, action="preempt")
    assert found == victims and placed == {"g-1": victims[0]}


def test_nothing_is_evicted_pod_by_pod_for_a_gang_that_is_nowhere_yet(tmp_path: Path) -> None:
    nodes = racks(a=2, b=2)
    gang = group("g", 2, "", rack="rack", priorityClassName="high")
    assert result(
        tmp_path, *nodes, *filled(nodes, together=True), gang, *pods("volcano", "g", 1, 1), action="preempt"
    ) == ([], {})
