"""``python -m bench.kube_gang``: how long a gang of three waits on an idle cluster, and what idling costs.

``pumice run`` with default flags on a real API server. First nothing happens for a while: measured is the processor
time of the scheduler's process by the clock. Then gangs are created one by one, with pauses of half a second to one
and a half (by a fixed seed), so that they meet every moment of the schedule period. A gang's time begins when the
request that creates its PodGroup is sent and ends when a watch that is not the scheduler's own shows its last pod with
a node.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.kube_bind import serving, whole
from bench.kube_latency import SPACE, Heard, client_of, prepare, scheduler
from pumice.kube.api.client import Client
from pumice.kube.api.kinds import POD_GROUPS, PODS
from tests.kube.scheduling import gang_pod, pod_group
from tests.kube.waiting import until

SIZE = 3
P50_S, P99_S, IDLE_SHARE = 0.2, 0.4, 0.01  # what must be reached
_SETTLE_S = 5.0


def cpu_s(pid: int) -> float:
    """Processor seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def idle_share(pid: int, seconds: float) -> float:
    """The processor time that it takes while nothing happens, as a share of the time that passes."""
    began, spent = time.monotonic(), cpu_s(pid)
    await asyncio.sleep(seconds)
    return (cpu_s(pid) - spent) / (time.monotonic() - began)


async def gang(client: Client, heard: Heard, name: str) -> float:
    """Create one; seconds until it is bound."""
    keys = [f"{SPACE}/{name}-{index}" for index in range(SIZE)]
    began = time.perf_counter()
    await client.post(POD_GROUPS.namespace_path(SPACE), pod_group(SPACE, name, SIZE, phase="Pending"))
    for index in range(SIZE):
        await client.post(PODS.namespace_path(SPACE), gang_pod(SPACE, f"{name}-{index}", name))
    await until(lambda: all(key in heard.bound for key in keys), 60.0, f"{name} is not bound")
    return max(heard.bound[key] for key in keys) - began


async def measure(gangs: int, nodes: int, idle_s: float) -> dict[str, Any]:
    with serving() as server:
        async with client_of(server) as client:
            await prepare(client, nodes)
            heard, dice = Heard(client), random.Random(1)
            with scheduler(server, server.folder, default_lease=True) as started:
                async with heard.listening():
                    await started.says("synced: ")
                    await asyncio.sleep(_SETTLE_S)
                    share = await idle_share(started.process.pid, idle_s)
                    waited = []
                    for number in range(gangs):
                        await asyncio.sleep(0.5 + dice.random())
                        waited.append(await gang(client, heard, f"g{number:05}"))
    waited.sort()
    return {
        "gangs": gangs,
        "nodes": nodes,
        "creation_to_bound_s": {
            "p50": round(waited[len(waited) // 2], 3),
            "p99": round(waited[int(0.99 * len(waited))], 3),
            "max": round(waited[-1], 3),
        },
        "idle_cpu_share": round(share, 4),
    }


def main(words: Sequence[str] | None = None) -> int:
    """0: p50, p99 and the idle share are within their limits; 1: one is not."""
    parser = argparse.ArgumentParser("python -m bench.kube_gang", description=__doc__)
    parser.add_argument("--gangs", type=int, default=200, help="default %(default)s")
    parser.add_argument("--nodes", type=int, default=1_000, help="default %(default)s")
    parser.add_argument("--idle", type=float, default=60.0, metavar="S", help="default %(default)s")
    options = parser.parse_args(words)
    found = whole(measure(options.gangs, options.nodes, options.idle))
    print(json.dumps(found, indent=2))
    waited = found["creation_to_bound_s"]
    return int(waited["p50"] > P50_S or waited["p99"] > P99_S or found["idle_cpu_share"] > IDLE_SHARE)


if __name__ == "__main__":
    sys.exit(main())
