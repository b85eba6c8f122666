"""``python -m bench.kube_preempt``: gangs that have running pods evicted on a real API server, the scheduler killed.

Nodes are full of a pod of low priority each, of one gang that keeps one of them. ``gangs`` gangs of ``size`` pods of
high priority come; as soon as a pod was evicted the scheduler is killed (-9) and another takes its place. At the end
every gang must be bound, none of its pods twice; exactly as many must have been evicted as there are pods of gangs, and
none of them twice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from pumice.kube.api.access import bearer
from pumice.kube.api.client import Client
from pumice.kube.api.errors import ApiError
from pumice.kube.api.kinds import EVENTS, NODES, POD_GROUPS, PODS, PRIORITY_CLASSES, QUEUES
from tests.kube import server as kube
from tests.kube.objects import create, install_crds, node
from tests.kube.running import Running, eventually, running
from tests.kube.scheduling import gang_pod, pod_group
from tests.kube.server import ApiServer, find_assets

SPACE, LOW, HIGH, AT_ONCE = "default", "low", "high", 16
CONF = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""


class Size(Struct, frozen=True):
    """``running`` pods fill the first of ``nodes`` nodes, one each, and the others take nothing; then gangs come."""

    nodes: int
    running: int
    gangs: int
    size: int

    @property
    def wanted(self) -> int:
        return self.gangs * self.size


class World:
    """What is on the server, and the schedulers on it. ``stack`` ends them."""

    def __init__(self, client: Client, server: ApiServer, folder: Path, stack: ExitStack, size: Size) -> None:
        self.client, self.server, self.folder, self.stack, self.size = client, server, folder, stack, size
        self.evicted_when_killed = 0

    async def fill(self) -> None:
        """Nodes, and the pods of low priority that run on them."""
        queue = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": "default"}}
        await self.client.post(QUEUES.list_path, {**queue, "spec": {"weight": 1}})
        for name, value in ((LOW, 10), (HIGH, 1000)):
            kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
            await self.client.post(PRIORITY_CLASSES.list_path, {**kind, "value": value})
        nodes = (self._node(number) for number in range(self.size.nodes))
        await self._all(self.client.post(NODES.list_path, each) for each in nodes)
        await self._group("low", 1, LOW)
        await self._all(self._pod(f"low-{i}", "low", LOW, nodeName=f"n{i}") for i in range(self.size.running))

    def _node(self, number: int) -> dict[str, Any]:
        """One without room for anything where no pod of low priority is to run."""
        return node(f"n{number}", "1" if number < self.size.running else "0")

    async def come(self) -> None:
        """The gangs of high priority."""
        await self._all(self._gang(f"high{number}") for number in range(self.size.gangs))

    async def _gang(self, name: str) -> None:
        await self._group(name, self.size.size, HIGH)
        for i in range(self.size.size):
            await self._pod(f"{name}-{i}", name, HIGH)

    async def _group(self, name: str, minimum: int, level: str) -> None:
        group = pod_group(SPACE, name, minimum)
        group["spec"]["priorityClassName"] = level
        await self.client.post(POD_GROUPS.namespace_path(SPACE), group)

    async def _pod(self, name: str, group: str, level: str, **spec: Any) -> None:
        made = gang_pod(SPACE, name, group)
        made["spec"] |= {"priorityClassName": level, **spec}
        await create(self.client, made)

    async def _all(self, each: Any) -> None:
        """A few at a time."""
        room = asyncio.Semaphore(AT_ONCE)

        async def one(work: Any) -> None:
            async with room:
                await work

        await asyncio.gather(*map(one, each))

    def start(self) -> Running:
        conf = self.folder / "conf.yaml"
        conf.write_text(CONF)
        flags = (f"--leader-elect-resource-namespace={SPACE}", f"--scheduler-conf={conf}")
        return self.stack.enter_context(running(self.folder, self.server.kubeconfig(), *flags, quick_lease=True))

    async def kill_and_go_on(self) -> None:
        """Kill the scheduler once a pod was evicted, and wait until another has bound all pods."""
        first = self.start()
        self.evicted_when_killed = await eventually(self._evicted, first.text)
        await first.ended(signal.SIGKILL)
        second = self.start()
        await eventually(self._all_bound, "not all are bound", seconds=300.0)
        await second.ended(signal.SIGTERM)

    async def _pods(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.client.get(PODS.namespace_path(SPACE)))["items"]
        return found

    async def _evicted(self) -> int:
        left: int = sum(pod["spec"]["priorityClassName"] == LOW for pod in await self._pods())
        return self.size.running - left

    async def _all_bound(self) -> bool:
        pods = await self._pods()
        await self._all(self._remove(pod) for pod in pods if pod["metadata"].get("deletionTimestamp"))
        high = [pod for pod in pods if pod["spec"]["priorityClassName"] == HIGH]
        return len(high) == self.size.wanted and all(pod["spec"].get("nodeName") for pod in high)

    async def _remove(self, pod: dict[str, Any]) -> None:
        """What a kubelet does of a pod that is leaving. The server itself leaves one there whose end was cut short,
        as who asked was killed."""
        path = PODS.path(f"{SPACE}/{pod['metadata']['name']}")
        with suppress(ApiError):  # it is gone by now
            await self.client.request("DELETE", path, params={"gracePeriodSeconds": "0"})

    async def figures(self) -> dict[str, Any]:
        """What came of it."""
        pods, told = await self._pods(), Counter[tuple[str, str]]()
        for event in (await self.client.get(EVENTS.namespace_path(SPACE)))["items"]:
            if event["reason"] in ("Evict", "Scheduled") and event["involvedObject"]["kind"] == "Pod":
                told[event["reason"], event["involvedObject"]["name"]] += event.get("count") or 1
        high = [pod for pod in pods if pod["spec"]["priorityClassName"] == HIGH]
        return {
            "evicted_when_killed": self.evicted_when_killed,
            "evicted": await self._evicted(),
            "wanted": self.size.wanted,
            "bound": sum(bool(pod["spec"].get("nodeName")) for pod in high),
            "evicted_or_bound_twice": sum(count > 1 for count in told.values()),
            "fullest_node": max(Counter(pod["spec"].get("nodeName") for pod in pods).values()),
        }


async def preempted(client: Client, server: ApiServer, folder: Path, size: Size) -> dict[str, Any]:
    """Fill a server that has nothing on it, and let the gangs come."""
    await install_crds(client)
    with ExitStack() as stack:
        world = World(client, server, folder, stack, size)
        await world.fill()
        await world.come()
        began = time.monotonic()
        await world.kill_and_go_on()
        return {**await world.figures(), "seconds": round(time.monotonic() - began, 1)}


async def measure(size: Size) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name, kube.running(find_assets(), Path(name)) as server:
        async with Client(bearer(server.url, server.token(), server.ssl_context())) as client:
            return await preempted(client, server, Path(name), size)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.kube_preempt", description=__doc__)
    for name, default in (("nodes", 1000), ("running", 510), ("gangs", 50), ("size", 10)):
        parser.add_argument(f"--{name}", type=int, default=default)
    found = asyncio.run(measure(Size(**vars(parser.parse_args(words)))))
    print(json.dumps(found, indent=2))
    good = found["evicted"] == found["bound"] == found["wanted"] and not found["evicted_or_bound_twice"]
    return 0 if good and found["fullest_node"] == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
