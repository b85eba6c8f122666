"""``python -m bench.questions_live``: how long pods wait from creation to binding while clients ask questions.

A scheduler runs in ``pumice serve --schedule``, and pods come one after the other. In turns there are no questions, and
so many clients ask ``/explain``, ``/whatif`` and ``/jobs``, with no pause but that which a 429 names.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp

from bench.bound_latency import Compared, create, in_turns
from bench.pages import show
from bench.pages_live import scheduler

_QUESTIONS = ("/explain?job=default/waits", "/whatif?add-nodes=2xnode-00000", "/jobs")


async def beside_questions(
    nodes: int, pods: int, rate: float, clients: int, turns: int
) -> tuple[Compared, Counter[int]]:
    """Return the time from creation to bound in turns, and the answers of questions by status."""
    answers = Counter[int]()
    async with scheduler(nodes) as (api, _, pid):
        async with aiohttp.ClientSession() as http:
            await create(http, api, "waits", "1000")  # what is asked about
        found = await in_turns(
            api, pid, lambda: _asking(api, clients, answers), turns=turns, pods=pods, apart_s=1.0 / rate
        )
    return found, answers


@asynccontextmanager
async def _asking(api: str, clients: int, answers: Counter[int]) -> AsyncIterator[None]:
    """Let clients ask, and count the answers by status."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        asking = [asyncio.create_task(_ask(http, api, number, answers)) for number in range(clients)]
        try:
            yield
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)


async def _ask(http: aiohttp.ClientSession, api: str, number: int, answers: Counter[int]) -> None:
    """Ask one question after the other, beginning with another one in each client."""
    while True:
        async with http.get(api + _QUESTIONS[number % len(_QUESTIONS)], timeout=aiohttp.ClientTimeout()) as answer:
            await answer.read()
            answers[answer.status] += 1
            pause = float(answer.headers.get("Retry-After", 0))
        await asyncio.sleep(pause)
        number += 1


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m bench.questions_live", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000, help="default %(default)s")
    parser.add_argument("--pods", type=int, default=300, help="in each turn (default %(default)s)")
    parser.add_argument("--rate", type=float, default=10.0, help="pods a second (default %(default)s)")
    parser.add_argument("--clients", type=int, default=20, help="default %(default)s")
    parser.add_argument("--turns", type=int, default=3, help="without and with questions each (default %(default)s)")
    wanted = parser.parse_args(words)
    found, answers = asyncio.run(beside_questions(wanted.nodes, wanted.pods, wanted.rate, wanted.clients, wanted.turns))
    for share, name in ((0.5, "p50"), (0.99, "p99")):
        alone, loaded = found.quantiles(share)
        show(
            f"{name}, without questions and with {wanted.clients} clients",
            f"{1000 * alone:.0f}, {1000 * loaded:.0f} ms",
        )
    show("p99 with questions / without, median of turns", f"{1.0 + found.change(0.99):.2f}", "at most 1.05")
    show("answers by status", ", ".join(f"{status}: {count}" for status, count in sorted(answers.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
