"""Statuses, conditions and events on a real server: differences only, and nothing twice."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.kube.api.client import Client
from pumice.kube.api.codec import Codec
from pumice.kube.api.kinds import NODES, POD_GROUPS, PODS, QUEUES
from pumice.kube.writers.event_recorder import about_pod
from pumice.model.decisions import PodGroupUpdate, PodNotice
from pumice.model.events import Seen
from pumice.model.manifest import Decoder
from pumice.model.resources import Resource
from pumice.model.workloads.podgroup import PodGroup, PodGroupCondition, PodGroupStatus
from tests.kube.objects import create, pod
from tests.kube.proxy import FaultProxy, answer
from tests.kube.running import eventually
from tests.kube.scheduling import Scheduling, by_hand, pod_group, scheduling
from tests.kube.waiting import until

_CONDITION = PodGroupCondition("Unschedulable", "True", "NotEnoughResources", "2/3 tasks", "session-1", 1_000.0)
_STATUS = PodGroupStatus("Inqueue", (_CONDITION,), running=1)


async def group_status(at_work: Scheduling, name: str = "g") -> dict[str, object]:
    found = await at_work.client.get(POD_GROUPS.path(f"{at_work.namespace}/{name}"))
    status: dict[str, object] = found["status"]
    return status


async def test_a_podgroup_without_status_subresource(
    through: Client, client: Client, proxy: FaultProxy, namespace: str, crds: None
) -> None:
    """Volcano's CRD has none: the status is merged into the object, and what others wrote to it stays."""
    await client.post(POD_GROUPS.namespace_path(namespace), pod_group(namespace, "g", 3, "Pending"))
    async with scheduling(through, client, namespace, follow=(POD_GROUPS,)) as at_work:
        key = f"{namespace}/g"
        await until(lambda: key in at_work.cluster.cache.groups)
        await client.patch(POD_GROUPS.path(key), {"spec": {"minMember": 2}})
        at_work.cluster.write_group(PodGroupUpdate(key, _STATUS))
        await at_work.settled()
        assert await group_status(at_work) == {
            "phase": "Inqueue",
            "running": 1,
            "conditions": [
                {
                    "type": "Unschedulable",
                    "status": "True",
                    "reason": "NotEnoughResources",
                    "message": "2/3 tasks",
                    "transitionID": "session-1",
                    "lastTransitionTime": "1970-01-01T00:16:40Z",
                }
            ],
        }
        assert (await client.get(POD_GROUPS.path(key)))["spec"]["minMember"] == 2
        assert [e["message"] for e in await at_work.events("Unschedulable")] == ["2/3 tasks"]
        await until(lambda: at_work.cluster.cache.groups[key].status.running == 1)
        at_work.cluster.write_group(PodGroupUpdate(key, PodGroupStatus("Running", (_CONDITION,))))
        await at_work.settled()
        assert {k: v for k, v in (await group_status(at_work)).items() if k != "conditions"} == {"phase": "Running"}
        assert [e["message"] for e in await at_work.events("Scheduled")] == ["pod group is ready"]
    assert proxy.count("PATCH", "/podgroups/g$") == 2
    assert proxy.count("PATCH", "/podgroups/g/status$") == 0


async def test_a_status_is_written_once(
    through: Client, client: Client, proxy: FaultProxy, namespace: str, crds: None
) -> None:
    """A cycle wants the same status until a watch has reported it; sessions and times do not make it another one."""
    await client.post(POD_GROUPS.namespace_path(namespace), pod_group(namespace, "g", 3, "Pending"))
    key, codec = f"{namespace}/g", Codec(POD_GROUPS, Decoder())
    async with by_hand(through, client, namespace) as at_work:  # no watch: the echo comes when the test says so

        async def apply() -> None:
            group = codec.read(await client.request("GET", POD_GROUPS.path(key))).value
            assert isinstance(group, PodGroup)
            at_work.cluster.sink([Seen(group)])

        async def write(session: int) -> None:
            condition = replace(_CONDITION, transition_id=f"session-{session}", last_transition=float(session))
            at_work.cluster.write_group(PodGroupUpdate(key, replace(_STATUS, conditions=(condition,))))
            await at_work.settled()

        await apply()
        for session in range(9):
            await write(session)
        await apply()
        await write(10)
        assert at_work.cluster.cache.groups[key].status.phase == "Inqueue"
    assert proxy.count("PATCH", "/podgroups/") == 1


