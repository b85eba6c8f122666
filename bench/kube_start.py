"""``python -m bench.kube_start``: what it costs a new scheduler to come to its first cycle on a real API server.

A server is filled with pods in gangs of ten, and nodes. Then a process of its own reads a kubeconfig, follows every
kind into the store, passes the barrier and runs one cycle. Measured are the CPU seconds and the peak memory of that
whole process, after its imports, at the barrier with a snapshot taken, and after the cycle.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

GANG = 10


def start(kubeconfig: str) -> dict[str, float]:
    """Come up as a scheduler does; answer what it cost. Imports are here because they are part of it."""
    from pumice.cycle import run_cycle
    from pumice.kube.api.client import Client
    from pumice.kube.api.credentials import find_access
    from pumice.kube.informers.all_kinds import InformerSet
    from pumice.runtime.loop import ListPlanner
    from pumice.runtime.policy.conf import policy_of
    from pumice.state.store import Store
    from pumice.volcano.table import DEFAULT_CONF, volcano_registry

    def sink(events: list[Any]) -> None:
        for event in events:
            store.apply(event)

    async def follow() -> None:
        async with Client(await find_access(kubeconfig)) as client:
            following = InformerSet(client, sink)
            task = asyncio.create_task(following.run())
            await asyncio.wait_for(following.synced(), 120)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    policy = policy_of(DEFAULT_CONF, volcano_registry())
    store = Store()
    imported = _spent()
    asyncio.run(follow())
    snapshot = store.snapshot()
    listed = _spent()
    planner = ListPlanner()
    run_cycle(snapshot, policy, time.time(), planner)
    cycled = _spent()
    return {
        "imports_cpu_s": imported[0],
        "list_and_decode_cpu_s": round(listed[0] - imported[0], 3),
        "to_first_cycle_cpu_s": listed[0],
        "to_first_cycle_peak_mb": listed[1],
        "after_cycle_cpu_s": cycled[0],
        "after_cycle_peak_mb": cycled[1],
        "bound": len(planner.taken),
    }


def _spent() -> tuple[float, float]:
    """CPU seconds so far, and peak MB."""
    return round(time.process_time(), 3), round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


async def fill(server: Any, pods: int, nodes: int) -> None:
    """Nodes, a PodGroup for every ten pods, and the pods, with what an API server adds to each."""
    from pumice.kube.api.access import bearer
    from pumice.kube.api.client import Client
    from pumice.kube.api.kinds import POD_GROUPS, QUEUES
    from tests.kube.objects import create, install_crds, node, pod

    async with Client(bearer(server.url, server.token(), server.ssl_context())) as client:
        await install_crds(client)
        await client.post("/api/v1/namespaces", {"metadata": {"name": "it"}})
        queue = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": "default"}}
        await client.post(QUEUES.list_path, {**queue, "spec": {"weight": 1}})
        for first in range(0, nodes, 100):
            await create(client, *(node(f"n{i}") for i in range(first, min(first + 100, nodes))))
        for first in range(0, pods, 100):
            for number in range(first // GANG, (first + 100) // GANG):
                group = {"metadata": {"name": f"g{number}"}, "spec": {"minMember": GANG, "queue": "default"}}
                head = {"apiVersion": POD_GROUPS.api_version, "kind": "PodGroup"}
                await client.post(POD_GROUPS.namespace_path("it"), head | group)
            batch = [pod("it", f"p{i}") for i in range(first, min(first + 100, pods))]
            for number, each in enumerate(batch, first):
                each["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": f"g{number // GANG}"}
            await create(client, *batch)


def measure(pods: int, nodes: int, runs: int) -> list[dict[str, float]]:
    from tests.kube.server import find_assets, running

    with tempfile.TemporaryDirectory() as folder, running(find_assets(), Path(folder)) as server:
        asyncio.run(fill(server, pods, nodes))
        command = [sys.executable, "-m", "bench.kube_start", "--child", str(server.kubeconfig())]
        done = [subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=300) for _ in range(runs)]
        return [json.loads(each.stdout) for each in done]


def main(arguments: Sequence[str] | None = None) -> int:
    """0: the median run kept to both limits before its first cycle; 1: it did not."""
    parser = argparse.ArgumentParser("python -m bench.kube_start", description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000, help="default %(default)s")
    parser.add_argument("--nodes", type=int, default=1_000, help="default %(default)s")
    parser.add_argument("--runs", type=int, default=5, help="default %(default)s")
    parser.add_argument("--cpu-s", type=float, default=2.0, help="limit (default %(default)s)")
    parser.add_argument("--peak-mb", type=float, default=200.0, help="limit (default %(default)s)")
    parser.add_argument("--child", metavar="KUBECONFIG", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(start(options.child)))
        return 0
    runs = measure(options.pods, options.nodes, options.runs)
    found = {key: median(run[key] for run in runs) for key in runs[0]}
    print(json.dumps({"pods": options.pods, "nodes": options.nodes, "runs": len(runs), **found}, indent=2))
    return int(found["list_and_decode_cpu_s"] > options.cpu_s or found["to_first_cycle_peak_mb"] > options.peak_mb)


if __name__ == "__main__":
    sys.exit(main())
