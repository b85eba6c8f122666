"""Volcano's queue gate on a real API server: off those pods that their queue may take on, and on for all others."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.kube.api.client import Client
from pumice.kube.api.kinds import POD_GROUPS, QUEUES
from pumice.model.pod import QUEUE_GATE, Pod
from tests.kube.objects import create
from tests.kube.scheduling import Scheduling, gang_pod, pod_group, scheduling
from tests.kube.waiting import until

NODE = "gates-n1"
CAPACITY = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: capacity}]
"""


def gated(namespace: str, name: str, *others: str) -> dict[str, Any]:
    """A pod of one CPU, a job of its own, behind its queue's gate and others."""
    found = gang_pod(namespace, name, name)
    found["metadata"]["annotations"][QUEUE_GATE] = "true"
    found["spec"]["schedulingGates"] = [{"name": gate} for gate in (QUEUE_GATE, *others)]
    return found


async def gates_of(at_work: Scheduling, name: str) -> list[str]:
    return [each["name"] for each in (await at_work.pod(name))["spec"].get("schedulingGates", ())]


def without_gates(at_work: Scheduling) -> list[Pod]:
    """Pods of this namespace alone: those of other tests may be on the server."""
    pods = at_work.cluster.cache.pods.values()
    return [pod for pod in pods if pod.namespace == at_work.namespace and not pod.gates]


async def jobs_in(client: Client, namespace: str, *pods: dict[str, Any]) -> None:
    """Each pod in a PodGroup of its name, in a queue that may have two CPUs."""
    queue = {
        "apiVersion": QUEUES.api_version,
        "kind": "Queue",
        "metadata": {"name": f"{namespace}-q"},
        "spec": {"capability": {"cpu": "2"}},
    }
    await client.post(QUEUES.list_path, queue)
    for each in pods:
        group = pod_group(namespace, each["metadata"]["name"], 1)
        group["spec"]["queue"] = f"{namespace}-q"
        await client.post(POD_GROUPS.namespace_path(namespace), group)
    await create(client, *pods)


@pytest.mark.usefixtures("crds")
async def test_the_gate_is_taken_off_what_the_queue_may_take_on(client: Client, namespace: str) -> None:
    """Two of three fit the queue. A pod that has another gate as well is left alone, and asks for no room."""
    pods = [gated(namespace, name) for name in "abc"] + [gated(namespace, "o", "example.com/other")]
    await jobs_in(client, namespace, *pods)
    async with scheduling(client, client, namespace, NODE, policy=CAPACITY) as at_work:
        await at_work.observe("a", "b", "c", "o")
        await at_work.step(1_000.0)
        await at_work.settled()
        await until(lambda: len(without_gates(at_work)) == 2)
        taken = without_gates(at_work)
        assert not any(pod.node_name for pod in taken), "the API server says first that a gate is gone"
        await at_work.step(1_001.0)
        assert all([await at_work.bound(pod.name) for pod in taken]), "on whichever node: other tests leave some"
        (waits,) = {"a", "b", "c"} - {pod.name for pod in taken}
        assert await gates_of(at_work, waits) == [QUEUE_GATE]
        assert await gates_of(at_work, "o") == [QUEUE_GATE, "example.com/other"]
