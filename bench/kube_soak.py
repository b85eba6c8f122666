"""``python -m bench.kube_soak``: whether the memory of ``pumice run`` stays where it is while gangs come and go.

A real API server with a scheduler beside it, as users start it. Gangs are created at a steady pace, bound, and deleted
once so many younger ones are there; each tenth is too large for any node, waits and is deleted as it is. Queues come
and go, the weight of one changes, and the conf is rewritten, all at their own steps. Every few seconds the resident
memory of the scheduler's process is read from ``/proc``; its slope is measured over the run after a warm-up.

The warm-up is counted in pods: what a scheduler remembers of events that it wrote is bounded in number and fills first.
Each pod carries a ballast of its own in an annotation, so that a pod that is kept anywhere weighs more than the noise.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from statistics import linear_regression
from typing import Any

from msgspec import Struct

from bench.kube_bind import serving, whole
from bench.kube_latency import GANG, SPACE, Heard, client_of, prepare, scheduler
from pumice.kube.api.client import Client
from pumice.kube.api.kinds import POD_GROUPS, PODS, QUEUES
from tests.kube.running import Running
from tests.kube.scheduling import gang_pod, pod_group
from tests.kube.server import ApiServer
from tests.kube.waiting import until

NODE_COUNT = 50
STAYING = 20  # gangs that are there at a time
TOO_LARGE_EVERY = 10
CHANGE_EVERY = 50  # gangs; more than STAYING, so that a queue is empty one change after the next one came
BALLAST_BYTES = 8192
CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}]
- plugins: [{{name: predicates}}, {{name: proportion}}, {{name: {scorer}}}]
"""
SCORERS = ("nodeorder", "binpack")


class Sample(Struct, frozen=True):
    """The scheduler's resident memory, after so many seconds and bound pods."""

    seconds: float
    pods: int
    rss_mb: float


class Gang(Struct, frozen=True):
    name: str
    keys: frozenset[str]
    fits: bool


class Churn:
    """Gangs in, gangs out. ``conf`` is the file that the scheduler reads; ``rate``: pods a second, at most."""

    def __init__(self, client: Client, heard: Heard, started: Running, conf: Path, rate: float, every_s: float) -> None:
        self.samples: list[Sample] = []
        self.lost = self.withdrawn = self.changes = 0
        self._client, self._heard, self._scheduler, self._conf = client, heard, started, conf
        self._rate, self._every_s = rate, every_s
        self._began = time.monotonic()

    async def run(self, enough: Callable[[float, int], bool]) -> None:
        """Until ``enough`` of (seconds, bound pods); then every gang that fits must still come to its nodes."""
        staying: deque[Gang] = deque()
        for number in count():
            self._sample()
            if enough(self._seconds, len(self._heard.bound)):
                break
            await asyncio.sleep(max(0.0, number * GANG / self._rate - self._seconds))
            if number % CHANGE_EVERY == 0:
                await self._change()
            staying.append(await self._create(number))
            if len(staying) > STAYING:
                await self._delete(staying.popleft())
        while staying:
            await self._delete(staying.popleft())

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def _sample(self) -> None:
        if self.samples and self._seconds - self.samples[-1].seconds < self._every_s:
            return
        if self._scheduler.process.poll() is not None:
            raise RuntimeError(f"the scheduler has ended: {self._scheduler.text[-2000:]}")
        rss_mb = _resident_bytes(self._scheduler.process.pid) / 1e6
        self.samples.append(Sample(self._seconds, len(self._heard.bound), rss_mb))

    async def _create(self, number: int) -> Gang:
        name, fits = f"g{number}", number % TOO_LARGE_EVERY != TOO_LARGE_EVERY - 1
        group = pod_group(SPACE, name, GANG, phase="Pending")
        group["spec"]["queue"] = self._queue(self.changes) if number % 2 else "default"
        pods = [gang_pod(SPACE, f"{name}-{index}", name) for index in range(GANG)]
        for pod in pods:
            pod["metadata"]["labels"]["gang"] = name
            pod["metadata"]["annotations"]["ballast"] = pod["metadata"]["name"].ljust(BALLAST_BYTES, ".")
            if not fits:
                pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1k"
        await self._client.post(POD_GROUPS.namespace_path(SPACE), group)
        await asyncio.gather(*(self._client.post(PODS.namespace_path(SPACE), pod) for pod in pods))
        return Gang(name, frozenset(f"{SPACE}/{pod['metadata']['name']}" for pod in pods), fits)

    async def _delete(self, gang: Gang) -> None:
        """Wait until it is bound, if it can be, and let it go."""
        if gang.fits:
            with suppress(AssertionError):  # its patience is over: counted
                await until(lambda: gang.keys <= self._heard.bound.keys())
            self.lost += len(gang.keys - self._heard.bound.keys())
        else:
            self.withdrawn += len(gang.keys)
        await self._client.request(
            "DELETE",
            PODS.namespace_path(SPACE),
            params={"labelSelector": f"gang={gang.name}", "gracePeriodSeconds": "0"},
        )
        await self._client.delete(POD_GROUPS.path(f"{SPACE}/{gang.name}"))

    async def _change(self) -> None:
        """Another conf, another queue, another weight; the queue before the last one is empty by now, and goes."""
        self.changes += 1
        write_conf(self._conf, self.changes)
        queue = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": self._queue(self.changes)}}
        await self._client.post(QUEUES.list_path, {**queue, "spec": {"weight": 1}})
        await self._client.patch(QUEUES.path("default"), {"spec": {"weight": 1 + self.changes % 3}})
        if self.changes > 2:
            await self._client.delete(QUEUES.path(self._queue(self.changes - 2)))

    @staticmethod
    def _queue(change: int) -> str:
        return f"soak-{change}"