@pytest.mark.parametrize("status", [409, 500, 503])
async def test_a_status_that_was_not_written_is_wanted_again(
    through: Client, client: Client, proxy: FaultProxy, namespace: str, crds: None, status: int
) -> None:
    await client.post(POD_GROUPS.namespace_path(namespace), pod_group(namespace, "g", 3, "Pending"))
    proxy.on("PATCH", "/podgroups/g", answer(status))
    async with scheduling(through, client, namespace, follow=(POD_GROUPS,)) as at_work:
        key = f"{namespace}/g"
        await until(lambda: key in at_work.cluster.cache.groups)
        at_work.cluster.write_group(PodGroupUpdate(key, _STATUS))
        await at_work.settled()
        assert await group_status(at_work) == {"phase": "Pending"}

        async def written() -> bool:
            at_work.cluster.write_group(PodGroupUpdate(key, _STATUS))
            await at_work.settled()
            return (await group_status(at_work))["phase"] == "Inqueue"

        await eventually(written)


async def test_a_status_that_is_refused_is_not_sent_again_with_each_cycle(
    through: Client, client: Client, proxy: FaultProxy, namespace: str, crds: None, caplog: pytest.LogCaptureFixture
) -> None:
    """A hundred such groups were a hundred requests a second."""
    await client.post(POD_GROUPS.namespace_path(namespace), pod_group(namespace, "g", 3, "Pending"))
    proxy.on("PATCH", "/podgroups/g", answer(422, "Invalid", "no such status"), times=10**6)
    async with scheduling(through, client, namespace, follow=(POD_GROUPS,)) as at_work:
        key = f"{namespace}/g"
        await until(lambda: key in at_work.cluster.cache.groups)
        for session in range(50):
            condition = replace(_CONDITION, message=f"{session}/3 tasks")
            at_work.cluster.write_group(PodGroupUpdate(key, replace(_STATUS, conditions=(condition,))))
            await at_work.settled()
    assert 1 <= proxy.count("PATCH", "/podgroups/g") <= 5
    assert len([r for r in caplog.records if "not written" in r.getMessage()]) == 1


async def test_a_time_of_the_year_1_is_written_back_as_it_is(client: Client, namespace: str, crds: None) -> None:
    """What some clients write for no time at all: it came back as 1-01-01, and was refused for ever."""
    group = pod_group(namespace, "g", 3, "Pending")
    zero = "0001-01-01T00:00:00Z"
    group["status"]["conditions"] = [{"type": "Scheduled", "status": "True", "lastTransitionTime": zero}]
    await client.post(POD_GROUPS.namespace_path(namespace), group)
    async with scheduling(client, client, namespace, follow=(POD_GROUPS,)) as at_work:
        key = f"{namespace}/g"
        await until(lambda: key in at_work.cluster.cache.groups)
        known = at_work.cluster.cache.groups[key].status.conditions
        at_work.cluster.write_group(PodGroupUpdate(key, replace(_STATUS, conditions=(*known, _CONDITION))))
        await at_work.settled()
        conditions: Any = (await group_status(at_work))["conditions"]
        assert [condition["lastTransitionTime"] for condition in conditions] == [zero, "1970-01-01T00:16:40Z"]


async def test_what_somebody_else_overwrote_is_written_again(client: Client, namespace: str, crds: None) -> None:
    await client.post(POD_GROUPS.namespace_path(namespace), pod_group(namespace, "g", 3, "Pending"))
    async with scheduling(client, client, namespace, follow=(POD_GROUPS,)) as at_work:
        key, groups = f"{namespace}/g", at_work.cluster.cache.groups
        await until(lambda: key in groups)
        at_work.cluster.write_group(PodGroupUpdate(key, _STATUS))
        await until(lambda: groups[key].status.phase == "Inqueue")
        await client.patch(POD_GROUPS.path(key), {"status": {"phase": "Pending"}})
        await until(lambda: groups[key].status.phase == "Pending")
        at_work.cluster.write_group(PodGroupUpdate(key, _STATUS))
        await until(lambda: groups[key].status.phase == "Inqueue")


