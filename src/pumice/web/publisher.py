"""What pages show of a scheduler that runs: sums of each cycle, and summaries while a page is open. Both within a share
of the time of its thread."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from pumice.runtime.cycle_end import CycleEnd, state_of
from pumice.runtime.job_looks import SHARE as LOOKS_SHARE
from pumice.runtime.job_looks import JobLooks
from pumice.runtime.serving.time_share import SHARE, TimeShare
from pumice.web.feed import Feed
from pumice.web.sample import Amounts, amounts_of, sample_of
from pumice.web.summary import summarize

_log = logging.getLogger("pumice.run")
#: How long a summary is made for after the last request of a page.
_OPEN_S = 30.0
#: A cluster that changes all the time is shown once in so many seconds, since each viewer asks anew each time.
_APART_S = 1.0
#: The first three of some changes within seconds are shown one by one.
_AHEAD_S = 2.0


class Publisher:
    """``take`` is called in the thread of cycles, and hands results to the feed in the thread of the event loop.

    ``clock``: seconds that never go back. ``share``: of summaries. ``always``: of cycles that are run again, where
    nothing waits for this thread: sums are made of each, and summaries while no page is open too.
    """

    def __init__(
        self,
        feed: Feed,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], float],
        *,
        share: float = SHARE,
        always: bool = False,
    ) -> None:
        self._feed, self._loop, self._clock = feed, loop, clock
        self._always, self._failed_until = always, 0.0
        apart_s, ahead_s = (0.0, 0.0) if always else (_APART_S, _AHEAD_S)
        self._summaries = TimeShare(clock, share, apart_s, ahead_s)
        self._samples = TimeShare(clock, LOOKS_SHARE)
        self._looks = JobLooks(feed.job_times, loop, clock, always=always)
        self._shown: object = None
        self._amounts: Amounts | None = None
        self._amounts_of: object = None

    def take(self, end: CycleEnd) -> None:
        """Take a cycle that ended."""
        if self._clock() < self._failed_until:
            return
        try:
            self._sample(end)
            self._looks.take(end)
            if self._is_wanted(end):
                self.show(end)
        except Exception:
            # A page that is not renewed is a smaller evil than a cycle that counts as failed.
            _log.exception("pages: a cycle could not be summarized")
            self._failed_until = self._clock() + _OPEN_S

    def _is_wanted(self, end: CycleEnd) -> bool:
        if not self._summaries.is_due or (not self._always and self._clock() - self._feed.asked_at > _OPEN_S):
            return False
        # Nothing was written since the last one.
        return self._shown != state_of(end.outcome) or bool(end.decisions)

    def show(self, end: CycleEnd) -> None:
        """Show a cycle whether it is wanted or not, such as the last one."""
        began = self._clock()
        summary = summarize(end.outcome, end.decisions, end.digest)
        self._shown = state_of(end.outcome)
        self._summaries.took(began)
        self._loop.call_soon_threadsafe(self._feed.publish, summary)

    def _sample(self, end: CycleEnd) -> None:
        """Hand on the sums of a cycle. Each cycle is counted; amounts may be those of one shortly before."""
        began, state = self._clock(), state_of(end.outcome)
        is_due = self._always or self._samples.is_due
        if self._amounts is None or (state != self._amounts_of and is_due):
            self._amounts, self._amounts_of = amounts_of(end.outcome), state
            self._samples.took(began)
        self._loop.call_soon_threadsafe(self._feed.history.take, sample_of(end, self._amounts))
