"""Ways to wait for what comes of a change on a real server: for a condition, never for a time.

The bounds are generous: they only end a test that would never end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from pumice.kube.api.errors import ApiError

PATIENCE_S = 60.0


async def until(check: Callable[[], object], seconds: float = PATIENCE_S, what: str = "") -> None:
    """Give way until the check holds. Fails after so many seconds."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, what or f"did not come true in {seconds} s"
        await _give_way()


async def until_answered(ask: Callable[[], Awaitable[object]], seconds: float = PATIENCE_S) -> None:
    """Ask the API server again and again until it does not refuse. Raises: the last ApiError."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            await ask()
            return
        except ApiError:
            if time.monotonic() > deadline:
                raise
        await _give_way()


async def until_refused(ask: Callable[[], Awaitable[object]], status: int, seconds: float = PATIENCE_S) -> None:
    """Ask the API server again and again until it refuses with this status."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            await ask()
        except ApiError as error:
            if error.status == status:
                return
        assert time.monotonic() < deadline, f"no HTTP {status} in {seconds} s"
        await _give_way()


async def happens(event: asyncio.Event, what: str = "") -> None:
    """Wait for an event."""
    try:
        await asyncio.wait_for(event.wait(), PATIENCE_S)
    except TimeoutError:
        raise AssertionError(what or f"did not happen in {PATIENCE_S} s") from None


async def _give_way() -> None:
    """Let the rest of the loop, and other processes, have the processor for a moment."""
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), 0.01)
