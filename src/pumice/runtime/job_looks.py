"""Looks at all jobs after cycles, for a table of what happened to each over time, and notes of it in a snapshot."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from pumice.answers.codes import Code
from pumice.runtime.cycle_end import CycleEnd, state_of
from pumice.runtime.job_times import JobTimes, job_states
from pumice.runtime.serving.time_share import TimeShare

_log = logging.getLogger("pumice.run")
#: At most 1/100 of the time of the thread of cycles: looks are made while no one reads them too.
SHARE = 100.0
#: Prefix of notes: for how many seconds a job that waits has waited for the reason of a code.
_WAITED = "waited "


class JobLooks:
    """``take`` is called in the thread of cycles, and hands looks to ``times`` in the thread of the event loop.

    ``clock``: seconds that never go back. ``always``: each cycle that changed something is looked at.
    """

    def __init__(
        self,
        times: JobTimes,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], float],
        *,
        always: bool = False,
    ) -> None:
        self._times, self._loop, self._clock, self._always = times, loop, clock, always
        self._share = TimeShare(clock, SHARE)
        self._seen: object = None

    def take(self, end: CycleEnd) -> None:
        """Take a cycle that ended. What it changed may be seen with a later one."""
        state = state_of(end.outcome)
        if state == self._seen or not (self._always or self._share.is_due):
            return
        began, self._seen = self._clock(), state
        try:
            self._loop.call_soon_threadsafe(self._times.take, job_states(end.outcome))
        except Exception:
            # Times that are not counted are a smaller evil than a cycle that counts as failed.
            _log.exception("times of jobs: a cycle could not be looked at")
        self._share.took(began)


def waited_notes(times: JobTimes, until: float) -> dict[str, float]:
    """Return notes of how long each job that waits has waited for which reason. ``until``: as in ``JobTimes.of``."""
    return {f"{_WAITED}{code} {name}": seconds for name, code, seconds in times.waits(until)}


def waited_in(notes: Mapping[str, float], job: str) -> dict[Code, float]:
    """Return for how many seconds a job waited for each reason, the longest first, empty where no notes say so."""
    found = {code: notes.get(f"{_WAITED}{code.value} {job}", 0.0) for code in Code}
    return dict(sorted(((code, each) for code, each in found.items() if each > 0.0), key=lambda item: -item[1]))
