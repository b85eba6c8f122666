"""``python -m bench.questions_live``: how long pods wait from creation to binding while clients ask questions.

A scheduler runs in ``pumice serve --schedule``, and pods come one after the other at a fixed rate. In turns there are
no questions, and so many clients ask ``/explain``, ``/whatif`` and ``/jobs``, with no pause but that which a 429 names.
A pod's time begins when the request that creates it is sent and ends when a watch shows its node.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from statistics import median

import aiohttp

from bench.pages import show
from bench.pages_live import scheduler

_PODS = "/api/v1/namespaces/default/pods"
_QUESTIONS = ("/explain?job=default/waits", "/whatif?add-nodes=2xnode-00000", "/jobs")
_PATIENCE_S = 120.0


async def times(nodes: int, pods: int, rate: float, clients: int) -> tuple[list[float], Counter[int]]:
    """Return the seconds from creation to binding of each pod, and the answers of questions by status."""
    answers = Counter[int]()
    async with scheduler(nodes) as (api, _, _), aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        await _create(http, api, "waits", "1000")  # what is asked about
        sent: dict[str, float] = {}
        bound: dict[str, float] = {}
        asking = [asyncio.create_task(_ask(http, api, number, answers)) for number in range(clients)]
        async with _watching(http, api, bound):
            for number in range(pods):
                sent[f"p{number}"] = time.monotonic()
                await _create(http, api, f"p{number}", "1m")
                await asyncio.sleep(max(0.0, sent[f"p{number}"] + 1.0 / rate - time.monotonic()))
            async with asyncio.timeout(_PATIENCE_S):
                while len(bound) < pods:
                    await asyncio.sleep(0.05)
        for task in asking:
            task.cancel()
    return [bound[name] - began for name, began in sent.items()], answers


async def _create(http: aiohttp.ClientSession, api: str, name: str, cpu: str) -> None:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    spec = {"schedulerName": "volcano", "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    async with http.post(api + _PODS, json=pod) as answer:
        answer.raise_for_status()


async def _ask(http: aiohttp.ClientSession, api: str, number: int, answers: Counter[int]) -> None:
    """Ask one question after the other, beginning with another one in each client."""
    while True:
        async with http.get(api + _QUESTIONS[number % len(_QUESTIONS)], timeout=aiohttp.ClientTimeout()) as answer:
            await answer.read()
            answers[answer.status] += 1
            pause = float(answer.headers.get("Retry-After", 0))
        await asyncio.sleep(pause)
        number += 1


@asynccontextmanager
async def _watching(http: aiohttp.ClientSession, api: str, bound: dict[str, float]) -> AsyncIterator[None]:
    """Note when each pod is seen with a node."""
    async with http.get(f"{api}{_PODS}?watch=1", timeout=aiohttp.ClientTimeout()) as stream:

        async def read() -> None:
            async for line in stream.content:
                pod = json.loads(line)["object"]
                if pod["spec"].get("nodeName"):
                    bound.setdefault(pod["metadata"]["name"], time.monotonic())

        task = asyncio.create_task(read())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m bench.questions_live", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000, help="default %(default)s")
    parser.add_argument("--pods", type=int, default=300, help="in each turn (default %(default)s)")
    parser.add_argument("--rate", type=float, default=10.0, help="pods a second (default %(default)s)")
    parser.add_argument("--clients", type=int, default=20, help="default %(default)s")
    parser.add_argument("--turns", type=int, default=3, help="without and with questions each (default %(default)s)")
    wanted = parser.parse_args(words)
    found: dict[bool, list[float]] = {False: [], True: []}
    answers = Counter[int]()
    for _ in range(wanted.turns):
        for is_asked in (False, True):
            waited, given = asyncio.run(
                times(wanted.nodes, wanted.pods, wanted.rate, wanted.clients if is_asked else 0)
            )
            found[is_asked].append(sorted(waited)[int(0.99 * len(waited))])
            answers += given
            who = f"{wanted.clients} clients ask" if is_asked else "no questions"
            show(f"{who}: p50, p99", f"{1000 * median(waited):.0f}, {1000 * found[is_asked][-1]:.0f} ms")
    ratio = median(with_ / without for without, with_ in zip(found[False], found[True], strict=True))
    show("p99 with questions / without, median of turns", f"{ratio:.2f}", "at most 1.05")
    show("answers by status", ", ".join(f"{status}: {count}" for status, count in sorted(answers.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
