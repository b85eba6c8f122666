"""Each situation of the cases for hints, explained: the reason is minimal, and the first way out places the gang."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.answers.codes import WORDS, Code
from pumice.answers.explanation import Explanation, NoSuchJob, Verdict, explain, find_job
from pumice.answers.lifts import lift, lifts_of
from pumice.answers.reason import reason_of
from pumice.answers.world import Draft, Trials, World, starts
from pumice.model.blockers import Blocker
from pumice.model.manifest import Decoder
from pumice.model.resources import Resource
from pumice.runtime.policy.conf import policy_of
from pumice.testing.build import node, podgroup, queue
from pumice.volcano.table import DEFAULT_CONF, volcano_registry
from tests.cases.hints.test_hints import CASES, NOW, conf_of
from tests.cases.hints.world import manifests

ASK = "ns/ask"
each_case = pytest.mark.parametrize("case", [pytest.param(case, id=case["case"]) for case in CASES])
#: Codes that the cases have, in the words of a hint, and the code that the answer gives.
CODES = {
    "6 of 8 GPUs used": Code.QUEUE_LIMIT,
    "0 of 6 cores left to it used": Code.GUARANTEE,
    "queue team is closed": Code.QUEUE_CLOSED,
    "4 promised to ns/next": Code.QUEUE_LIMIT,
    "4 of 4 GPUs used": Code.QUEUE_LIMIT,
    "more than it may ever have": Code.QUEUE_LIMIT,
    "8 cores used and 4 promised of 12": Code.ROOM,
    "promised to ns/five": Code.ROOM,
    "2 of 4 deserved cores": Code.QUEUE_SHARE,
    "no pod of role ps": Code.INCOMPLETE,
    "are being deleted": Code.INCOMPLETE,
    "it asks for 12 within one": Code.DOMAIN,
    "HyperNode r1 takes most of it": Code.ROOM,
    "no node has amd.com/gpu": Code.ROOM,
    "the largest node has 32": Code.ROOM,
    "at most 6 on one node": Code.ROOM,
    "6 of 8 pods fit": Code.ROOM,
    "28 cores but only 8 GiB": Code.ROOM,
    "b has the cores": Code.ROOM,
    "at most 3 pods": Code.ROOM,
    "default-scheduler placed": Code.ROOM,
    "reserved on a": Code.ROOM,
    "there are no nodes": Code.ROOM,
    "has gpu-type=a100": Code.ROOM,
    "no node has the label gpu_type": Code.SELECTOR,
    "no node is in zone c": Code.SELECTOR,
    "have the taint dedicated": Code.TAINT,
    "node is not ready": Code.TAINT,
    "the cluster has 8 GPUs": Code.ROOM,
    "4 of 4 deserved cores": Code.QUEUE_SHARE,
    "takes them first": Code.ORDER,
    "6 of the 8 pods of minMember exist": Code.INCOMPLETE,
    "held back by the gate": Code.GATE,
    "in one HyperNode of tier 1": Code.DOMAIN,
    "largest node has 4": Code.ROOM,
    "no node has gpu-type": Code.SELECTOR,
    "has the taint dedicated": Code.TAINT,
    "are cordoned": Code.TAINT,
    "port 8080": Code.PORT,
    "near which it may not run": Code.AFFINITY,
    "must be near one": Code.AFFINITY,
    "zone a would have 2 more": Code.SPREAD,
    "does not exist": Code.MISSING,
    "its pods name the scheduler": Code.MISSING,
}


def world_of(case: dict[str, Any]) -> World:
    decoder = Decoder()
    objects = [decoder.decode(raw) for raw in manifests(case["objects"])]
    return World(objects, policy_of(conf_of(case), volcano_registry()), NOW, ("volcano",))  # type: ignore[arg-type]


def explained(case: dict[str, Any], *, ways: bool = False) -> Explanation:
    return explain(world_of(case), ASK, ways=ways)


@each_case
def test_a_reason_lifted_starts_the_gang_and_no_part_of_it_does(case: dict[str, Any]) -> None:
    world = world_of(case)
    found = reason_of(Trials(world, 80), ASK)
    if not found.lifts:
        assert explained(case).verdict in (Verdict.STARTS, Verdict.NEVER, Verdict.UNKNOWN)
        return
    for size in range(len(found.lifts) + 1):
        for part in combinations(found.lifts, size):
            draft = Draft(world)
            for each in part:
                lift(draft, ASK, each)
            fresh = World(draft.objects(), draft.policy, NOW, world.scheduler_names)
            assert starts(Trials(fresh, 1).base, fresh, ASK) == (size == len(found.lifts))


@each_case
def test_a_waiting_gang_gets_an_answer_with_a_verdict(case: dict[str, Any]) -> None:
    found = explained(case)
    assert found.parts and all(part.sentence for part in found.parts)
    if found.verdict is Verdict.STARTS:
        assert "reserved" in case["hint"]


@pytest.mark.parametrize(("words", "code"), CODES.items())
def test_the_code_is_that_of_the_cause(words: str, code: Code) -> None:
    found = [explained(case) for case in CASES if words in case["hint"]]
    assert found and all(each.parts[0].code is code for each in found)


def test_the_code_of_each_case_is_held() -> None:
    assert [case["hint"] for case in CASES if not any(words in case["hint"] for words in CODES)] == []
    assert len(CASES) >= 44


def test_a_shortage_says_to_which_jobs_room_is_promised() -> None:
    [case] = [case for case in CASES if "promised to ns/five" in case["hint"]]
    assert explained(case).parts[0].sentence == case["hint"]


@pytest.mark.parametrize(("words", "verdict"), [("is closed", Verdict.HELD), ("held back", Verdict.HELD)])
def test_gates_and_closed_queues_hold_a_job(words: str, verdict: Verdict) -> None:
    assert [explained(case).verdict for case in CASES if words in case["hint"]] == [verdict]


def test_a_gang_that_needs_more_than_there_is_never_starts_and_one_that_waits_for_others_does() -> None:
    never = next(case for case in CASES if "largest node has 4" in case["hint"])
    later = next(case for case in CASES if case["hint"].startswith("24 GPUs are free"))
    assert (explained(never).verdict, explained(later).verdict) == (Verdict.NEVER, Verdict.NOT_NOW)


def test_the_first_way_out_of_a_queue_limit_is_the_smallest_raise_of_it() -> None:
    case = next(case for case in CASES if "6 of 8 GPUs used" in case["hint"])
    found = explained(case, ways=True)
    assert found.ways[0].text == ("queue team: capability +2 GPUs",)
    patch = '{"spec":{"capability":{"nvidia.com/gpu":"10"}}}'
    assert found.ways[0].commands == (f"kubectl patch queue team --type merge -p '{patch}'",)


def test_a_lower_minimum_is_the_largest_with_which_it_starts() -> None:
    case = next(case for case in CASES if case["hint"].startswith("6 of 8 pods fit"))
    found = explained(case, ways=True)
    assert "minMember 6 instead of 8" in [text for way in found.ways for text in way.text]


def test_each_code_has_a_meaning() -> None:
    assert WORDS.keys() == set(Code)
    assert all(words.meaning for words in WORDS.values())


def test_a_name_that_is_not_there_gets_the_nearest() -> None:
    world = world_of(CASES[0])
    assert find_job(world, "ask") == find_job(world, ASK) == find_job(world, "ns/ask-0") == ASK
    with pytest.raises(NoSuchJob, match="did you mean ns/ask"):
        find_job(world, "ns/ak")


def test_nearly_the_same_name_in_another_namespace_is_the_nearest() -> None:
    groups = [replace(podgroup(name), namespace=space) for space, name in (("ml", "llama"), ("vision", "eval"))]
    world = World(groups, policy_of(conf_of(CASES[0]), volcano_registry()), NOW, ("volcano",))
    with pytest.raises(NoSuchJob, match=r"did you mean ml/llama"):
        find_job(world, "vision/lama")


def test_the_name_of_a_volcano_job_is_that_of_its_podgroup() -> None:
    groups = [podgroup(f"{name}-00000000-0000-4000-8000-000000000001", 2) for name in ("bert", "llama")]
    world = World(groups, policy_of(conf_of(CASES[0]), volcano_registry()), NOW, ("volcano",))
    assert find_job(world, "bert") == find_job(world, "ns/bert") == groups[0].key
    with pytest.raises(NoSuchJob, match=r"did you mean ns/bert\?"):
        find_job(world, "other/bert")
    with pytest.raises(NoSuchJob, match=r"did you mean ns/llama\?"):
        find_job(world, "ns/lama")


def test_a_job_whose_pods_are_created_when_it_is_admitted_waits_for_that() -> None:
    wanted = Resource(milli_cpu=9000.0)
    objects = [node("n0", cpu=4), queue("default"), replace(podgroup("g", 2), min_resources=wanted)]
    policy = policy_of(DEFAULT_CONF, volcano_registry())
    found = explain(World(objects, policy, NOW, ("volcano",)), "ns/g", ways=False)
    assert found.verdict is Verdict.NEVER and [part.code for part in found.parts] == [
        Code.ROOM
    ]  # the cluster is too small
    admitted = [*objects[:2], replace(podgroup("g", 2), min_resources=Resource(milli_cpu=2000.0))]
    found = explain(World(admitted, policy, NOW, ("volcano",)), "ns/g", ways=False)
    assert found.verdict is Verdict.STARTS and "it is admitted" in found.parts[0].sentence


def test_a_blocker_without_a_lift_names_none() -> None:
    assert lifts_of(Blocker(), world_of(CASES[0]), ASK) == []
