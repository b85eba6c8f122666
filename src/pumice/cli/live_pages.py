"""Pages of a scheduler that runs: ``--pages`` of ``pumice run`` and ``pumice serve --schedule``."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import click

from pumice.cli.errors import InputError
from pumice.cli.output import say
from pumice.cli.run_flags import place

if TYPE_CHECKING:
    from pumice.kube.scheduler.answer_pages import AnswerPages
    from pumice.kube.scheduler.live import AfterCycle

#: How far back curves go.
HISTORY_S = 86_400.0

pages_option = click.option(
    "--pages",
    default="",
    metavar="ADDRESS:PORT",
    help="Serve pages about the newest cycle at this loopback address, such as 127.0.0.1:8470. Default: none.",
)


def pages_place(text: str) -> tuple[str, int] | None:
    """Return address and port of ``--pages``, None if there are none. Raises: InputError."""
    if not text:
        return None
    from pumice.runtime.serving.this_machine import is_loopback

    address, port = place("--pages", text)
    if not is_loopback(address):
        raise InputError(f"--pages {text[:60]}: pages are for this machine only; wanted a loopback address")
    return address, port


async def show_pages(at: tuple[str, int] | None, stack: AsyncExitStack, answers: AnswerPages) -> AfterCycle | None:
    """Serve pages until the stack ends, and return what takes each cycle. ``answers``: questions about the scheduler.
    Raises: InputError."""
    if at is None:
        return None
    from pumice.runtime.serving.listening import Place
    from pumice.web.feed import Feed
    from pumice.web.history import History
    from pumice.web.publisher import Publisher
    from pumice.web.server import serving

    feed = Feed(History(span_max_s=HISTORY_S))
    try:
        url = await stack.enter_async_context(serving(feed, Place(*at), answers.explain))
    except OSError as error:
        raise InputError(f"--pages {at[0]}:{at[1]}: {error.strerror or error}") from None
    say(f"pages on {url}")
    return Publisher(feed, asyncio.get_running_loop(), time.monotonic).take
