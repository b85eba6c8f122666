"""What ``pumice fuzz`` reads: policy files in each form that has one, and saved worlds, valid or not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pumice.sim.fuzz.case import FuzzCase
from pumice.sim.fuzz.shrink import shrunk
from tests.unit.cli.kit import run

POLICY = 'actions: "enqueue,allocate"\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]\n'
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf"}, "data": {"any": POLICY}}
SHARD = {"apiVersion": "kai.scheduler/v1", "kind": "SchedulingShard", "metadata": {"name": "default"}, "spec": {}}
CONF = {"actions": "allocate", "tiers": [{"plugins": [{"name": "gang"}, {"name": "predicates"}]}]}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
WORLD = {"seed": 1, "conf": CONF, "objects": [NODE], "faults": {}}


@pytest.mark.parametrize(
    "text", [POLICY, json.dumps(CONFIG_MAP), json.dumps(SHARD)], ids=["a file", "a ConfigMap", "a SchedulingShard"]
)
def test_worlds_are_drawn_under_the_policy_of_a_file_in_each_form(tmp_path: Path, text: str) -> None:
    path = tmp_path / "conf.yaml"
    path.write_text(text)
    found = run("fuzz", "--seeds", "0..1", "--confs", path, "--save", tmp_path / "found")
    assert (found.code, found.out[:26]) == (0, "2 worlds, no law broken; i")


@pytest.mark.parametrize("spelling", ["enqueue, allocate", "enqueue,allocate"])
def test_a_policy_of_a_user_is_reduced_action_by_action(spelling: str) -> None:
    conf: dict[str, Any] = {"actions": spelling, "tiers": [{"plugins": [{"name": "gang"}]}, {}]}
    small = shrunk(FuzzCase(1, conf, (), {}), lambda case: "S1: broken" if "allocate" in case.conf["actions"] else "")
    assert small.conf["actions"] == "allocate"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"conf": []}, "found no world saved by fuzz: conf: found a list of 0, wanted an object"),
        ({"objects": [5]}, "found no world saved by fuzz: objects[0]: found 5, wanted an object"),
        ({"seed": -1}, "found no world saved by fuzz: seed: found -1, wanted an integer from 0"),
        ({"seed": None}, "found no world saved by fuzz: seed: found nothing, wanted an integer from 0"),
        ({"seed": float("inf")}, "found no world saved by fuzz: seed: found Infinity, wanted an integer from 0"),
        ({"faults": {"late_share": float("nan")}}, "faults.late_share: found NaN, wanted a number from 0 on"),
        ({"faults": {"lat_share": 0.1}}, "faults: found ['lat_share'], wanted of ['api_back_after_s'"),
        ({"kind": "calm"}, 'found no world saved by fuzz: kind: found "calm", wanted one of crowded, storm, reserved'),
        ({"objects": [{"kind": "Node"}]}, "Node (no name): apiVersion: found nothing"),
    ],
)
def test_a_file_without_a_world_is_named_with_what_is_wrong(
    tmp_path: Path, change: Mapping[str, object], says: str
) -> None:
    path = tmp_path / "world.json"
    path.write_text(json.dumps({**WORLD, **change}))
    found = run("fuzz", "--replay", path)
    assert found.code == 2
    assert found.err.startswith(f"error: {path}: ") and says in found.err


def test_a_world_that_was_saved_runs_again(tmp_path: Path) -> None:
    path = tmp_path / "world.json"
    path.write_text(json.dumps({**WORLD, "problem": "S1: broken"}))
    assert run("fuzz", "--replay", path).code == 0
