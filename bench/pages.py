"""What pages cost: ``python -m bench.pages`` prints each figure with what it should reach.

Times are CPU seconds of this process, and wall time where a browser waits. Without a Chromium no paint is measured.
"""

from __future__ import annotations

import asyncio
import gzip
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import aiohttp
import numpy as np
from msgspec.structs import replace

from pumice.answers.all_waiting import TRIALS_MAX, overview
from pumice.answers.world import Trial, Trials, World
from pumice.model.events import Object
from pumice.runtime.cycle_end import CycleEnd
from pumice.runtime.job_times import JobTimes, job_states
from pumice.runtime.serving.listening import Place
from pumice.testing.build import node, pod, podgroup, policy, queue, resource
from pumice.volcano.table import DEFAULT_CONF
from pumice.web.assets import asset, shell
from pumice.web.feed import Feed
from pumice.web.jobs_query import JobsIndex, query_of
from pumice.web.sample import amounts_of, sample_of
from pumice.web.server import serving
from pumice.web.summary import CycleSummary, summarize
from tests.web.browser import CHROMIUM, chromium

_RUNS = 5
_VIEWERS, _CYCLES = 50, 10


def objects(nodes: int, jobs: int, queues: int = 20) -> Iterator[Object]:
    """Yield a cluster on which seven of eight jobs of one pod with one GPU wait."""
    for number in range(queues):
        yield queue(f"q{number}")
    for number in range(nodes):
        yield node(f"n{number}", 16, gpu=1 if number < jobs // 8 else 0)
    for number in range(jobs):
        name = f"job-{number}"
        yield podgroup(name, 1, queue=f"q{number % queues}", phase="Inqueue", min_resources=resource(1, gpu=1))
        yield pod(f"{name}-0", name, gpu=1)


def cluster(nodes: int, jobs: int) -> World:
    """Return a cluster of that size."""
    return World(objects(nodes, jobs), policy(DEFAULT_CONF), 100.0, ("volcano",))


def cycle(nodes: int, jobs: int) -> Trial:
    """Return a cycle on a cluster of that size."""
    return Trials(cluster(nodes, jobs), 1).base


def cpu_of(do: Callable[[], object]) -> float:
    """Return the CPU seconds of a call, the median of several."""
    taken = []
    for _ in range(_RUNS):
        began = time.process_time()
        do()
        taken.append(time.process_time() - began)
    return median(taken)


def show(name: str, found: str, wanted: str = "") -> None:
    print(f"{name:<62} {found:>16}  {wanted}", flush=True)


def end_of(trial: Trial) -> CycleEnd:
    return CycleEnd(1, trial.outcome, trial.decisions, "d", {"open session": 0.01, "allocate": 0.1})


def with_history(trial: Trial, summary: CycleSummary) -> Feed:
    """Return a feed whose curves are full."""
    feed, sample = Feed(), sample_of(end_of(trial), amounts_of(trial.outcome))
    for second in range(480):
        feed.history.take(replace(sample, at=100.0 + second))
    feed.publish(summary)
    return feed


def query_cost(summary: CycleSummary, count: int) -> float:
    """Return the CPU seconds of filter and sort over so many jobs."""
    rows = np.resize(np.arange(len(summary.jobs)), count)
    jobs = summary.jobs
    columns = {
        name: getattr(jobs, name)[rows]
        for name in jobs.__struct_fields__
        if isinstance(getattr(jobs, name), np.ndarray)
    }
    names = [f"ns/job-{number}" for number in range(count)]
    sentences = [jobs.sentences[row] for row in rows.tolist()]
    index = JobsIndex(replace(summary, jobs=replace(jobs, names=names, sentences=sentences, **columns)))
    query = query_of({"text": "7", "state": "waits", "sort": "devices", "order": "down"})
    index.answer(query)  # ranks of names are made once a summary
    return cpu_of(lambda: index.answer(query))


async def viewers(feed: Feed, summary: CycleSummary) -> float:
    """Return the CPU seconds of this process, clients included, for each new cycle that all viewers read."""
    async with serving(feed, Place()) as url, aiohttp.ClientSession() as http:

        async def look() -> None:
            for path in ("/data/overview", "/data/history?resource=nvidia.com/gpu"):
                async with http.get(url + path) as answer:
                    await answer.read()

        await asyncio.gather(*(look() for _ in range(_VIEWERS)))
        began = time.process_time()
        for number in range(_CYCLES):
            feed.publish(replace(summary, at=1000.0 + number))
            await asyncio.gather(*(look() for _ in range(_VIEWERS)))
        return (time.process_time() - began) / _CYCLES


async def first_paint(feed: Feed) -> list[float]:
    """Return the wall seconds from the address to the first paint, and until three frames after all is drawn, in a
    browser that is new each time."""
    found = []
    async with serving(feed, Place()) as url:
        for _ in range(3):
            with tempfile.TemporaryDirectory() as folder:
                async with chromium(Path(folder)) as page:
                    await page.open(url)
                    paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
                    found.append(await page.js(f"[{paint}, performance.now()].map((each) => each / 1000)"))
    return [median(each) for each in zip(*found, strict=True)]


def main() -> None:
    trial = cycle(1000, 10_000)
    summary = summarize(trial.outcome, trial.decisions, "d")
    feed = with_history(trial, summary)
    waits = int((summary.jobs.code >= 0).sum())
    show(f"1,000 nodes, {len(summary.jobs):,} jobs, of which wait", f"{waits:,}")
    show("a summary", f"{cpu_of(lambda: summarize(trial.outcome, trial.decisions, 'd')):.3f} CPU s")
    show("sums of a cycle", f"{1000 * cpu_of(lambda: amounts_of(trial.outcome)):.2f} CPU ms")
    states, times = job_states(trial.outcome), JobTimes()
    took = cpu_of(lambda: job_states(trial.outcome)), cpu_of(lambda: times.take(states))
    show("states of its jobs; taking them in", f"{1000 * took[0]:.1f}; {1000 * took[1]:.1f} CPU ms")
    show("history of a scheduler, at most", f"{(feed.history.nbytes + times.nbytes) / 1e6:.1f} MB of arrays")
    parts = [shell("Overview"), asset("pages.css"), asset("pages.js")]
    sent = [*(part.encode() for part in parts), feed.document("overview"), feed.curves("nvidia.com/gpu")]
    size = sum(len(gzip.compress(each, compresslevel=1)) for each in sent)
    show("first page, gz", f"{size / 1000:.0f} kB", "at most 150 kB")
    if CHROMIUM is not None:
        painted, drawn = asyncio.run(first_paint(feed))
        show("first paint; all drawn", f"{painted:.2f} s; {drawn:.2f} s", "at most 1 s")
    show("filter and sort of 100,000 jobs", f"{1000 * query_cost(summary, 100_000):.0f} CPU ms", "at most 200 ms")
    show(f"{_VIEWERS} viewers read a new cycle", f"{asyncio.run(viewers(feed, summary)):.3f} CPU s", "clients included")
    began = time.process_time()
    found = overview(Trials(cluster(1000, 10_000), TRIALS_MAX))
    spent = time.process_time() - began
    show(f"the change that helps most, of {found.trials}", f"{spent:.1f} CPU s", "in a process of its own")
    large = cycle(5000, 2000)
    both = cpu_of(lambda: summarize(large.outcome, large.decisions, "d"))
    show("5,000 nodes, 2,000 jobs: a summary", f"{1000 * both:.0f} CPU ms", "of 300 ms to the page")


if __name__ == "__main__":
    main()
