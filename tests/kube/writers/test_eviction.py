"""Evictions on a real server: what is said, what is deleted, and what is given back."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.kube.api.client import Client
from pumice.kube.api.kinds import NODES, POD_GROUPS, PODS
from pumice.kube.writers.writing import Writing
from pumice.model.events import Gone, Undone
from pumice.model.pod import Pod
from tests.kube.objects import create, pod
from tests.kube.proxy import Fault, FaultProxy, answer, lose_answer, lose_request
from tests.kube.scheduling import Scheduling, by_hand, pod_group, scheduling
from tests.kube.waiting import until


async def bound_pod(client: Client, namespace: str, name: str, **spec: Any) -> None:
    await create(client, pod(namespace, name, nodeName="n1", **spec))


async def gone(at_work: Scheduling, name: str) -> None:
    await until(lambda: f"{at_work.namespace}/{name}" not in at_work.cluster.cache.pods)


async def test_an_evicted_pod_says_why_and_goes(client: Client, namespace: str, crds: None) -> None:
    await client.post(POD_GROUPS.namespace_path(namespace), pod_group(namespace, "job", 1))
    await bound_pod(client, namespace, "victim", terminationGracePeriodSeconds=30)
    async with scheduling(client, client, namespace, "n1") as at_work:
        await at_work.observe("victim")
        await until(lambda: f"{namespace}/job" in at_work.cluster.cache.groups)
        assert at_work.cluster.evict(at_work.evict_of("victim")) is None
        await at_work.settled()
        found = await at_work.pod("victim")
        pod_events = await at_work.events("Evict")
    said = {c["type"]: (c["status"], c["reason"], c.get("message")) for c in found["status"]["conditions"]}
    assert found["metadata"]["deletionTimestamp"]
    assert said == {
        "Ready": ("False", "Evict", None),
        "DisruptionTarget": (
            "True",
            "PreemptionByScheduler",
            "volcano: preempting to accommodate a higher priority pod",
        ),
    }
    assert sorted((e["involvedObject"]["kind"], e["type"], e["message"]) for e in pod_events) == [
        ("Pod", "Warning", "Pod is evicted, because of preempt"),
        ("PodGroup", "Normal", "preempt"),
    ]


@pytest.mark.parametrize(
    ("method", "path", "fault"),
    [
        pytest.param("DELETE", "/pods/victim", lose_answer(), id="applied but lost"),
        pytest.param("DELETE", "/pods/victim", lose_request(), id="never arrived"),
        pytest.param("DELETE", "/pods/victim", answer(500, "InternalError"), id="500"),
        pytest.param("DELETE", "/pods/victim", answer(429, "TooManyRequests", Retry_After="0"), id="429"),
        pytest.param("PATCH", "/pods/victim/status", answer(500, "InternalError"), id="500 on the condition"),
    ],
)
async def test_an_eviction_is_repeated_until_it_is_done(
    through: Client, client: Client, proxy: FaultProxy, namespace: str, method: str, path: str, fault: Fault
) -> None:
    await bound_pod(client, namespace, "victim")
    rule = proxy.on(method, path, fault)
    async with scheduling(through, client, namespace, "n1", follow=(PODS, NODES)) as at_work:
        await at_work.observe("victim")
        assert at_work.cluster.evict(at_work.evict_of("victim")) is None
        await gone(at_work, "victim")
        await at_work.settled()
        at_work.drain()
    assert rule.hits == 1
    assert not at_work.undone


async def test_an_eviction_that_is_refused_is_given_back(
    through: Client, client: Client, proxy: FaultProxy, namespace: str
) -> None:
    await bound_pod(client, namespace, "victim")
    proxy.on("DELETE", "/pods/victim", answer(403, "Forbidden"))
    async with by_hand(through, client, namespace, "victim") as at_work:
        evict = at_work.evict_of("victim")
        assert at_work.cluster.evict(evict) is None
        second = at_work.cluster.evict(evict)
        assert second is not None
        assert second.reason == f"pod {namespace}/victim is being evicted already"
        await at_work.given_back("victim")
        assert at_work.undone == [Undone(evict.pod, evict.uid)]
        assert "deletionTimestamp" not in (await at_work.pod("victim"))["metadata"]


async def test_another_pod_of_the_name_is_left_alone(client: Client, namespace: str) -> None:
    await bound_pod(client, namespace, "victim")
    async with by_hand(client, client, namespace, "victim") as at_work:
        await client.delete(PODS.path(f"{namespace}/victim"))
        await bound_pod(client, namespace, "victim")
        at_work.cluster.evict(at_work.evict_of("victim"))
        await gone(at_work, "victim")
        assert Gone(Pod, f"{namespace}/victim") in at_work.drain()
        found = await at_work.pod("victim")
    assert "deletionTimestamp" not in found["metadata"]
    assert not [c for c in found["status"].get("conditions", ()) if c["type"] == "DisruptionTarget"]


async def test_the_eviction_api_keeps_disruption_budgets(client: Client, namespace: str) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "it", "namespace": namespace},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "it"}}},
    }
    await client.post(f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets", budget)
    await bound_pod(client, namespace, "victim")
    await client.patch(PODS.path(f"{namespace}/victim", "status"), {"status": {"phase": "Running"}})
    async with by_hand(client, client, namespace, "victim", writes=Writing(use_eviction=True)) as at_work:
        at_work.cluster.evict(at_work.evict_of("victim"))
        await at_work.given_back("victim")
        await client.delete(f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/it")
        await until(lambda: at_work.cluster.evict(at_work.evict_of("victim")) is None)
        await until(lambda: at_work.cluster.evictions.work_queue.left == 0)
        left = await client.get(PODS.namespace_path(namespace))
    assert left["items"] == []
