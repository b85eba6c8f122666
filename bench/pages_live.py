"""Pages of a scheduler that runs: ``python -m bench.pages_live`` prints how long a change takes to the page, and what
viewers cost the process that serves them.

The first is wall time from the answer of the API to a created pod until a viewer has read the jobs with it; the second
CPU time of the server alone: the viewers are another process. ``python -m bench.pages_live latency`` prints what
viewers of a scheduler that runs change in the time from creation to bound, and in the CPU time of its process.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import aiohttp
from msgspec.structs import replace

from bench.bound_latency import Compared, create, in_turns
from bench.pages import cycle, show, with_history
from pumice.runtime.serving.listening import Place
from pumice.web.server import serving
from pumice.web.summary import summarize
from tests.kube.server import free_port

_CHANGES, _APART_S = 7, 3.0
_VIEWERS, _CYCLES = 50, 10
_NICE = 5
_TURNS, _PODS, _PODS_APART_S = 5, 150, 0.1
_DOCUMENTS = ("/data/overview?resource=nvidia.com/gpu",)


@asynccontextmanager
async def scheduler(nodes: int) -> AsyncIterator[tuple[str, str, int]]:
    """Start ``pumice serve`` with a scheduler. Yields the URLs of its API and of its pages, and its process, when a
    cycle is shown."""
    api, pages = free_port(), free_port()
    with TemporaryDirectory() as folder:
        words = [f"--nodes={nodes}:cpu=16,memory=64Gi,gpu=1", "--schedule", f"--port={api}"]
        words += [f"--pages=127.0.0.1:{pages}", f"--kubeconfig={Path(folder, 'kubeconfig')}"]
        program = [sys.executable, "-c", "from pumice.cli.main import main; main()", "serve", *words]
        process = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            await _shown(f"http://127.0.0.1:{pages}")
            yield f"http://127.0.0.1:{api}", f"http://127.0.0.1:{pages}", process.pid
        finally:
            process.terminate()
            process.wait(30)


async def _shown(url: str) -> None:
    async with aiohttp.ClientSession() as http, asyncio.timeout(120):
        while True:
            with suppress(aiohttp.ClientError):
                async with http.get(f"{url}/data/choices") as answer:
                    if (await answer.json())["data"] is not None:
                        return
            await asyncio.sleep(0.2)


async def delays(nodes: int) -> list[float]:
    """Return the seconds from a created pod to the page, for each of several."""
    seen: dict[str, float] = {}
    made: list[float] = []
    async with scheduler(nodes) as (api, pages, _), aiohttp.ClientSession() as http:
        viewer = asyncio.create_task(_follow(http, pages, seen))
        await asyncio.sleep(_APART_S)
        for number in range(_CHANGES):
            await create(http, api, f"p{number}", "1")
            made.append(time.monotonic())
            await asyncio.sleep(_APART_S)
        viewer.cancel()
    # A pod gets a PodGroup of a random name, so jobs are distinguished by when they are seen.
    return [shown - created for shown, created in zip(sorted(seen.values()), made, strict=True)]


async def _follow(http: aiohttp.ClientSession, url: str, seen: dict[str, float]) -> None:
    """Read jobs as soon as the stream says that they are new, as a page does."""
    async with http.get(f"{url}/events", timeout=aiohttp.ClientTimeout()) as stream:
        async for line in stream.content:
            if line.startswith(b"data"):
                async with http.get(f"{url}/data/jobs?rows=500") as answer:
                    rows = (await answer.json())["data"]["rows"]
                for row in rows:
                    seen.setdefault(row["name"], time.monotonic())


@asynccontextmanager
async def viewing(pages: str) -> AsyncIterator[None]:
    """Let viewers look at pages, in a process of their own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.pages_live", pages, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    for _ in range(_VIEWERS):
        await process.stdout.readline()  # each has read the first one

    async def drain(lines: asyncio.StreamReader) -> None:
        while await lines.readline():
            pass

    draining = asyncio.create_task(drain(process.stdout))
    try:
        yield
    finally:
        process.terminate()
        await process.wait()
        await draining


async def beside_viewers(nodes: int, turns: int) -> Compared:
    """Return the time from creation to bound in turns without viewers and with them."""
    async with scheduler(nodes) as (api, pages, pid):
        return await in_turns(api, pid, lambda: viewing(pages), turns=turns, pods=_PODS, apart_s=_PODS_APART_S)


async def viewers_cost() -> float:
    """Return the CPU seconds of the server for each new cycle that all viewers read."""
    trial = cycle(1000, 10_000)
    summary = summarize(trial.outcome, trial.decisions, "d")
    feed = with_history(trial, summary)
    async with serving(feed, Place()) as url:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.pages_live", url, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        for _ in range(_VIEWERS):
            await process.stdout.readline()  # each has read the first one
        began = time.process_time()
        for number in range(_CYCLES):
            feed.publish(replace(summary, at=1000.0 + number))
            for _ in range(_VIEWERS):
                await process.stdout.readline()
        spent = time.process_time() - began
        process.terminate()
        await process.wait()
    return spent / _CYCLES


async def viewers(url: str) -> None:
    """Read what the page Overview reads, each time its stream says that it is new, and print a line then."""
    os.nice(_NICE)  # browsers are on other machines, and take little time from the scheduler
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as http:

        async def look() -> None:
            async with http.get(f"{url}/events", timeout=aiohttp.ClientTimeout()) as stream:
                async for line in stream.content:
                    if line.startswith(b"data"):
                        for path in _DOCUMENTS:
                            async with http.get(url + path) as answer:
                                await answer.read()
                        print("read", flush=True)

        await asyncio.gather(*(look() for _ in range(_VIEWERS)))


def show_latency(turns: int) -> None:
    """Print what viewers change."""
    found = asyncio.run(beside_viewers(1000, turns))
    for share, name in ((0.5, "p50"), (0.99, "p99")):
        alone, loaded = found.quantiles(share)
        change = f"{1000 * alone:.0f} and {1000 * loaded:.0f} ms, {100 * found.change(share):+.1f} %"
        show(f"creation to bound, {name}, without viewers and with {_VIEWERS}", change, "5 % for p99")
    alone, loaded = found.cpu
    show("CPU of the scheduler, the same", f"{100 * alone:.1f} and {100 * loaded:.1f} % of a core")


def main() -> None:
    if sys.argv[1:2] == ["latency"]:
        show_latency(int(sys.argv[2]) if len(sys.argv) > 2 else _TURNS)
        return
    if len(sys.argv) > 1:
        asyncio.run(viewers(sys.argv[1]))
        return
    cost = asyncio.run(viewers_cost())
    show(
        f"{_VIEWERS} viewers read a new cycle, the server alone", f"{cost:.3f} CPU s", "2 % of a core, a cycle a second"
    )
    found = asyncio.run(delays(5000))
    show("5,000 nodes: from a created pod to the page, median", f"{1000 * median(found):.0f} ms", "at most 300 ms")
    show("the same, longest of 7", f"{1000 * max(found):.0f} ms")


if __name__ == "__main__":
    main()
