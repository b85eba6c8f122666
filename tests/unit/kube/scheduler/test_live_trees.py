"""The scheduler at work on CompositePodGroups and Workloads of an API server."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.kube.api.kinds import COMPOSITE_POD_GROUPS, NATIVE_POD_GROUPS, PODS, WORKLOADS, Kind
from pumice.model.workloads.native_group import COMPOSITE_INITIALLY_SCHEDULED, INITIALLY_SCHEDULED
from tests.unit.kube.scheduler.test_live import At, Fault, scheduling, until

COMPOSITE = next(each for each in COMPOSITE_POD_GROUPS.versions if each.version == "v1alpha3")
GROUP = next(each for each in NATIVE_POD_GROUPS.versions if each.version == "v1beta1")


@pytest.fixture
def fault() -> Fault:
    return Fault()


async def create(at: At, kind: Kind, name: str, policy: dict[str, Any], **spec: Any) -> None:
    metadata = {"name": name, "annotations": {"scheduling.volcano.sh/queue-name": "q"}}
    obj = {"metadata": metadata, "spec": {"schedulingPolicy": policy, **spec}}
    await at.client.post(kind.namespace_path("default"), obj)


async def pod(at: At, name: str, of: str) -> None:
    waiting = at.waiting(name, "")
    waiting["metadata"].pop("annotations")
    waiting["spec"]["schedulingGroup"] = {"podGroupName": of}
    await at.client.post(PODS.namespace_path("default"), waiting)


async def test_a_tree_is_bound_whole_and_each_of_its_groups_says_so(fault: Fault) -> None:
    async with scheduling(fault) as at:

        async def says(kind: Kind, name: str, type_: str, status: str) -> bool:
            found = (await at.client.get(kind.path(f"default/{name}"))).get("status", {}).get("conditions", [])
            return any((each["type"], each["status"]) == (type_, status) for each in found)

        async def all_say(status: str) -> bool:
            root = await says(COMPOSITE, "all", COMPOSITE_INITIALLY_SCHEDULED, status)
            return root and all(
                [await says(GROUP, each, INITIALLY_SCHEDULED, status) for each in ("driver", "workers")]
            )

        # Members first: neither they nor their pods count before the root is there.
        for name in ("driver", "workers"):
            await create(at, GROUP, name, {"gang": {"minCount": 1}}, parentCompositePodGroupName="all")
        await pod(at, "d", "driver")
        await create(at, COMPOSITE, "all", {"gang": {"minGroupCount": 2}})
        await until(lambda: all_say("False"))
        assert not (await at.client.get(PODS.path("default/d")))["spec"].get("nodeName")
        assert await at.reports("Unschedulable", "all")
        await pod(at, "w", "workers")
        await at.bound("d")
        await at.bound("w")
        await until(lambda: all_say("True"))


async def conditions(at: At, kind: Kind, name: str) -> dict[str, tuple[str, str]]:
    """Return status and reason of each condition, by its type."""
    found = (await at.client.get(kind.path(f"default/{name}"))).get("status", {}).get("conditions", [])
    return {each["type"]: (each["status"], each["reason"]) for each in found}


async def test_each_level_of_a_tree_has_its_condition(fault: Fault) -> None:
    async with scheduling(fault) as at:
        await create(at, COMPOSITE, "all", {"gang": {"minGroupCount": 1}})
        await create(at, COMPOSITE, "inner", {"gang": {"minGroupCount": 1}}, parentCompositePodGroupName="all")
        await create(at, GROUP, "leaf", {"gang": {"minCount": 1}}, parentCompositePodGroupName="inner")
        await pod(at, "p", "leaf")
        await at.bound("p")

        async def all_say() -> bool:
            found = [await conditions(at, COMPOSITE, each) for each in ("all", "inner")]
            return all(each == {COMPOSITE_INITIALLY_SCHEDULED: ("True", "Scheduled")} for each in found)

        await until(all_say)


async def test_a_group_whose_parent_does_not_exist_says_so(fault: Fault) -> None:
    async with scheduling(fault) as at:
        await create(at, GROUP, "lost", {"gang": {"minCount": 1}}, parentCompositePodGroupName="nowhere")
        await pod(at, "p", "lost")
        await until(lambda: at.reports("FailedScheduling", "p"))
        assert any(
            'found "nowhere", wanted the name of an existing' in each
            for each in await at.reports("FailedScheduling", "p")
        )
        assert not (await at.client.get(PODS.path("default/p")))["spec"].get("nodeName")

        async def says() -> bool:
            return await conditions(at, GROUP, "lost") == {INITIALLY_SCHEDULED: ("False", "SchedulerError")}

        await until(says)


async def test_a_pod_group_of_a_workload_is_bound_whole(fault: Fault) -> None:
    async with scheduling(fault) as at:

        async def member(name: str) -> None:
            waiting = at.waiting(name, "")
            waiting["metadata"].pop("annotations")
            waiting["spec"]["workloadRef"] = {"name": "train", "podGroup": "workers", "podGroupReplicaKey": "0"}
            await at.client.post(PODS.namespace_path("default"), waiting)

        async def condition(name: str) -> str:
            found = (await at.client.get(PODS.path(f"default/{name}"))).get("status", {}).get("conditions", [])
            return next((each.get("message", "") for each in found if each["type"] == "PodScheduled"), "")

        async def says(name: str, text: str) -> bool:
            return text in await condition(name)

        await member("a")
        await until(lambda: says("a", "pod group workers with replica key 0 of Workload default/train"))
        metadata = {"name": "train", "annotations": {"scheduling.volcano.sh/queue-name": "q"}}
        policy = {"name": "workers", "policy": {"gang": {"minCount": 2}}}
        spec = {"podGroups": [policy]}
        await at.client.post(WORKLOADS.namespace_path("default"), {"metadata": metadata, "spec": spec})
        await until(lambda: says("a", "1 Pending, 2 minAvailable"))
        await member("b")
        await at.bound("a")
        await at.bound("b")
