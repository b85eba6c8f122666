"""extender: what is asked verb by verb, what its answers do, and what it may not do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from pumice.cycle import run_cycle
from pumice.framework.cycle.ports import OutsideError
from pumice.framework.plugin.errors import PolicyError
from pumice.model.decisions import Bind
from pumice.model.status import PodGroupPhase
from pumice.runtime.loop import ListPlanner
from pumice.testing.build import cluster, node, pod, podgroup, policy, resource

URL = "http://127.0.0.1:8080/ext"


@dataclass(slots=True)
class Double:
    """Answers by verb; an error for those that it does not have."""

    answers: Mapping[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def ask(self, url: str, question: Mapping[str, Any], within_s: float) -> Mapping[str, Any]:
        prefix, _, verb = url.rpartition("/")
        assert (prefix, within_s) == (URL, 2.0)
        self.asked.append((verb, question))
        if verb not in self.answers:
            raise OutsideError("no answer within 2 s")
        answer = self.answers[verb]
        return answer(question) if callable(answer) else answer


def conf(*verbs: str, actions: str = "allocate", **more: Any) -> str:
    arguments = {"extender.urlPrefix": URL, "extender.httpTimeout": "2s", **more}
    arguments |= {f"extender.{verb}Verb": verb for verb in verbs}
    return f"actions: {actions}\ntiers: [{{plugins: [{{name: gang}}, {{name: extender, arguments: {arguments}}}]}}]"


def bound(double: Double, text: str, **asks: Any) -> dict[str, str]:
    objects = [node("a"), node("b", creation=1.0), podgroup("g", phase="Inqueue"), pod("p", "g", **asks)]
    planner = ListPlanner()
    run_cycle(cluster(objects).snapshot(), policy(text), 0.0, planner, outside=double)
    return {each.pod: each.node for each in planner.taken if isinstance(each, Bind)}


def only_b(question: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"status": {} if question["node"]["Name"] == "b" else {"code": 3, "message": "not here"}}


def test_it_objects_to_nodes_and_is_notified_of_placements() -> None:
    double = Double({"predicate": only_b})
    assert bound(double, conf("predicate")) == {"ns/p": "b"}
    verb, question = double.asked[0]
    task = question["task"]
    assert (verb, task["Name"], task["Job"], task["Status"]) == ("predicate", "p", "ns/g", 1)
    assert task["Resreq"] == {"MilliCPU": 1000.0, "Memory": 2.0**30, "ScalarResources": {}}


def test_its_scores_decide() -> None:
    assert bound(Double({"prioritize": {"nodeScore": {"b": 7}}}), conf("prioritize")) == {"ns/p": "b"}


@pytest.mark.parametrize(
    "scores",
    [{"a": "x", "b": 1}, {"a": -(10.0**300), "b": 1}, {"a": True, "b": 1}, {"stranger": 99, "b": 1}],
)
def test_scores_that_are_none_count_nothing(scores: dict[str, Any]) -> None:
    assert bound(Double({"prioritize": {"nodeScore": scores}}), conf("prioritize")) == {"ns/p": "b"}


@pytest.mark.parametrize(
    ("verb", "ignorable", "placed"),
    [
        ("predicate", False, False),
        ("predicate", True, True),
        ("prioritize", False, True),
        ("queueOverused", False, False),
        ("queueOverused", True, True),
        ("jobReady", False, True),
        ("jobReady", True, False),
        ("allocateFunc", False, False),
        ("allocateFunc", True, True),
        ("onSessionOpen", False, True),
    ],
)
def test_where_there_is_no_answer(verb: str, ignorable: bool, placed: bool) -> None:
    found = bound(Double(), conf(verb, **{"extender.ignorable": ignorable}))
    assert bool(found) is placed


def test_one_that_hangs_is_asked_about_one_node_only() -> None:
    double = Double()
    bound(double, conf("predicate"))
    assert len(double.asked) <= 4, "once a question, not once a node"


def test_without_an_open_session_nothing_is_asked() -> None:
    double = Double()
    assert bound(double, conf("onSessionOpen", "predicate")) == {"ns/p": "a"}
    assert [verb for verb, _ in double.asked] == ["onSessionOpen"]


def test_it_is_asked_about_what_it_manages_only() -> None:
    managed = {"extender.managedResources": ["example.com/x"]}
    double = Double({"predicate": only_b})
    assert bound(double, conf("predicate", **managed)) == {"ns/p": "a"}
    assert double.asked == []
    assert bound(double, conf("predicate", **managed), limit=resource(**{"example.com/x": 1})) == {"ns/p": "b"}


@pytest.mark.parametrize(("status", "phase"), [(1, "Inqueue"), (-1, "Pending"), (0, "Inqueue"), ("yes", "Pending")])
def test_it_votes_on_admission(status: Any, phase: str) -> None:
    group = podgroup("g", min_resources=resource(1))
    text = conf("jobEnqueueable", "jobEnqueued", actions="enqueue")
    double = Double({"jobEnqueueable": {"status": status}, "jobEnqueued": {}})
    outcome = run_cycle(
        cluster(node("a"), group, pod("p", "g")).snapshot(), policy(text), 0.0, ListPlanner(), outside=double
    )
    phases = {update.job: update.status.phase for update in outcome.groups}
    assert phases.get("ns/g", "Pending") == PodGroupPhase(phase)


def victims(answer: Any) -> list[str]:
    """Who leaves for a pod that has no room, where a pod of another job runs."""
    groups = [podgroup("low", 0), podgroup("g", phase="Inqueue")]
    there, waits = pod("v", "low", 8, on="a"), pod("p", "g", 8)
    planner, text = ListPlanner(), conf("preemptable", actions="preempt")
    snapshot = cluster(node("a"), groups, there, waits).snapshot()
    run_cycle(snapshot, policy(text), 0.0, planner, outside=Double({"preemptable": answer}))
    return [each.pod for each in planner.taken if not isinstance(each, Bind)]


def test_it_names_victims() -> None:
    assert victims(lambda question: {"status": 1, "victims": question["evictees"]}) == ["ns/v"]


@pytest.mark.parametrize("answer", [{"status": 1, "victims": "all"}, {"status": 1, "victims": [5]}, {"status": -1}, {}])
def test_nonsense_names_no_victims(answer: Any) -> None:
    assert victims(answer) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"extender.urlPrefix": "file:///etc/passwd"}, "wanted http:// or https://"),
        ({"extender.urlPrefix": "http://user@host"}, "wanted http:// or https://"),
        ({"extender.httpTimeout": "soon"}, "wanted a duration"),
        ({"extender.managedResources": "x"}, "wanted a list"),
    ],
)
def test_what_a_policy_gets_wrong_is_said(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        policy(conf("predicate", **arguments))
