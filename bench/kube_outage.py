"""``python -m bench.kube_outage``: how soon a gang is bound after the API server was killed and came back.

``pumice run`` with default flags, as a user that has the roles which are shipped and no other right. Each round kills
the API server (-9), lets it be for ``--down`` seconds and starts it again; when it says that it is ready, a gang of
three is created, and the seconds are taken until its last pod is bound. A scheduler that ends is started anew at
once, as a kubelet does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import yaml

from bench.kube_bind import serving, whole
from bench.kube_latency import Heard, client_of, prepare
from pumice.kube.api.client import Client
from pumice.kube.api.kinds import POD_GROUPS, PODS
from tests.kube.objects import CRDS
from tests.kube.running import Running, running
from tests.kube.scheduling import gang_pod, pod_group
from tests.kube.server import ApiServer
from tests.kube.waiting import until

SPACE, SIZE = "volcano-system", 3
LIMIT_S = 10.0


async def grant(client: Client, user: str) -> None:
    """The roles of ``deploy/base`` for this user."""
    await client.post("/api/v1/namespaces", {"metadata": {"name": SPACE}})
    for obj in yaml.safe_load_all((CRDS.parent / "base" / "rbac.yaml").read_text()):
        kind = obj["kind"]
        if "subjects" in obj:
            obj["subjects"] = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]
        within = "" if kind.startswith("Cluster") else f"namespaces/{SPACE}/"
        await client.post(f"/apis/rbac.authorization.k8s.io/v1/{within}{kind.lower()}s", obj)


class Rounds:
    """One server and one scheduler on it. ``started`` counts how often the scheduler was."""

    def __init__(self, server: ApiServer, client: Client, heard: Heard, stack: ExitStack) -> None:
        self.seconds: list[float] = []
        self.started = 0
        self._server, self._client, self._heard, self._stack = server, client, heard, stack
        self._scheduler = self._start()

    def _start(self) -> Running:
        self.started += 1
        config = self._server.kubeconfig("scheduler")
        return self._stack.enter_context(running(self._server.folder, config, default_lease=True))

    async def run(self, count: int, down_s: float) -> None:
        await self._scheduler.says(" leads: ")
        await self._bound("first")
        for number in range(count):
            self._server.stop_api(kill=True)
            await self._wait(down_s)
            starting = asyncio.create_task(asyncio.to_thread(self._server.start_api))
            while not starting.done():
                await self._wait(0.05)
            starting.result()
            began = time.perf_counter()
            await self._bound(f"round-{number}")
            self.seconds.append(time.perf_counter() - began)
            print(f"round {number + 1}: {self.seconds[-1]:.2f} s", file=sys.stderr, flush=True)

    async def _wait(self, seconds: float) -> None:
        """Let time pass, with a scheduler that is started anew where it has ended."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            self._revive()
            await asyncio.sleep(0.05)

    def _revive(self) -> bool:
        if self._scheduler.process.poll() is not None:
            self._scheduler = self._start()
        return True

    async def _bound(self, name: str) -> None:
        """Create a gang, and wait until it is heard to be bound."""
        await self._client.post(POD_GROUPS.namespace_path(SPACE), pod_group(SPACE, name, SIZE, phase="Pending"))
        for index in range(SIZE):
            await self._client.post(PODS.namespace_path(SPACE), gang_pod(SPACE, f"{name}-{index}", name))
        wanted = {f"{SPACE}/{name}-{index}" for index in range(SIZE)}
        await until(lambda: self._revive() and wanted <= self._heard.bound.keys(), 300.0, f"{name} is not bound")


async def measure(rounds: int, down_s: float, nodes: int) -> dict[str, Any]:
    with serving() as server, ExitStack() as stack:
        async with client_of(server) as client:
            await prepare(client, nodes)
            await grant(client, "scheduler")
            heard = Heard(client)
            async with heard.listening():
                made = Rounds(server, client, heard, stack)
                await made.run(rounds, down_s)
    ordered = sorted(made.seconds)
    return {
        "rounds": rounds,
        "down_s": down_s,
        "nodes": nodes,
        "ready_to_bound_s": {"p50": round(ordered[len(ordered) // 2], 2), "max": round(ordered[-1], 2)},
        "scheduler_started": made.started,
    }


def main(words: Sequence[str] | None = None) -> int:
    """0: every gang was bound within the limit; 1: one was not."""
    parser = argparse.ArgumentParser("python -m bench.kube_outage", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="default %(default)s")
    parser.add_argument("--down", type=float, default=7.0, metavar="S", help="default %(default)s")
    parser.add_argument("--nodes", type=int, default=100, help="default %(default)s")
    options = parser.parse_args(words)
    found = whole(measure(options.rounds, options.down, options.nodes))
    print(json.dumps(found, indent=2))
    return int(found["ready_to_bound_s"]["max"] > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
