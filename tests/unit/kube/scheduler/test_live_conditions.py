"""Conditions of Kubernetes' own PodGroups that a scheduler at work writes when it evicts or fails."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.filter_result import FilterResult
from pumice.framework.plugin.plugin import plugin
from pumice.framework.plugin.points import predicate
from pumice.framework.plugin.registry import Registry, action_spec
from pumice.kube.api.kinds import NATIVE_POD_GROUPS, PODS
from pumice.kube.scheduler.reload import ConfFile
from pumice.model.status import TaskStatus
from pumice.model.workloads.native_group import INITIALLY_SCHEDULED
from pumice.volcano.table import volcano_registry
from tests.unit.kube.scheduler.test_live import CONF, At, Fault, scheduling, until

GROUP = next(each for each in NATIVE_POD_GROUPS.versions if each.version == "v1beta1")


async def create(at: At, *pods: str) -> None:
    metadata = {"name": "team", "annotations": {"scheduling.volcano.sh/queue-name": "q"}}
    spec = {"schedulingPolicy": {"gang": {"minCount": len(pods)}}}
    await at.client.post(GROUP.namespace_path("default"), {"metadata": metadata, "spec": spec})
    for name in pods:
        waiting = at.waiting(name, "")
        waiting["metadata"].pop("annotations")
        waiting["spec"]["schedulingGroup"] = {"podGroupName": "team"}
        await at.client.post(PODS.namespace_path("default"), waiting)


async def conditions(at: At) -> dict[str, tuple[str, str, str]]:
    """Return status, reason and message of each condition, by its type."""
    found = (await at.client.get(GROUP.path("default/team"))).get("status", {}).get("conditions", [])
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in found}


@pytest.mark.parametrize("leaving", [("p-0", "p-1"), ("p-0",)], ids=["all", "one"])
async def test_a_group_whose_pods_are_all_evicted_is_a_target(leaving: Iterable[str]) -> None:
    wanted: list[str] = []

    def clear(ssn: Session) -> None:
        tasks = ssn.tables.tasks
        rows = (tasks.alive & (tasks.status == TaskStatus.RUNNING)).nonzero()[0].tolist()
        rows = [row for row in rows if tasks.pods[row].name in wanted]
        if len(rows) == len(wanted) > 0:
            with ssn.statement() as stmt:
                stmt.evict(rows, "clear")
                stmt.commit()
            wanted.clear()

    volcano = volcano_registry().dialects["volcano"]
    actions = {**volcano.actions, "clear": action_spec("clear", clear)}
    registry = Registry({"volcano": replace(volcano, actions=actions)})
    async with scheduling(Fault(), conf=ConfFile(None, registry, CONF.replace("stumble", "clear"))) as at:
        await create(at, "p-0", "p-1")
        await at.bound("p-0")
        await at.bound("p-1")
        wanted += leaving

        async def are_gone() -> bool:
            for _ in range(20):
                at.world.kubelets.step()
            found = (await at.client.get(PODS.namespace_path("default")))["items"]
            return not {each["metadata"]["name"] for each in found} & set(leaving)

        await until(are_gone)
        if len(list(leaving)) == 2:

            async def is_target() -> bool:
                found = (await conditions(at)).get("DisruptionTarget")
                return found == ("True", "PreemptionByScheduler", "all its pods are evicted, because of clear")

            await until(is_target)
        else:
            assert "DisruptionTarget" not in await conditions(at)


async def test_a_group_about_which_a_plugin_raises_says_so() -> None:
    @plugin("raises")
    class Raises:
        def __init__(self, ssn: Session) -> None:
            pass

        @predicate
        def refuse(self, task: Task, nodes: NodeRows) -> FilterResult:
            raise RuntimeError("no answer")

    registry = volcano_registry().with_plugins("volcano", [Raises])
    conf = CONF.replace("stumble, ", "").replace("{name: gang}", "{name: gang}, {name: raises}")
    async with scheduling(Fault(), conf=ConfFile(None, registry, conf)) as at:
        await create(at, "p-0")

        async def says() -> bool:
            status, reason, message = (await conditions(at)).get(INITIALLY_SCHEDULED, ("", "", ""))
            return (status, reason) == ("False", "SchedulerError") and "RuntimeError: no answer" in message

        await until(says)
