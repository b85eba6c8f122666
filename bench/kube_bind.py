"""``python -m bench.kube_bind``: bindings a second through the pipeline, against a bare binding client at its best.

Both bind fresh pods on one API server, in the same run, one after the other and in turns. The bare client posts
bindings and does nothing else, with the number of connections that is best for it. The pipeline does all of its work:
it watches the pods that it binds, hears each binding confirmed, and tells an event a pod (which go after the binds; the
seconds until the last one is written are given beside). With ``--load`` so many other processes want a processor all
the while, for both ways alike.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from pumice.kube.api.access import bearer
from pumice.kube.api.client import Client
from pumice.kube.api.codec import Codec
from pumice.kube.api.kinds import NODES, PODS, Kind
from pumice.kube.informers.reflector import Reflector
from pumice.kube.scheduler.cluster import KubeCluster
from pumice.kube.writers.writing import Timers
from pumice.model.decisions import Bind
from pumice.model.manifest import Decoder
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.runtime.memory import leave_old_objects_alone
from tests.kube.objects import node, pod
from tests.kube.server import ApiServer, find_assets, running
from tests.tied import tied

CONNECTIONS = (8, 16, 32, 64)
GANG = 10
WAYS = ("bare", "pipeline")

T = TypeVar("T")


@contextmanager
def serving() -> Iterator[ApiServer]:
    """A server in a folder of its own, for the task that asks. SIGTERM cancels that task: nothing is left running."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with tempfile.TemporaryDirectory() as folder, running(find_assets(), Path(folder)) as server:
        yield server


def whole(work: Coroutine[Any, Any, T]) -> T:
    """What it answers; where SIGTERM cancelled it, this process ends as SIGTERM ends one."""
    try:
        return asyncio.run(work)
    except asyncio.CancelledError:
        sys.exit(128 + signal.SIGTERM)


@dataclass(slots=True)
class Leg:
    """One way to bind so many pods, and the CPU seconds that it cost this process and the server's."""

    name: str
    pods: int
    seconds: float = 0.0
    client_s: float = 0.0
    server_s: float = 0.0
    latencies: list[float] = field(default_factory=list)
    events_s: float = 0.0

    @property
    def rate(self) -> float:
        return self.pods / self.seconds

    @property
    def cpu_ms(self) -> float:
        """What one binding costs in all."""
        return 1000 * (self.client_s + self.server_s) / self.pods

    @property
    def client_ms(self) -> float:
        """What one binding costs this process."""
        return 1000 * self.client_s / self.pods

    def latency_ms(self, share: float) -> float:
        """How long a request took, at this share of all of them."""
        found = sorted(self.latencies)
        return 1000 * found[min(int(share * len(found)), len(found) - 1)]


class Bench:
    """One server's worth of legs. Each makes pods of its own, and deletes them."""

    def __init__(self, server: ApiServer, pods: int, nodes: int) -> None:
        self.access = bearer(server.url, server.token(), server.ssl_context())
        self.pods, self.nodes = pods, nodes
        self._pids = [server.pid(name) for name in ("kube-apiserver", "etcd")]
        self._legs = 0

    async def prepare(self) -> None:
        async with Client(self.access) as client:
            await each(32, [f"n{i}" for i in range(self.nodes)], lambda name: client.post(NODES.list_path, node(name)))

    async def bare(self, connections: int) -> Leg:
        """Post bindings, so many at once."""
        async with Client(self.access, connections_max=connections) as client:
            namespace, names = await self._make(client)
            latencies: list[float] = []

            async def bind(number_and_name: tuple[int, str]) -> None:
                number, name = number_and_name
                target = {"apiVersion": "v1", "kind": "Node", "name": f"n{number % self.nodes}"}
                body = {"metadata": {"namespace": namespace, "name": name}, "target": target}
                began = time.perf_counter()
                await client.post(PODS.path(f"{namespace}/{name}", "binding"), body)
                latencies.append(time.perf_counter() - began)

            leg = Leg(f"bare, {connections} connections", len(names), latencies=latencies)
            with self._timing(leg):
                await each(connections, list(enumerate(names)), bind)
            await self._clear(client, namespace)
            return leg

    async def pipeline(self) -> Leg:
        """Hand all binds over as a cycle does, from a thread, and wait until each is heard to have happened."""
        latencies: list[float] = []
        async with Client(self.access) as client:
            namespace, names = await self._make(client)
            cluster = KubeCluster(client, timers=Timers(lambda stage, seconds: latencies.append(seconds)))
            decoder = Decoder()
            tasks = [asyncio.create_task(cluster.run())]
            for kind, value in ((PODS, Pod), (NODES, Node)):
                reflector = _reflector(client, kind, value, decoder, cluster)
                tasks.append(asyncio.create_task(reflector.run()))
                await reflector.synced.wait()
            cluster.drain()
            leave_old_objects_alone()  # as a scheduler does at this point
            leg = Leg("pipeline", len(names), latencies=latencies)
            began = time.perf_counter()
            with self._timing(leg):
                await asyncio.to_thread(self._hand_over, cluster, namespace, names)
                while cluster.binds.left or len(cluster.in_flight):
                    await cluster.binds.empty()
                    await asyncio.sleep(0.001)
            await cluster.flush(120)
            leg.events_s = time.perf_counter() - began
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError):
                    await task
            await self._clear(client, namespace)
            return leg

    def _hand_over(self, cluster: KubeCluster, namespace: str, names: list[str]) -> None:
        for number, name in enumerate(names):
            known = cluster.cache.pods[f"{namespace}/{name}"]
            refusal = cluster.bind(
                Bind(known.key, known.uid, f"n{number % self.nodes}", f"{namespace}/g{number // GANG}")
            )
            assert refusal is None, refusal

    @contextmanager
    def _timing(self, leg: Leg) -> Iterator[None]:
        began, client, server = time.perf_counter(), time.process_time(), self._server_s()
        yield
        leg.seconds = time.perf_counter() - began
        leg.client_s, leg.server_s = time.process_time() - client, self._server_s() - server

    def _server_s(self) -> float:
        """CPU seconds of the server's processes so far."""
        ticks = 0
        for pid in self._pids:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    async def _make(self, client: Client) -> tuple[str, list[str]]:
        self._legs += 1
        namespace, names = f"leg-{self._legs}", [f"p{i:05}" for i in range(self.pods)]
        await client.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        path = PODS.namespace_path(namespace)
        await each(32, names, lambda name: client.post(path, pod(namespace, name)))
        return namespace, names

    async def _clear(self, client: Client, namespace: str) -> None:
        await client.request(
            "DELETE", PODS.namespace_path(namespace), params={"gracePeriodSeconds": "0"}, timeout_s=300
        )


