"""``python -m bench.kube_first_decision``: how soon ``pumice run`` decides where a backlog waits.

A real API server is filled with nodes, and with pods in gangs of ten that wait, over many namespaces. Then ``pumice
run`` is started with default flags; measured are the seconds from the start of the process until it has listed
everything, until it leads, until its first cycle is over, and until a watch of another client first shows a pod with a
node.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from bench.kube_bind import each, serving, whole
from bench.kube_latency import GANG, SPACE, Heard, client_of, prepare, scheduler
from pumice.kube.api.client import Client
from pumice.kube.api.kinds import LEASES, NAMESPACES, POD_GROUPS, PODS
from tests.kube.scheduling import gang_pod, pod_group
from tests.kube.server import ApiServer
from tests.kube.waiting import until

LIMIT_S = 5.0
_AT_ONCE = 16


class Backlog:
    """So many pods in gangs of ten, and the gangs in so many namespaces by turns."""

    def __init__(self, client: Client, pods: int, namespaces: int) -> None:
        self._client, self._gangs = client, pods // GANG
        self._names = [f"team-{number:03}" for number in range(namespaces)]

    async def name_spaces(self) -> None:
        make = self._client.post
        await each(_AT_ONCE, self._names, lambda name: make(NAMESPACES.list_path, {"metadata": {"name": name}}))

    async def create(self) -> None:
        await each(_AT_ONCE, range(self._gangs), self._gang)

    async def delete(self) -> None:
        for kind in (PODS, POD_GROUPS):
            paths = [kind.namespace_path(name) for name in self._names]
            await each(_AT_ONCE, paths, self._delete)

    async def _gang(self, number: int) -> None:
        space, name = self._names[number % len(self._names)], f"g{number:05}"
        await self._client.post(POD_GROUPS.namespace_path(space), pod_group(space, name, GANG, phase="Pending"))
        for index in range(GANG):
            await self._client.post(PODS.namespace_path(space), gang_pod(space, f"{name}-{index}", name))

    async def _delete(self, path: str) -> None:
        await self._client.request("DELETE", path, params={"gracePeriodSeconds": "0"}, timeout_s=300)


async def start(server: ApiServer, client: Client, *flags: str) -> dict[str, float]:
    """One start, until something is bound; then it is killed."""
    heard = Heard(client)
    async with heard.listening():
        known = len(heard.bound)
        began, began_at = time.perf_counter(), time.time()
        with scheduler(server, server.folder, *flags, default_lease=True) as started:
            await until(lambda: len(heard.bound) > known, 120.0, started.text)
            bound = time.perf_counter() - began
            peak_mb = memory_mb(started.process.pid)
            cycle = await started.says("cycle 1: ")
            steps = {"synced_s": await started.says("synced: "), "leads_s": await started.says(" leads: ")}
    found = {name: _at(entry) - began_at for name, entry in {**steps, "first_cycle_s": cycle}.items()}
    return {**found, "first_bound_s": bound, "decided": float(cycle["to_bind"]), "peak_mb": peak_mb}


def memory_mb(pid: int) -> float:
    """The most that a process had resident so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) / 1024


def _at(entry: dict[str, Any]) -> float:
    return datetime.fromisoformat(entry["time"]).timestamp()


async def measure(pods: int, nodes: int, namespaces: int, runs: int, flags: Sequence[str]) -> dict[str, Any]:
    with serving() as server:
        async with client_of(server) as client:
            await prepare(client, nodes)
            backlog, found = Backlog(client, pods, namespaces), []
            await backlog.name_spaces()
            for _ in range(runs):
                await backlog.create()
                found.append(await start(server, client, *flags))
                print(json.dumps(found[-1]), file=sys.stderr, flush=True)
                await client.delete(LEASES.path(f"{SPACE}/volcano"))  # it was killed, so the lease is not released
                await backlog.delete()
    told = {key: round(median(each[key] for each in found), 2) for key in found[0]}
    return {"pods": pods, "nodes": nodes, "namespaces": namespaces, "runs": runs, **told}


def main(words: Sequence[str] | None = None) -> int:
    """0: of the median start a decision was seen within the limit; 1: it was not."""
    parser = argparse.ArgumentParser("python -m bench.kube_first_decision", description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000, help="default %(default)s")
    parser.add_argument("--nodes", type=int, default=1_000, help="default %(default)s")
    parser.add_argument("--namespaces", type=int, default=200, help="default %(default)s")
    parser.add_argument("--runs", type=int, default=3, help="default %(default)s")
    parser.add_argument(
        "--flag", action="append", default=[], help="one more for pumice run, such as --controllers=auto"
    )
    options = parser.parse_args(words)
    found = whole(measure(options.pods, options.nodes, options.namespaces, options.runs, options.flag))
    print(json.dumps(found, indent=2))
    return int(found["first_bound_s"] > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