async def test_a_queue_with_status_subresource(
    through: Client, client: Client, proxy: FaultProxy, namespace: str, crds: None
) -> None:
    name = f"{namespace}-q"
    queue = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": name}}
    await client.post(QUEUES.list_path, queue)
    await client.patch(QUEUES.path(name, "status"), {"status": {"state": "Open"}})
    async with scheduling(through, client, namespace, follow=(QUEUES,)) as at_work:
        queues = at_work.cluster.cache.queues
        await until(lambda: name in queues)
        for allocated in ({"cpu": "2", "nvidia.com/gpu": "1"}, {"cpu": "3"}, {"cpu": "3"}):
            wanted = Resource.from_list(allocated)
            at_work.cluster.write_queue(name, wanted)
            await at_work.settled()
            await until(lambda wanted=wanted: queues[name].allocated == wanted)  # type: ignore[misc]
        status = (await client.get(QUEUES.path(name)))["status"]
    assert status == {"state": "Open", "allocated": {"cpu": "3", "memory": "0"}}
    assert proxy.count("PATCH", "/queues/.*/status$") == 2


async def test_a_waiting_pod_says_why(through: Client, client: Client, proxy: FaultProxy, namespace: str) -> None:
    await create(client, pod(namespace, "a"))
    async with scheduling(through, client, namespace, follow=(PODS,)) as at_work:
        await at_work.observe("a")
        pods, key = at_work.cluster.cache.pods, f"{namespace}/a"
        notice = PodNotice(key, pods[key].uid, "Unschedulable", "0/3 nodes are available", "n7")
        for _ in range(5):
            at_work.cluster.notice(notice)
            await at_work.settled()
        status = (await at_work.pod("a"))["status"]
        (condition,) = status["conditions"]
        since = condition.pop("lastTransitionTime")
        assert condition["message"] == "0/3 nodes are available"
        assert status["nominatedNodeName"] == "n7"
        await until(lambda: pods[key].nominated_node == "n7")
        at_work.cluster.notice(replace(notice, message="0/4 nodes are available", nominated_node=""))
        await at_work.settled()
        status = (await at_work.pod("a"))["status"]
        assert status["conditions"][0]["message"] == "0/4 nodes are available"
        assert status["conditions"][0]["lastTransitionTime"] == since, "it waits since then"
        assert status["nominatedNodeName"] == "n7", "a nomination is never taken back here"
        reports = await at_work.events("FailedScheduling")
    assert sorted(e["message"] for e in reports) == ["0/3 nodes are available", "0/4 nodes are available"]
    assert proxy.count("PATCH", "/pods/a/status") == 2


async def test_a_pod_that_was_bound_meanwhile_is_not_called_waiting(client: Client, namespace: str) -> None:
    """The notice was decided on an older pod: the API server refuses it by its resource version."""
    await create(client, pod(namespace, "a"))
    async with by_hand(client, client, namespace, "a") as at_work:
        known = at_work.cluster.cache.pods[f"{namespace}/a"]
        target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
        await client.post(PODS.path(known.key, "binding"), {"metadata": {"name": "a"}, "target": target})
        at_work.cluster.notice(PodNotice(known.key, known.uid, "Unschedulable", "no room"))
        await at_work.settled()
        (condition,) = (await at_work.pod("a"))["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("PodScheduled", "True")


async def test_an_event_that_is_reported_again_is_counted(client: Client, namespace: str) -> None:
    await create(client, pod(namespace, "a"))
    async with scheduling(client, client, namespace, follow=(PODS, NODES)) as at_work:
        await at_work.observe("a")
        recorder, ref = at_work.cluster.recorder, about_pod(at_work.cluster.cache.pods[f"{namespace}/a"])
        recorder._again_s = 0.0
        for _ in range(3):
            recorder.record(ref, "Warning", "Odd", "it is\nodd")
            await at_work.settled()
        (event,) = await at_work.events("Odd")
        assert (event["count"], event["message"], event["source"]) == (3, "it is�odd", {"component": "volcano"})
        await client.delete(f"/api/v1/namespaces/{namespace}/events/{event['metadata']['name']}")
        recorder.record(ref, "Warning", "Odd", "it is\nodd")
        await at_work.settled()
        (event,) = await at_work.events("Odd")
        assert event["count"] == 4, "made anew where the server has let it go"
