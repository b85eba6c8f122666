"""``python -m bench.kube_latency``: how long a pod waits from its creation until its binding is heard of.

Gangs are created on a real API server with ``pumice run`` at work beside it. A pod's time begins when the request that
creates it is sent, and ends when a watch that is not the scheduler's own tells the pod with its node. With ``--rate``
pods come at that pace; without it as fast as the server takes them, and most of the time is spent in the queue.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from bench.kube_bind import each, serving, whole
from pumice.kube.api.access import bearer
from pumice.kube.api.client import Client
from pumice.kube.api.codec import Codec
from pumice.kube.api.kinds import NODES, POD_GROUPS, PODS, QUEUES
from pumice.kube.informers.reflector import Reflector
from pumice.model.events import Event, Seen
from pumice.model.manifest import Decoder
from pumice.model.pod import Pod
from tests.kube.objects import install_crds, node
from tests.kube.running import Running, running
from tests.kube.scheduling import gang_pod, pod_group
from tests.kube.server import ApiServer
from tests.kube.waiting import happens, until

SPACE, GANG = "default", 10
GANGS_AT_ONCE = 8
PATIENCE_S = 600.0


class Heard:
    """Which pods are bound, by key, and since when by time.perf_counter."""

    def __init__(self, client: Client) -> None:
        self.bound: dict[str, float] = {}
        self._reflector = Reflector(client, PODS, Codec(PODS, Decoder()), self._take, Pod)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._reflector.run())
        try:
            await happens(self._reflector.synced)
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def _take(self, events: list[Event]) -> None:
        now = time.perf_counter()
        for event in events:
            match event:
                case Seen(Pod() as pod) if pod.node_name:
                    self.bound.setdefault(pod.key, now)


def client_of(server: ApiServer) -> Client:
    return Client(bearer(server.url, server.token(), server.ssl_context()))


async def prepare(client: Client, nodes: int) -> None:
    """The project's CRDs, a queue, and so many nodes."""
    await install_crds(client)
    queue = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": "default"}, "spec": {"weight": 1}}
    await client.post(QUEUES.list_path, queue)
    await each(32, [f"n{i}" for i in range(nodes)], lambda name: client.post(NODES.list_path, node(name)))


@contextmanager
def scheduler(server: ApiServer, folder: Path, *flags: str, default_lease: bool = False) -> Iterator[Running]:
    """``pumice run`` as the only one on this server."""
    lease = f"--leader-elect-resource-namespace={SPACE}"
    with running(folder, server.kubeconfig(), lease, *flags, default_lease=default_lease) as started:
        yield started


async def create_gangs(client: Client, gangs: int, rate: float) -> dict[str, float]:
    """Create them; when each pod was sent, by key. ``rate``: pods a second, 0 as fast as the server takes them."""
    sent: dict[str, float] = {}
    began = time.perf_counter()

    async def gang(number: int) -> None:
        if rate:
            await asyncio.sleep(max(0.0, began + number * GANG / rate - time.perf_counter()))
        name = f"g{number:05}"
        await client.post(POD_GROUPS.namespace_path(SPACE), pod_group(SPACE, name, GANG, phase="Pending"))
        for index in range(GANG):
            sent[f"{SPACE}/{name}-{index}"] = time.perf_counter()
            await client.post(PODS.namespace_path(SPACE), gang_pod(SPACE, f"{name}-{index}", name))

    await each(GANGS_AT_ONCE, range(gangs), gang)
    return sent


async def measure(pods: int, nodes: int, rate: float) -> dict[str, Any]:
    with serving() as server:
        async with client_of(server) as client:
            return await _measure(server, client, pods, nodes, rate)


async def _measure(server: ApiServer, client: Client, pods: int, nodes: int, rate: float) -> dict[str, Any]:
    await prepare(client, nodes)
    heard = Heard(client)
    with scheduler(server, server.folder) as started:
        async with heard.listening():
            await started.says(" leads: ")
            sent = await create_gangs(client, pods // GANG, rate)
            created = time.perf_counter()
            await until(lambda: len(heard.bound) == len(sent), PATIENCE_S, "not every pod was bound")
    began, ended = min(sent.values()), max(heard.bound.values())
    waited = sorted(heard.bound[key] - sent[key] for key in sent)
    return {
        "pods": len(sent),
        "nodes": nodes,
        "created_per_s": round(len(sent) / (created - began)),
        "bound_per_s": round(len(sent) / (ended - began)),
        "creation_to_bound_s": {
            "p50": round(waited[len(waited) // 2], 3),
            "p99": round(waited[int(0.99 * len(waited))], 3),
            "max": round(waited[-1], 3),
        },
    }


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m bench.kube_latency", description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000, help="in gangs of ten (default %(default)s)")
    parser.add_argument("--nodes", type=int, default=1_000, help="default %(default)s")
    parser.add_argument("--rate", type=float, default=0.0, help="pods a second; 0: as fast as the server takes them")
    options = parser.parse_args(words)
    found = whole(measure(options.pods, options.nodes, options.rate))
    print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
