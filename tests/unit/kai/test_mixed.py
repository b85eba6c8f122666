"""KAI's consolidation behind Volcano's allocate: gangs that say that they may be evicted are moved together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.framework.plugin.policy_file import Policy
from pumice.model.events import Object
from pumice.model.pod import PREEMPTABLE_KEY, Pod
from pumice.model.queue import Queue
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.one_cycle import Answer, schedule_once
from pumice.runtime.policy.conf import loaded_from_file
from pumice.runtime.policy.languages import builtin_registry
from pumice.sim.scenes.inputs import read_inputs
from pumice.testing.build import resource

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "defragment"


@pytest.fixture(scope="module")
def policy() -> Policy:
    return loaded_from_file(EXAMPLE / "volcano-scheduler.conf", builtin_registry(), strict=True).policy


@pytest.fixture(scope="module")
def example() -> tuple[list[Object], float]:
    found = read_inputs((str(EXAMPLE),))
    objects = list(found.scene.objects)
    for work in found.scene.works:
        group, pods = work.expand(found.newest)
        objects += (group, *pods)
    return objects, found.newest


def decided(example: tuple[list[Object], float], policy: Policy, **changes: dict[str, Any]) -> Answer:
    """``changes`` of objects by name; a PodGroup's and its pods' differ in it."""
    objects, now = example
    changed = [replace(obj, **changes.get(obj.name.replace("-", "_"), {})) for obj in objects]  # type: ignore[type-var]
    return schedule_once(changed, policy, now)


def test_the_example_makes_room_on_one_node_and_loses_nobody(example: Any, policy: Policy) -> None:
    answer = decided(example, policy)
    assert sorted(each.pod for each in answer.evicts) == ["ml/notebook-3-0", "ml/notebook-4-0"]
    assert answer.pipelined == {"ml/train-0": "gpu-2", "ml/notebook-3-0": "gpu-1", "ml/notebook-4-0": "gpu-1"}
    assert not answer.outcome.faults


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"notebook_4": {"annotations": {}}}, id="who does not say that it may go stays"),
        pytest.param({"notebook_4_0": {"namespace": "kube-system"}}, id="conformance protects"),
        pytest.param({"train": {"min_task_member": {"x": 1}}}, id="minimums by role are not looked at"),
        pytest.param({"research": {"capability": resource(gpu=7)}}, id="the queue may take no more"),
    ],
)
def test_nobody_is_moved_in_vain(example: Any, policy: Policy, changes: dict[str, Any]) -> None:
    if "notebook_4_0" in changes:
        changes = {**changes, "notebook_4": {"namespace": "kube-system"}}
    answer = decided(example, policy, **changes)
    assert answer.evicts == [] and "ml/train-0" in answer.unscheduled


def test_what_volcanos_allocate_promised_is_nobodys_to_take(example: Any, policy: Policy) -> None:
    """Everything of the policy but the consolidation decides as without it."""
    objects, now = example
    fits = [
        replace(obj, spec=replace(obj.spec, request=resource(gpu=1))) if _is(obj, "train-0") else obj for obj in objects
    ]
    assert schedule_once(fits, policy, now).binds.keys() == {"ml/train-0"}


def _is(obj: Object, name: str) -> bool:
    return isinstance(obj, Pod) and obj.name == name


def test_marks_of_volcanos_jobs_are_those_that_consolidation_looks_at(example: Any) -> None:
    marked = {each.name for each in example[0] if isinstance(each, PodGroup) and PREEMPTABLE_KEY in each.annotations}
    assert marked == {"notebook-2", "notebook-3", "notebook-4"}
    assert {each.name for each in example[0] if isinstance(each, Queue)} == {"research"}
