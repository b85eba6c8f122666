"""A cluster port at work on a real API server: reflectors feed it, a test or a whole loop decides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from pumice.framework.cycle.outcome import Outcome
from pumice.kube.api.client import Client
from pumice.kube.api.codec import Codec
from pumice.kube.api.kinds import (
    DEVICE_CLASSES,
    EVENTS,
    NODES,
    POD_GROUPS,
    PODS,
    QUEUES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES_KIND,
    Kind,
)
from pumice.kube.informers.reflector import Reflector
from pumice.kube.scheduler.cluster import KubeCluster
from pumice.kube.writers.writing import Limits, Writing
from pumice.model.decisions import Bind, Evict
from pumice.model.devices.claims import DeviceClass, ResourceClaim, ResourceSlice
from pumice.model.events import Event, Object, Seen, Undone
from pumice.model.manifest import Decoder
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.queue import Queue
from pumice.model.resources import EMPTY
from pumice.model.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.loop import Loop
from pumice.runtime.policy.conf import policy_of
from pumice.state.store import Store
from pumice.volcano.table import volcano_registry
from tests.kube.objects import node, pod
from tests.kube.reflecting import FAST
from tests.kube.waiting import happens, until

FOLLOWED: dict[Kind, type[Object]] = {PODS: Pod, NODES: Node, POD_GROUPS: PodGroup, QUEUES: Queue}
#: What claims of devices and of volumes rest on, followed by who asks for it.
CLAIMED: dict[Kind, type[Object]] = {
    DEVICE_CLASSES: DeviceClass,
    RESOURCE_SLICES: ResourceSlice,
    RESOURCE_CLAIMS: ResourceClaim,
    STORAGE_CLASSES: StorageClass,
    VOLUMES_KIND: PersistentVolume,
    VOLUME_CLAIMS: PersistentVolumeClaim,
}
POLICY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""


class Scheduling:
    """``cluster`` writes through one client; what is asked here goes directly to the server."""

    def __init__(self, cluster: KubeCluster, client: Client, namespace: str, policy: str = POLICY) -> None:
        self.cluster, self.client, self.namespace, self.policy = cluster, client, namespace, policy
        self.undone: list[Undone] = []
        self.loop: Loop | None = None

    def bind_of(self, name: str, on: str, job: str = "job") -> Bind:
        key = f"{self.namespace}/{name}"
        return Bind(key, self.cluster.cache.pods[key].uid, on, f"{self.namespace}/{job}")

    def evict_of(self, name: str, reason: str = "preempt", job: str = "job") -> Evict:
        found = self.cluster.cache.pods[f"{self.namespace}/{name}"]
        return Evict(found.key, found.uid, found.node_name, f"{self.namespace}/{job}", reason)

    def drain(self) -> list[Event]:
        """What a loop would take in; remembers what was given back."""
        events = self.cluster.drain()
        self.undone += [event for event in events if isinstance(event, Undone)]
        return events

    async def given_back(self, name: str) -> None:
        await until(lambda: self.drain() is not None and f"{self.namespace}/{name}" in [u.pod for u in self.undone])

    async def observe(self, *names: str) -> None:
        """Wait until these pods were heard of."""
        await until(lambda: all(f"{self.namespace}/{name}" in self.cluster.cache.pods for name in names))

    async def bound(self, name: str) -> str:
        """Wait until a pod was heard to be on a node."""
        key = f"{self.namespace}/{name}"
        await until(lambda: self.cluster.cache.pods[key].node_name)
        return self.cluster.cache.pods[key].node_name

    async def pod(self, name: str) -> dict[str, Any]:
        """The pod, as the server has it."""
        found: dict[str, Any] = await self.client.get(PODS.path(f"{self.namespace}/{name}"))
        return found

    async def events(self, reason: str) -> list[dict[str, Any]]:
        """The events with this reason, as the server has them."""
        found = await self.client.get(EVENTS.namespace_path(self.namespace))
        return [event for event in found["items"] if event["reason"] == reason]

    async def settled(self) -> None:
        """Wait until everything that was handed over is written, and nothing is in flight."""
        await until(lambda: not len(self.cluster.in_flight), what="decisions are still in flight")
        work_queues = (self.cluster.binds, self.cluster.evictions.work_queue, *self.cluster._quiet_work_queues())
        for work_queue in work_queues:
            await asyncio.wait_for(work_queue.empty(), 60)

    async def step(self, now: float) -> Outcome:
        """One cycle, in a thread of its own as in life."""
        if self.loop is None:
            self.loop = Loop(Store(), policy_of(self.policy, volcano_registry()), self.cluster)
        outcome = await asyncio.to_thread(self.loop.step, now)
        self.cluster.report(outcome)
        self.cluster.evictions.release()
        return outcome


_PATIENT = Writing(Limits(confirm_s=60.0))


@asynccontextmanager
async def scheduling(
    writing: Client,
    client: Client,
    namespace: str,
    *nodes: str,
    writes: Writing = _PATIENT,
    follow: tuple[Kind, ...] = tuple(FOLLOWED),
    policy: str = POLICY,
    **options: Any,
) -> AsyncIterator[Scheduling]:
    """``writing`` may pass a proxy; reflectors and the test itself use ``client``."""
    cluster = KubeCluster(writing, writes, **options)
    decoder = Decoder()
    reflectors = [
        Reflector(client, kind, Codec(kind, decoder), cluster.sink, (FOLLOWED | CLAIMED)[kind], FAST) for kind in follow
    ]
    for name in nodes:
        await client.post(NODES.list_path, node(name))
    tasks = [asyncio.create_task(run) for run in (cluster.run(), *(each.run() for each in reflectors))]
    try:
        for reflector in reflectors:
            await happens(reflector.synced)
        yield Scheduling(cluster, client, namespace, policy)
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        for name in nodes:
            await client.delete(NODES.path(name))


def gang_pod(namespace: str, name: str, group: str) -> dict[str, Any]:
    """Tolerates all taints: no kubelet takes the one away that a new node has."""
    found = pod(namespace, name, tolerations=[{"operator": "Exists"}])
    found["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": group}
    return found


def pod_group(namespace: str, name: str, min_member: int, phase: str = "Inqueue") -> dict[str, Any]:
    return {
        "apiVersion": POD_GROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"minMember": min_member, "queue": "default"},
        "status": {"phase": phase},
    }


@asynccontextmanager
async def by_hand(
    writing: Client, client: Client, namespace: str, *pods: str, **options: Any
) -> AsyncIterator[Scheduling]:
    """Nothing is watched: the cluster knows these pods and a node n1, as they are now, and what it finds out itself."""
    async with scheduling(writing, client, namespace, follow=(), **options) as at_work:
        codec = Codec(PODS, Decoder())
        for name in pods:
            found = codec.read(await client.request("GET", PODS.path(f"{namespace}/{name}")))
            at_work.cluster.sink([Seen(found.value)])  # type: ignore[arg-type]  # a codec of pods reads pods
        at_work.cluster.sink([Seen(Node("n1", EMPTY))])
        yield at_work
