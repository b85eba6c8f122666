"""How long pods wait from their creation until they are bound, in turns with and without a load beside the scheduler.

Machines are busy with other things too, so turns alternate, and what is compared is the median over turns. CPU time of
the scheduler's process is read from the system, so that a load that others carry does not count.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from pathlib import Path
from statistics import median

import aiohttp
from msgspec import Struct

#: Makes the load while it is open.
Load = Callable[[], AbstractAsyncContextManager[None]]
_LATE_S = 60.0
_PODS = "/api/v1/namespaces/default/pods"


class Turn(Struct, frozen=True):
    """One turn. ``latencies``: seconds from the answer to a creation until the pod is seen with its node. ``cpu_s``: of
    the scheduler, in ``seconds``."""

    latencies: list[float]
    cpu_s: float
    seconds: float

    def at(self, share: float) -> float:
        """Return a quantile of the latencies."""
        ordered = sorted(self.latencies)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


class Compared(Struct, frozen=True):
    """Turns without the load and with it."""

    without: list[Turn]
    loaded: list[Turn]

    def change(self, share: float) -> float:
        """Return by which part a quantile is larger with the load: the median over pairs of turns."""
        pairs = zip(self.without, self.loaded, strict=True)
        return median(with_it.at(share) / alone.at(share) - 1.0 for alone, with_it in pairs)

    def quantiles(self, share: float) -> tuple[float, float]:
        """Return the median of a quantile without the load and with it. Units: seconds."""
        return median(turn.at(share) for turn in self.without), median(turn.at(share) for turn in self.loaded)

    @property
    def cpu(self) -> tuple[float, float]:
        """Return the CPU seconds of the scheduler in a second without the load and with it: medians."""
        first, second = (median(turn.cpu_s / turn.seconds for turn in of) for of in (self.without, self.loaded))
        return first, second


async def in_turns(api: str, pid: int, load: Load, *, turns: int, pods: int, apart_s: float) -> Compared:
    """Compare turns without a load with turns with it, of so many pods each, ``apart_s`` seconds apart. ``api``: URL of
    the API server of ``pumice serve``; ``pid``: its process."""
    found = Compared([], [])
    async with aiohttp.ClientSession() as http:
        await _turn(http, api, pid, "warm", pods // 2, apart_s)
        for number in range(turns):
            # What changes over time, such as the load of the machine, falls on both.
            for loaded in (False, True) if number % 2 == 0 else (True, False):
                async with load() if loaded else nullcontext():
                    turn = await _turn(http, api, pid, f"{number}-{'b' if loaded else 'a'}", pods, apart_s)
                (found.loaded if loaded else found.without).append(turn)
    return found


async def create(http: aiohttp.ClientSession, api: str, name: str, cpu: str) -> None:
    """Create a pod of the scheduler that asks for so much CPU."""
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    spec = {"schedulerName": "volcano", "containers": [container]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    async with http.post(api + _PODS, json=body) as answer:
        answer.raise_for_status()


async def _turn(http: aiohttp.ClientSession, api: str, pid: int, name: str, pods: int, apart_s: float) -> Turn:
    space, made, seen = api + _PODS, dict[str, float](), dict[str, float]()
    began, cpu = time.monotonic(), _cpu_s(pid)
    watching = asyncio.create_task(_watch(http, space, seen))
    try:
        for number in range(pods):
            pod = f"{name}-{number}"
            await create(http, api, pod, "1")
            made[pod] = time.monotonic()
            await asyncio.sleep(apart_s)
        async with asyncio.timeout(_LATE_S):
            while not made.keys() <= seen.keys():
                await asyncio.sleep(0.05)
        spent, seconds = _cpu_s(pid) - cpu, time.monotonic() - began
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    # The next turn begins with the same cluster.
    for pod in made:
        async with http.delete(f"{space}/{pod}?gracePeriodSeconds=0") as answer:
            await answer.read()
    await asyncio.sleep(2.0)
    return Turn([max(seen[pod] - at, 0.0) for pod, at in made.items()], spent, seconds)


async def _watch(http: aiohttp.ClientSession, space: str, seen: dict[str, float]) -> None:
    """Note when each pod is first seen with a node."""
    async with http.get(f"{space}?watch=1", timeout=aiohttp.ClientTimeout()) as stream:
        async for line in stream.content:
            pod = json.loads(line)["object"]
            if pod["spec"].get("nodeName"):
                seen.setdefault(pod["metadata"]["name"], time.monotonic())


def _cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process up to now, without those of its children."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
