"""Answers for users who may see the jobs of some namespaces only."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.answers.codes import Code
from pumice.answers.explanation import Explanation, NoSuchJob, Part, Verdict, explain, find_job
from pumice.answers.plain import described
from pumice.answers.seen import OTHER, HiddenNames, as_seen, hidden_of
from pumice.answers.ways import Cost, Way
from pumice.answers.world import World
from pumice.cli.answers.starts import as_seen as starts_as_seen
from pumice.model.blockers import Behind, PluginFault, Reserved
from pumice.runtime.policy.conf import policy_of
from pumice.sim.starts.predicted import Predictions, StartPrediction
from pumice.testing.build import node, podgroup, pods, queue
from pumice.volcano.table import DEFAULT_CONF, volcano_registry

HIDDEN = HiddenNames(["ml", "0"])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("held by ml/llama and ns/g", f"held by {OTHER} and ns/g"),
        ("--remove job/ml/eval-2.x", f"--remove {OTHER}"),
        ("3/6 nodes have nvidia.com/gpu; html/x, xml/y and ml", "3/6 nodes have nvidia.com/gpu; html/x, xml/y and ml"),
    ],
)
def test_names_of_hidden_namespaces_are_removed_from_texts(text: str, shown: str) -> None:
    assert HIDDEN.removed(text) == shown


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("kubectl delete podgroup eval -n ml", True),
        ("a pod ml/p-0.", True),
        ("kubectl cordon ml-1", False),
        ("html", False),
    ],
)
def test_a_hidden_namespace_is_found_as_a_word_too(text: str, named: bool) -> None:
    assert HIDDEN.are_in(text) is named


def answer(*parts: Part, ways: tuple[Way, ...] = ()) -> Explanation:
    return Explanation("ns/g", Verdict.NOT_NOW, "q", 2, 2, 2, parts, ways=ways)


def test_a_blocker_that_names_a_hidden_job_is_left_out_and_its_sentence_kept() -> None:
    of_others, own = Behind(("ml/llama",)), Reserved("ns/g", ("n0",), by=("ns/h",))
    found = as_seen(
        answer(Part(Code.ORDER, "", "goes to ml/llama", of_others), Part(Code.ROOM, "", "reserved on n0", own)), HIDDEN
    )
    assert [(part.sentence, part.blocker) for part in found.parts] == [
        (f"goes to {OTHER}", None),
        ("reserved on n0", own),
    ]


def test_an_error_of_a_plugin_is_not_shown() -> None:
    fault = PluginFault("p", "score", "hook", "x.py:1", "pod secret-0 of ml")
    (part,) = as_seen(answer(Part(Code.FAULT, "", "pod secret-0 of ml", fault)), HIDDEN).parts
    assert part.blocker is None and "secret" not in part.sentence


def test_ways_out_of_hidden_jobs_are_left_out_and_those_that_lose_are_counted() -> None:
    grow = Way(("1 node more",), (), ("--add-nodes=1xn0",), Cost(), losers=("ns/h", "ml/a", "ml/b"))
    evict = Way(("eval leaves",), ("kubectl delete podgroup eval -n ml",), (), Cost(), losers=("ml/eval",))
    (found,) = as_seen(answer(ways=(grow, evict)), HIDDEN).ways
    assert found.losers == ("ns/h", "2 jobs of other namespaces")


def test_an_answer_on_a_full_cluster_does_not_name_its_holder() -> None:
    holder = [replace(each, namespace="ml", node_name="n0", phase="Running") for each in pods("eval", 2, cpu=1)]
    group = replace(podgroup("eval", 2, phase="Running"), namespace="ml")
    objects = [node("n0", cpu=2), queue(), podgroup("g", 2), *pods("g", 2, cpu=1), group, *holder]
    world = World(objects, policy_of(DEFAULT_CONF, volcano_registry()), 0.0, ("volcano",))
    found, seen = explain(world, "ns/g"), frozenset({"ns"})
    assert "eval" in repr(described(found, ""))
    shown = as_seen(found, hidden_of(world, seen))
    assert (
        "eval" not in repr(described(shown, "")) and [part.code for part in shown.parts] == [Code.ROOM] and shown.ways
    )
    assert as_seen(found, hidden_of(world, None)) == found
    assert find_job(world, "eval") == "ml/eval"
    with pytest.raises(NoSuchJob) as refused:
        find_job(world, "eval", seen)
    assert "ml" not in str(refused.value)
    with pytest.raises(NoSuchJob):
        find_job(world, "ml/eval-0", seen)


def test_predicted_starts_name_no_job_of_others() -> None:
    waits = StartPrediction(1.0, 1.0, 1.0, 1.0, 1.0, why_not="behind other/secret")
    found = Predictions({"ml/a": waits, "other/b": waits}, 2, 60.0, 0, ("other/c", "ml/d"))
    shown = starts_as_seen(found, HiddenNames({"other"}))
    assert list(shown.by_job) == ["ml/a"] and "secret" not in shown.by_job["ml/a"].why_not
    assert shown.by_age == (OTHER, "ml/d")
