"""The loops of parts that act on objects: do what there is to do, then wait for the next thing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sized
from contextlib import suppress


async def work_for_ever(
    step: Callable[[], float | None], todo: Sized, wake: asyncio.Event, clock: Callable[[], float]
) -> None:
    """Run until cancelled. ``step``: does some of ``todo`` and returns when the next thing is due, by the ``clock``,
    None for nothing. ``wake``: set when something is added to it."""
    while True:
        due = step()
        if todo:
            await asyncio.sleep(0)  # requests go first
            continue
        wake.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(wake.wait(), None if due is None else max(due - clock(), 0.0))


async def work_through(step: Callable[[], bool], wake: asyncio.Event) -> None:
    """Run until cancelled. ``step``: does one thing and returns False if there was none. ``wake``: set when there is
    one."""
    while True:
        # Before the steps: what is added during the last one is not waited for.
        wake.clear()
        while step():
            await asyncio.sleep(0)  # requests go first
        await wake.wait()