def write_conf(path: Path, number: int) -> None:
    """Replaced as a whole, so that no reader sees half of it."""
    made = path.with_suffix(".new")
    made.write_text(CONF.format(scorer=SCORERS[number % len(SCORERS)]))
    made.replace(path)


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def bindings_answered(client: Client) -> int:
    """How many bindings the API server has made, or refused because the pod has a node, by its own account."""
    pages = (await client.request("GET", "/metrics")).decode().splitlines()
    return sum(
        int(float(line.rpartition(" ")[2]))
        for line in pages
        if line.startswith("apiserver_request_total{")
        and 'subresource="binding"' in line
        and any(f'code="{code}"' in line for code in (201, 409))
    )


def growth(samples: Sequence[Sample], warm_up: int) -> dict[str, float] | None:
    """Least squares over what came after so many pods; None where that is less than two samples."""
    after = [sample for sample in samples if sample.pods >= warm_up]
    if len({sample.pods for sample in after}) < 2:
        return None
    memory = [sample.rss_mb for sample in after]
    by_time = linear_regression([sample.seconds for sample in after], memory).slope
    by_pods = linear_regression([sample.pods for sample in after], memory).slope
    return {
        "samples": len(after),
        "minutes": round((after[-1].seconds - after[0].seconds) / 60, 1),
        "pods": after[-1].pods - after[0].pods,
        "first_mb": round(memory[0], 1),
        "last_mb": round(memory[-1], 1),
        "max_mb": round(max(memory), 1),
        "slope_mb_per_hour": round(3600 * by_time, 1),
        "bytes_per_pod": round(1e6 * by_pods),
    }


async def soak(
    server: ApiServer,
    folder: Path,
    *,
    minutes: float = math.inf,
    pods: float = math.inf,
    rate: float,
    warm_up: int,
    every_s: float,
) -> dict[str, Any]:
    """Churn until either is reached; what was found. ``folder`` takes the conf and the scheduler's log."""
    conf = folder / "scheduler.conf"
    write_conf(conf, 0)
    async with client_of(server) as client:
        await prepare(client, NODE_COUNT)
        heard = Heard(client)
        with scheduler(server, folder, f"--scheduler-conf={conf}", "--controllers=on") as started:
            async with heard.listening():
                await started.says(" leads: ")
                churn = Churn(client, heard, started, conf, rate, every_s)
                await churn.run(lambda seconds, bound: seconds >= 60 * minutes or bound >= pods)
                answered = await bindings_answered(client)
                errors = [entry["message"] for entry in started.log if entry["level"] == "error"]
    return {
        "minutes": round(churn.samples[-1].seconds / 60, 1),
        "pods_bound": len(heard.bound),
        "lost": churn.lost,
        "bound_twice": answered - len(heard.bound),
        "errors": len(errors),
        "withdrawn": churn.withdrawn,
        "changes": churn.changes,
        "start_mb": round(churn.samples[0].rss_mb, 1),
        "after_warm_up": growth(churn.samples, warm_up),
    }


async def _measure(options: argparse.Namespace) -> dict[str, Any]:
    with serving() as server:
        return await soak(
            server,
            server.folder,
            minutes=options.minutes,
            rate=options.rate,
            warm_up=options.warm_up,
            every_s=options.every,
        )


def _lines(found: dict[str, Any]) -> list[str]:
    bound = f"{found['pods_bound']} pods bound in {found['minutes']} min, {found['lost']} lost"
    first = (
        f"{bound}, {found['bound_twice']} bound twice, {found['errors']} errors in the log;"
        f" {found['withdrawn']} withdrawn, {found['changes']} changes of queues and conf"
    )
    rest = found["after_warm_up"]
    if rest is None:
        return [first, f"memory {found['start_mb']} MB at the start; no slope: it ended within the warm-up"]
    return [
        first,
        f"memory {found['start_mb']} MB at the start; over {rest['minutes']} min and {rest['pods']} pods after the"
        f" warm-up {rest['first_mb']} MB to {rest['last_mb']} MB, at most {rest['max_mb']} MB",
        f"slope {rest['slope_mb_per_hour']} MB an hour, {rest['bytes_per_pod']} bytes a pod",
    ]


def main(words: Sequence[str] | None = None) -> int:
    """0: nothing was lost, bound twice or logged as an error, and memory grew no faster than ``--slope``; 1: else."""
    parser = argparse.ArgumentParser("python -m bench.kube_soak", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="default %(default)s")
    parser.add_argument("--rate", type=float, default=25.0, help="pods a second, at most (default %(default)s)")
    parser.add_argument("--warm-up", type=int, default=22_000, help="pods before the slope (default %(default)s)")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between samples (default %(default)s)")
    parser.add_argument("--slope", type=float, default=10.0, help="MB an hour, at most (default %(default)s)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    found = whole(_measure(options))
    print(json.dumps(found, indent=2) if options.json else "\n".join(_lines(found)))
    rest = found["after_warm_up"]
    flat = rest is not None and rest["slope_mb_per_hour"] <= options.slope
    good = not any(found[key] for key in ("lost", "bound_twice", "errors"))
    return 0 if flat and good else 1


if __name__ == "__main__":
    sys.exit(main())
