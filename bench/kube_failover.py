"""``python -m bench.kube_failover``: how long no scheduler leads after the leader is killed in the middle of its binds.

Two ``pumice run`` on one API server. Each round makes gangs, kills the leader (-9) as soon as one of their pods has its
node and takes the seconds until the other leads; a third takes the place of the killed one. At the end every pod must
have been bound, none of them twice, and no node may hold more than it has.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pumice.kube.api.access import bearer
from pumice.kube.api.client import Client
from pumice.kube.api.kinds import EVENTS, NODES, POD_GROUPS, PODS, QUEUES
from tests.kube import server as kube
from tests.kube.objects import create, install_crds, node
from tests.kube.running import Running, eventually, running
from tests.kube.scheduling import gang_pod, pod_group
from tests.kube.server import ApiServer, find_assets
from tests.kube.waiting import until

LEASE_S = 3.0  # as tests.kube.running has it for quick ones
SPACE, SIZE, GANGS, NODE_COUNT, NODE_CPU = "default", 5, 4, 40, 64  # a pod has a core and 1 of 64 GiB


class Rounds:
    """One server, and the schedulers on it. ``stack`` ends them."""

    def __init__(self, client: Client, server: ApiServer, folder: Path, stack: ExitStack) -> None:
        self.client, self.server, self.folder, self.stack = client, server, folder, stack
        self.seconds: list[float] = []

    def start(self) -> Running:
        flags = (f"--leader-elect-resource-namespace={SPACE}", "--listen-address=127.0.0.1:0")
        return self.stack.enter_context(running(self.folder, self.server.kubeconfig(), *flags, quick_lease=True))

    async def run(self, count: int) -> None:
        leader, waiting = self.start(), self.start()
        await waiting.says("synced: ")
        await until(lambda: leader.said(" leads: ") or waiting.said(" leads: "))
        if waiting.said(" leads: "):
            leader, waiting = waiting, leader
            await waiting.says("synced: ")
        for number in range(count):
            names = [f"r{number}g{gang}" for gang in range(GANGS)]
            making = [asyncio.create_task(self._gang(name)) for name in names]
            await eventually(lambda begun=tuple(names): self._bound(begun))  # type: ignore[misc]
            leader.process.send_signal(signal.SIGKILL)
            await asyncio.to_thread(leader.process.wait)
            killed = time.monotonic()
            await waiting.says(" leads: ")
            self.seconds.append(time.monotonic() - killed)
            await asyncio.gather(*making)
            leader, waiting = waiting, self.start()
            await waiting.says("synced: ")
        await eventually(self._all_bound)

    async def _gang(self, name: str) -> None:
        await self.client.post(POD_GROUPS.namespace_path(SPACE), pod_group(SPACE, name, SIZE, phase="Pending"))
        await create(self.client, *(gang_pod(SPACE, f"{name}-{i}", name) for i in range(SIZE)))

    async def _pods(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.client.get(PODS.namespace_path(SPACE)))["items"]
        return found

    async def _bound(self, gangs: tuple[str, ...]) -> bool:
        pods = await self._pods()
        return any(p["spec"].get("nodeName") and p["metadata"]["name"].split("-")[0] in gangs for p in pods)

    async def _all_bound(self) -> bool:
        return all(pod["spec"].get("nodeName") for pod in await self._pods())

    async def figures(self) -> dict[str, Any]:
        pods = await self._pods()
        told: dict[str, set[str]] = defaultdict(set)
        for event in (await self.client.get(EVENTS.namespace_path(SPACE)))["items"]:
            if event["reason"] == "Scheduled":
                told[event["involvedObject"]["name"]].add(event["message"])
        ordered = sorted(self.seconds)
        return {
            "rounds": len(ordered),
            "lease_s": LEASE_S,
            "leaderless_s": {"p50": round(ordered[len(ordered) // 2], 2), "max": round(ordered[-1], 2)},
            "pods": len(pods),
            "not_bound": sum(not pod["spec"].get("nodeName") for pod in pods),
            "bound_twice": sum(
                pod["metadata"]["name"] in told and len(told[pod["metadata"]["name"]]) > 1 for pod in pods
            ),
            "fullest_node": max(Counter(pod["spec"].get("nodeName") for pod in pods).values()),
            "node_holds": NODE_CPU,
        }


async def measure(rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name, kube.running(find_assets(), Path(name)) as server:
        async with Client(bearer(server.url, server.token(), server.ssl_context())) as client:
            await install_crds(client)
            queue = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": "default"}}
            await client.post(QUEUES.list_path, {**queue, "spec": {"weight": 1}})
            for number in range(NODE_COUNT):
                await client.post(NODES.list_path, node(f"n{number}", str(NODE_CPU)))
            with ExitStack() as stack:
                made = Rounds(client, server, Path(name), stack)
                await made.run(rounds)
                return await made.figures()


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.kube_failover", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    found = asyncio.run(measure(parser.parse_args(words).rounds))
    print(json.dumps(found, indent=2))
    good = found["leaderless_s"]["max"] <= LEASE_S + 1 and not found["not_bound"] and not found["bound_twice"]
    return 0 if good and found["fullest_node"] <= NODE_CPU else 1


if __name__ == "__main__":
    sys.exit(main())
