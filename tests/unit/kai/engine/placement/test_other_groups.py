"""KAI's search for victims of a tree of CompositePodGroups: other groups than the first ones may start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.kit import run
from tests.unit.cli.test_native_groups import QUEUES, Raw, node
from tests.unit.volcano.gangs.test_tree_placement import composite, group, pods
from tests.unit.volcano.topology.test_tree_domains import CLASSES

CONF = "dialect: kai\nactions: allocate, preempt\n"


def result(tmp_path: Path, least: int, **groups: tuple[int, ...]) -> tuple[list[str], list[str]]:
    """Return the victims on two nodes of two cores, and which pods wait for their room. ``groups``: cores of the pods
    of each."""
    nodes = [node(name, 2) for name in "ab"]
    old: list[Raw] = []
    for name in "ab":
        (pod,) = pods("kai", f"old-{name}", 2, nodeName=name)
        old += [group(f"old-{name}", None, "", priorityClassName="low"), {**pod, "status": {"phase": "Running"}}]
    tree = [composite("all", least, priorityClassName="high")]
    tree += [group(name, len(cores), priorityClassName="high") for name, cores in groups.items()]
    members = [pod for name, cores in groups.items() for pod in pods("kai", name, *cores)]
    items = [QUEUES["kai"], *CLASSES, *nodes, *old, *tree, *members]
    (tmp_path / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    (tmp_path / "policy.conf").write_text(CONF)
    found = run("schedule", tmp_path / "all.json", "--conf", tmp_path / "policy.conf", "--json").json
    return sorted(found["evicts"]), sorted(pod.removeprefix("ml/") for pod in found["pipelined"])


@pytest.mark.parametrize(
    ("least", "groups", "placed"),
    [
        pytest.param(1, {"x": (2, 2, 2), "y": (2, 2)}, ["y-0", "y-1"], id="the first is larger than the cluster"),
        pytest.param(1, {"x": (3,), "y": (2, 2)}, ["y-0", "y-1"], id="the first is larger than a node"),
        pytest.param(2, {"w": (3,), "x": (2,), "y": (2,)}, ["x-0", "y-0"], id="two of three"),
        pytest.param(2, {"w": (2,), "x": (2, 2), "y": (2,)}, ["w-0", "y-0"], id="without one in the middle"),
    ],
)
def test_groups_that_no_evictions_help_are_passed_over(
    tmp_path: Path, least: int, groups: dict[str, tuple[int, ...]], placed: list[str]
) -> None:
    assert result(tmp_path, least, **groups) == (["ml/old-a-0", "ml/old-b-0"], placed)


def test_nothing_is_evicted_where_no_choice_of_groups_helps(tmp_path: Path) -> None:
    assert result(tmp_path, 2, x=(3,), y=(2, 2), z=(3,)) == ([], [])
