"""KAI's language: each wrong answer at each of its points is a fault of its hook, and the rest of the cycle goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.algorithms.queue_order import QueueKey
from pumice.cycle import run_cycle
from pumice.framework.memo import Memo
from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.kai.engine.points import NODE_LOCAL
from pumice.kai.points import POINTS
from pumice.model.decisions import Bind
from pumice.model.devices.gpu import GpuShare
from pumice.model.events import Object
from pumice.model.pod import Pod
from pumice.model.workloads.gang import SubGroup
from pumice.runtime.policy.languages import builtin_registry
from tests.unit.framework.every_point import Form, jobs_of, neutral, plugin_at
from tests.unit.framework.test_fault_at_each_point import ANY, MASKS, NAN, NUMBERS, _same, wrong_answers
from tests.unit.kai.cluster import NOW, PLUGINS, Planner, job, node, queue, store


class World(NamedTuple):
    objects: list[Object]
    actions: str


def _free() -> list[Object]:
    """Three gangs wait in one queue, and jobs of other kinds beside; there is room for all."""
    memory = {"nvidia.com/gpu.memory": "1000"}
    found: list[Object] = [node("n1", 8, labels=memory), node("n2", 8, labels=memory), queue("q", 16), queue("r", 1)]
    for age, name in enumerate(("early", "bad", "late")):
        found += job(name, "q", ["", ""], age=9.0 - age, priority=50)
    sets = SubGroup("both"), SubGroup("one", 1, "both"), SubGroup("two", 1, "both")
    found += job("sets", "q", ["/one", "/two", "/one"], minimum=2, sub_groups=sets, age=0.5)
    found += job("elastic", "q", ["n1/a", "n1/b", "/a", "/b"], sub_groups=(SubGroup("a", 1), SubGroup("b", 1)))
    for each in job("shares", "r", [""], gpus=0):
        half = isinstance(each, Pod) and replace(each, spec=replace(each.spec, gpu_share=GpuShare(0.5)))
        found.append(half or each)
    return found


def _full(of: str) -> list[Object]:
    """A node is full of jobs of one queue, and a more important job waits."""
    found: list[Object] = [node("n1", 4), queue("mine", 4), queue("others", 0)]
    for name in ("old", "older"):
        found += job(name, of, ["n1"] * 2, priority=10)
    return [*found, *job("bad", "mine", [""], 2)]


def _scattered() -> list[Object]:
    """A job fits if one of two others moves."""
    found: list[Object] = [node("n1", 2), node("n2", 2), queue("q", 4)]
    return [*found, *job("a", "q", ["n1"]), *job("b", "q", ["n2"]), *job("bad", "q", [""], 2)]


WORLDS = {
    "free": World(_free(), "allocate"),
    "reclaim": World(_full("others"), "reclaim"),
    "preempt": World(_full("mine"), "preempt"),
    "consolidation": World(_scattered(), "consolidation"),
}
_WHERE = {
    **dict.fromkeys(("may_reclaim", "reclaim_victims", "reclaim_valid", "on_deallocate"), "reclaim"),
    **dict.fromkeys(("solution_start", "victim_sets"), "reclaim"),
    **dict.fromkeys(("preempt_victims", "preempt_valid"), "preempt"),
    **dict.fromkeys(("consolidate_victims", "consolidate_valid"), "consolidation"),
}
#: Asked where an evicted pod is placed on its node again (tests/unit/kai/devices/test_numa.py).
NOT_HERE = {"keeps_placement"}
#: Asked about one job that is not ``bad``.
_OF_ANOTHER = {"device_order"}
#: Asked about several jobs at once, and after a fault about each.
_OF_SEVERAL = {"task_order"}
FORMS = [
    Form(point, takes, _WHERE.get(name, "free"))
    for name, point in POINTS.items()
    for takes in point.forms
    if name not in NOT_HERE
]


def _right(form: Form, *args: Any) -> Any:
    """Return an answer that changes nothing."""
    match form.point.name:
        case "may_take":
            return ""
        case "may_reclaim" | "reclaim_valid" | "preempt_valid" | "consolidate_valid":
            return True
        case "reclaim_victims" | "preempt_victims" | "consolidate_victims":
            return np.ones(len(args[1]), dtype=bool)
        case "queue_request_order" if form.takes == ("QueueRequest",):
            return QueueKey((False, False, 0.0, False, 0.0, 0.0), (0.0,))
        case "pod_set_order" | "queue_request_order":
            return 0
        case "node_subsets":
            return [args[1]]
        case "device_order":
            return np.zeros(len(args[2]))
        case "victim_sets":
            return NODE_LOCAL
    return neutral(form, *args)


def _wrong(form: Form) -> dict[str, Callable[..., Any]]:
    """Return functions to answers that the point cannot use, by what is wrong."""
    match form.point.name:
        case "may_take":
            return {wrong: answer for wrong, answer in NUMBERS.items() if wrong != "a text"}
        case "reclaim_victims" | "preempt_victims" | "consolidate_victims":
            return MASKS
        case "node_subsets":
            return {**ANY, "None": _same(None), "texts": _same(["x"])}
        case "device_order":
            texts = {"texts": lambda *args: np.full(len(args[2]), "x"), "NaN": lambda *args: np.full(len(args[2]), NAN)}
            return {**ANY, **texts, "one more": lambda *args: np.zeros(len(args[2]) + 1)}
        case "victim_sets":
            return {**ANY, "None": _same(None)}
        case "solution_start":
            return ANY
    in_turn = ("in turn", "in_turn", "open_to", "placed")  # KAI places task by task
    return {
        wrong: answer for wrong, answer in wrong_answers(form).items() if not any(each in wrong for each in in_turn)
    }


CASES = [
    pytest.param(form, answer, id=f"{form.name} {wrong}") for form in FORMS for wrong, answer in _wrong(form).items()
]


def under(actions: str, *mine: Any) -> Policy:
    named = [{"name": name} for name in (*(["odd"] if mine else []), *PLUGINS)]
    conf = {"dialect": "kai", "actions": actions, "tiers": [{"plugins": named}]}
    return read_policy(conf, builtin_registry().with_plugins("kai", list(mine)))


@pytest.mark.parametrize(("form", "answer"), CASES)
def test_a_wrong_answer_is_a_fault_of_its_hook(form: Form, answer: Callable[..., Any]) -> None:
    world = WORLDS[form.world]
    apart: list[bool] = []

    def wrong_of_bad(*args: Any) -> Any:
        about = set().union(*map(jobs_of, args)) - {"another"}
        apart.append(len(about) == 1)
        is_meant = not about or "bad" in about or form.world != "free" or form.point.name == "device_order"
        return answer(*args) if is_meant else _right(form, *args)

    planner = Planner()
    mine = plugin_at(form, wrong_of_bad)
    outcome = run_cycle(store(*world.objects).snapshot(), under(world.actions, mine), NOW, planner, memo=Memo())
    assert outcome.faults
    for fault in outcome.faults:
        assert (fault.plugin, fault.point, fault.hook) == ("odd", form.point.name, "Odd.hook")
    if (all(apart) or form.point.name in _OF_SEVERAL) and form.world == "free" and form.point.name not in _OF_ANOTHER:
        bound = {each.pod.partition("/")[2].partition("-")[0] for each in planner.taken if isinstance(each, Bind)}
        assert bound >= {"early", "late"}
        assert "bad" not in bound
