"""The worked examples of the gang debugging guide: verdict, counts and texts to the letter."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.model.events import Object
from pumice.runtime.one_cycle import Answer, schedule_once
from pumice.sim.scenes.inputs import read_inputs
from pumice.testing.build import node, pod, podgroup, policy, queue, resource
from pumice.volcano.status.rejections import events

CASES = yaml.safe_load((Path(__file__).parent / "debug-guide.yaml").read_text())
EXAMPLES = Path(__file__).parents[2] / "examples"


def objects_of(case: dict[str, Any]) -> list[Object]:
    asked = case["group"]
    wanted = asked.get("minResources")
    group = podgroup(
        "tf",
        asked["minMember"],
        roles=asked.get("minTaskMember"),
        min_resources=resource(**wanted) if wanted else None,
        phase=asked.get("phase", "Inqueue"),
        namespace="ml",
    )
    names = {"tf-ps-0": "ps"} | {f"tf-worker-{i}": "worker" for i in range(case.get("workers", 7))}
    waiting = [pod(name, "tf", role=role, namespace="ml") for name, role in names.items()]
    return [queue(), *(node(f"n{i}", cpu=1) for i in range(case["nodes"])), group, *waiting]


def conf_of(case: dict[str, Any]) -> str:
    plugins = ", ".join(f"{{name: {name}}}" for name in case.get("plugins", ("gang", "predicates")))
    return f'actions: "{case.get("actions", "allocate")}"\ntiers: [{{plugins: [{plugins}]}}]\n'


def answer_to(case: dict[str, Any]) -> Answer:
    return schedule_once(objects_of(case), policy(conf_of(case)), 0.0)


def waiting_in(answer: Answer) -> dict[str, tuple[str, str]]:
    """pod name -> reason and text of its condition, for pods that were not bound"""
    bound = answer.binds
    return {n.pod.split("/")[1]: (n.reason, n.message) for n in answer.outcome.notices() if n.pod not in bound}


def test_all_nine_are_there() -> None:
    assert [case["case"] for case in CASES] == ["A", "A2", "B", "C", "D", "E", "F", "G", "H"]


@pytest.mark.parametrize("case", [pytest.param(c, id=f"{c['case']}: {c['what']}") for c in CASES])
def test_verdict(case: dict[str, Any]) -> None:
    answer = answer_to(case)
    in_order = ["ml/tf-ps-0", *(f"ml/tf-worker-{i}" for i in range(7))]
    assert list(answer.binds) == in_order[: case["bound"]]
    assert len(set(answer.binds.values())) == case["bound"], "one task a node"
    status = answer.statuses["ml/tf"]
    assert status.phase == case.get("phase", "Inqueue")
    (condition,) = status.conditions
    assert (condition.type, condition.status) == (case["condition"]["type"], "True")
    assert condition.reason == case["condition"]["reason"]
    assert condition.message == case["condition"]["message"]


@pytest.mark.parametrize("case", [pytest.param(c, id=c["case"]) for c in CASES if "schedulable" in c])
def test_how_far_it_got(case: dict[str, Any]) -> None:
    counts = Counter(reason for reason, _ in waiting_in(answer_to(case)).values())
    assert counts == +Counter(Schedulable=case["schedulable"], Unschedulable=case["unschedulable"])


@pytest.mark.parametrize("case", [pytest.param(c, id=c["case"]) for c in CASES if "pods" in c])
def test_each_pod_has_the_reason_of_the_case(case: dict[str, Any]) -> None:
    reports = waiting_in(answer_to(case))
    for name, (reason, text) in case["pods"].items():
        assert reports[name][0] == reason
        assert re.fullmatch(re.escape(text).replace(r"\$n", r"n\d"), reports[name][1]), reports[name][1]


@pytest.mark.parametrize("case", [pytest.param(c, id=c["case"]) for c in CASES])
def test_event_of_a_refused_admission(case: dict[str, Any]) -> None:
    refused = [event.message for event in events(answer_to(case).outcome)]
    assert refused == ([case["event"]] if "event" in case else [])


@pytest.mark.parametrize(
    ("folder", "like"),
    [pytest.param("debug-gang", "A", id="eight"), pytest.param("debug-gang-min-6", "B", id="six")],
)
def test_the_example_folder_says_the_same(folder: str, like: str) -> None:
    """What is shipped, read as a user's folder is, comes out as the case that it illustrates."""
    (case,) = (case for case in CASES if case["case"] == like)
    found = read_inputs([str(EXAMPLES / folder)])
    assert not found.scene.problems
    (conf,) = found.confs
    (work,) = found.scene.works
    group, pods = work.expand(0.0)
    answer = schedule_once([*found.scene.objects, group, *pods], policy(conf.read_text()), 0.0)
    expected = answer_to(case)
    assert len(answer.binds) == case["bound"]
    assert answer.binds == expected.binds
    assert waiting_in(answer) == waiting_in(expected)
    assert answer.statuses["ml/tf"].conditions == expected.statuses["ml/tf"].conditions
