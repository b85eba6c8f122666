"""Pages of a scheduler that runs: ``--pages`` of ``pumice run`` and ``pumice serve --schedule``."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import click

from pumice.cli.errors import InputError
from pumice.cli.output import say
from pumice.cli.run_flags import place
from pumice.cli.run_pages import PageAddress

if TYPE_CHECKING:
    from pumice.kube.scheduler.answer_pages import AnswerPages
    from pumice.kube.scheduler.live import AfterCycle
    from pumice.runtime.serving.listening import Place
    from pumice.runtime.serving.viewers import Guard

#: How far back curves go.
HISTORY_S = 86_400.0

pages_option = click.option(
    "--pages",
    default="",
    metavar="ADDRESS:PORT",
    help="Serve pages about the newest cycle at this address, such as 127.0.0.1:8470. Addresses beyond loopback need"
    " TLS (pumice run) and ask for a Kubernetes token. Default: none.",
)


def pages_place(text: str, *, certified: bool = False) -> PageAddress | None:
    """Return address and port of ``--pages``, and whether over TLS; None if there are none. ``certified``: there is a
    certificate for addresses beyond loopback. Raises: InputError."""
    if not text:
        return None
    from pumice.runtime.serving.this_machine import is_loopback

    address, port = place("--pages", text)
    if not (is_loopback(address) or certified):
        raise InputError(
            f"--pages {text[:60]}: wanted a loopback address, or pumice run with --tls-cert-file and"
            " --tls-private-key-file"
        )
    return address, port, not is_loopback(address)


async def show_pages(
    at: Place | None, stack: AsyncExitStack, answers: AnswerPages, beyond: Guard | None = None
) -> AfterCycle:
    """Serve pages until the stack ends, if there is an address, and return what takes each cycle. ``answers``:
    questions about the scheduler, which say how long jobs have waited for what without pages too. ``beyond``: says who
    asks at an address beyond loopback. Raises: InputError."""
    if at is None:
        from pumice.runtime.job_looks import JobLooks

        return JobLooks(answers.job_times, asyncio.get_running_loop(), time.monotonic).take
    from pumice.runtime.serving.viewers import this_machine
    from pumice.web.expected_starts import ExpectedStarts
    from pumice.web.feed import Feed
    from pumice.web.history import CycleHistory
    from pumice.web.policy_trials import PolicyTrials
    from pumice.web.publisher import Publisher
    from pumice.web.server import serving
    from pumice.web.shared_work import NoResult, SharedWork

    async def starts() -> dict[str, Any]:
        try:
            return await answers.starts()
        except ValueError as error:
            raise NoResult(str(error)) from None

    async def relief() -> dict[str, Any]:
        try:
            return await answers.all_waiting() | {"at": time.time()}
        except ValueError as error:
            raise NoResult(str(error)) from None

    async def tried(text: str, cycles: int) -> dict[str, Any]:
        return await answers.try_policy(text)

    policies = PolicyTrials(answers.policy_text, tried)
    feed = Feed(CycleHistory(span_max_s=HISTORY_S), answers.job_times)
    feed.starts = ExpectedStarts(starts, time.monotonic, changes=True)
    feed.relief = SharedWork(relief, time.monotonic, changes=True)
    try:
        guard = beyond or this_machine
        url = await stack.enter_async_context(serving(feed, at, answers.explain, policies, beyond=guard))
    except OSError as error:
        raise InputError(f"--pages {at.address}:{at.port}: {error.strerror or error}") from None
    say(f"pages on {url}")
    return Publisher(feed, asyncio.get_running_loop(), time.monotonic).take
