"""Situations in which a gang waits, each with the hint that it should get (docs/decisions/0032): is what it says true?

True is: as things are the gang waits; changed as the hint says, and nothing else, it runs; with a little less it does
not. And it is the sentence that ``reasons/hints`` makes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.model.events import Object
from pumice.model.manifest import Decoder
from pumice.runtime.one_cycle import Answer, schedule_once
from pumice.runtime.policy.conf import policy_of
from pumice.volcano.table import DEFAULT_CONF, volcano_registry
from tests.cases.hints.world import NAMESPACE, manifests

FOLDER = Path(__file__).parent
CASES = [case for file in sorted(FOLDER.glob("*.yaml")) for case in yaml.safe_load(file.read_text())]
LIST = (FOLDER / "README.md").read_text()
NOW = 1_704_110_400.0  # noon of the day on which the cases happen
each_case = pytest.mark.parametrize("case", [pytest.param(case, id=case["case"]) for case in CASES])


def bound(case: dict[str, Any], changes: str = "") -> int:
    """How many pods of the gang ``ask`` one cycle binds."""
    return sum(pod.startswith(f"{NAMESPACE}/ask-") for pod in decided(case, changes).binds)


def decided(case: dict[str, Any], changes: str = "") -> Answer:
    raws = manifests(case["objects"], case.get(changes, ()))
    decoder = Decoder()
    objects: list[Object] = [decoder.decode(raw) for raw in raws]  # type: ignore[misc]
    return schedule_once(objects, policy_of(conf_of(case), volcano_registry()), NOW)


def conf_of(case: dict[str, Any]) -> str:
    said = case.get("conf")
    if said is None:
        return DEFAULT_CONF
    plugins = [{"name": each} if isinstance(each, str) else each for each in said["plugins"]]
    return yaml.safe_dump({"actions": said["actions"], "tiers": [{"plugins": plugins}]})


def least(case: dict[str, Any]) -> int:
    """The minimum of the gang, as it is after the change."""
    asked = [each["gang"] for each in (*case["objects"], *case["cure"]) if each.get("gang", {}).get("name") == "ask"]
    merged: dict[str, Any] = {}
    for each in asked:
        merged |= each
    return int(merged.get("min", merged.get("pods", 1)))


def test_there_are_thirty_of_them_and_each_once() -> None:
    assert len(CASES) >= 30
    assert len({case["case"] for case in CASES}) == len({case["hint"] for case in CASES}) == len(CASES)


@each_case
def test_the_list_has_the_sentence(case: dict[str, Any]) -> None:
    assert f"| {case['hint']} | {', '.join(case['rests on'])} |\n" in LIST


@each_case
def test_it_waits(case: dict[str, Any]) -> None:
    assert bound(case) == 0


@each_case
def test_it_is_said(case: dict[str, Any]) -> None:
    assert decided(case).hints.get(f"{NAMESPACE}/ask") == case["hint"]


@each_case
def test_changed_as_the_hint_says_it_runs(case: dict[str, Any]) -> None:
    assert bound(case, "cure") >= least(case)


@pytest.mark.parametrize("case", [pytest.param(case, id=case["case"]) for case in CASES if "almost" in case])
def test_a_little_less_is_not_enough(case: dict[str, Any]) -> None:
    assert bound(case, "almost") == 0


@each_case
def test_the_hint_is_one_line_with_the_queue_that_says_no(case: dict[str, Any]) -> None:
    hint = case["hint"]
    assert "\n" not in hint and len(hint) <= 140 and not hint.endswith(".")
    assert case["rests on"]
    if hint.startswith("queue "):
        name = re.match(r"queue ([\w-]+)", hint)
        assert name is not None
        queues = {each["queue"]["name"] for each in case["objects"] if "queue" in each}
        assert name[1] in queues or "does not exist" in hint