def _reflector(client: Client, kind: Kind, value: Any, decoder: Decoder, cluster: KubeCluster) -> Reflector:
    return Reflector(client, kind, Codec(kind, decoder), cluster.sink, value)


async def each(at_once: int, items: Sequence[Any], do: Any) -> None:
    """Do it with each item, so many at a time."""
    left = iter(items)

    async def work() -> None:
        for item in left:
            await do(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(work())


async def measure(pods: int, nodes: int, rounds: int) -> tuple[list[Leg], list[Leg]]:
    """(bare, pipeline) on one server."""
    with serving() as server:
        return await _legs(Bench(server, pods, nodes), rounds)


async def _legs(bench: Bench, rounds: int) -> tuple[list[Leg], list[Leg]]:
    """First the best number of connections, then both in turns, since a machine's speed drifts."""
    leave_old_objects_alone()  # for both ways: a scheduler has done so long since
    await bench.prepare()
    await bench.bare(CONNECTIONS[0])  # warms the server up
    sweep = {connections: await bench.bare(connections) for connections in CONNECTIONS}
    for leg in sweep.values():
        _say(leg)
    best = max(sweep, key=lambda connections: sweep[connections].rate)
    bare, pipeline = [], []
    for _ in range(rounds):
        bare.append(await bench.bare(best))
        _say(bare[-1])
        pipeline.append(await bench.pipeline())
        _say(pipeline[-1])
    return bare, pipeline


def summary(bare: list[Leg], pipeline: list[Leg]) -> dict[str, Any]:
    """Medians of both, and the share of the bare client that the pipeline reaches: by the clock, and by CPU seconds."""

    def both(of: Callable[[Leg], float]) -> tuple[float, float]:
        return median(map(of, bare)), median(map(of, pipeline))

    rates, costs = both(lambda leg: leg.rate), both(lambda leg: leg.cpu_ms)
    return {
        "bare": bare[0].name,
        "bindings_per_s": dict(zip(WAYS, map(round, rates), strict=True)),
        "share": round(rates[1] / rates[0], 3),
        "cpu_ms_per_bind": dict(zip(WAYS, (round(cost, 2) for cost in costs), strict=True)),
        "share_by_cpu": round(costs[0] / costs[1], 3),
        "client_cpu_ms_per_bind": dict(
            zip(WAYS, (round(ms, 2) for ms in both(lambda leg: leg.client_ms)), strict=True)
        ),
        "request_p50_ms": dict(zip(WAYS, (round(ms, 1) for ms in both(lambda leg: leg.latency_ms(0.5))), strict=True)),
        "request_p99_ms": dict(zip(WAYS, (round(ms, 1) for ms in both(lambda leg: leg.latency_ms(0.99))), strict=True)),
        "pipeline_events_written_after_s": round(median(leg.events_s for leg in pipeline), 2),
    }


@contextmanager
def other_load(processes: int) -> Iterator[None]:
    """So many processes that do nothing but count."""
    with ExitStack() as stack:
        for _ in range(processes):
            busy = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.enter_context(tied(busy))
        yield


def _say(leg: Leg) -> None:
    told = f"{leg.name}: {leg.rate:.0f}/s, p50 {leg.latency_ms(0.5):.1f} ms, CPU {leg.cpu_ms:.2f} ms each"
    print(told, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """0: the pipeline reached ``--must`` of the best bare client; 1: it did not."""
    parser = argparse.ArgumentParser("python -m bench.kube_bind", description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000, help="pods of each leg (default %(default)s)")
    parser.add_argument("--nodes", type=int, default=1_000, help="default %(default)s")
    parser.add_argument("--rounds", type=int, default=5, help="how often each way is measured (default %(default)s)")
    parser.add_argument("--load", type=int, default=0, help="processes that want a processor (default %(default)s)")
    parser.add_argument("--must", type=float, default=0.9, help="share that must be reached (default %(default)s)")
    options = parser.parse_args(arguments)
    with other_load(options.load):
        found = summary(*whole(measure(options.pods, options.nodes, options.rounds)))
    given = {"pods": options.pods, "nodes": options.nodes, "load": options.load}
    print(json.dumps({**given, **found}, indent=2))
    return int(found["share"] < options.must)


if __name__ == "__main__":
    sys.exit(main())
