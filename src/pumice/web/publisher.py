"""Summaries of a scheduler that runs: made while a page is open, and within a share of the time of its thread."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from pumice.framework.cycle.outcome import Outcome
from pumice.model.decisions import Decision
from pumice.web.feed import Feed
from pumice.web.summary import summarize

_log = logging.getLogger("pumice.run")
#: How long a summary is made for after the last request of a page.
_OPEN_S = 30.0
#: After one that took t seconds none is made for so many times t: pages take at most 1/20 of the thread of cycles.
_SHARE = 20


class Publisher:
    """``take`` is called in the thread of cycles, and hands summaries to the feed in the thread of the event loop.

    ``clock``: seconds that never go back.
    """

    def __init__(self, feed: Feed, loop: asyncio.AbstractEventLoop, clock: Callable[[], float]) -> None:
        self._feed, self._loop, self._clock = feed, loop, clock
        self._not_before = 0.0
        self._shown: object = None

    def take(self, outcome: Outcome, decisions: Sequence[Decision], digest: str) -> None:
        """Make a summary of a cycle that ended, if a page is open and none was made a short time ago."""
        began = self._clock()
        if began - self._feed.asked_at > _OPEN_S or began < self._not_before:
            return
        tables = outcome.tables
        if self._shown == tables.version and not decisions:
            return  # nothing was written since the last one
        try:
            summary = summarize(outcome, decisions, digest)
        except Exception:
            # A page that is not renewed is a smaller evil than a cycle that counts as failed.
            _log.exception("pages: a cycle could not be summarized")
            self._not_before = began + _OPEN_S
            return
        self._shown = tables.version
        ended = self._clock()
        self._not_before = ended + _SHARE * (ended - began)
        self._loop.call_soon_threadsafe(self._feed.publish, summary)
