"""When waiting jobs are expected to start, as pages show it: worked out now and then, and shared by all viewers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from pumice.answers.seen import HiddenNames
from pumice.runtime.serving.time_share import TimeShare

_log = logging.getLogger("pumice.run")
#: Not again before so many seconds have passed: starts are hours ahead.
_LEAST_S = 30.0
#: Said of a job that came since, or that has its nodes.
NOT_LOOKED_AT = "not worked out yet for this job"

#: Returns the part of ``pumice explain --all --starts --json`` about starts, with ``at``, from when on they count.
#: Raises: StartsUnknown.
AskStarts = Callable[[], Awaitable[Mapping[str, Any]]]


class StartsUnknown(Exception):
    """Nothing can be said about starts: why."""


class JobStart(Struct, frozen=True):
    """When a job is expected to start, in seconds since the epoch, None for not within the time that was simulated.

    The start is between ``low`` and ``high`` with a probability of 80 %. ``why_not``: why nothing can be said, "" if
    something can.
    """

    middle: float | None = None
    low: float | None = None
    high: float | None = None
    why_not: str = ""


class ExpectedStarts:
    """``ask``: works them out. ``clock``: seconds that never go back. ``changes``: whether the cluster goes on."""

    def __init__(self, ask: AskStarts, clock: Callable[[], float], *, changes: bool) -> None:
        self._ask = ask
        self._share = TimeShare(clock, least_s=_LEAST_S if changes else float("inf"))
        self._clock = clock
        self._work: asyncio.Task[None] | None = None
        self._found: Mapping[str, Any] = {}
        self._why_not = ""

    async def renew(self) -> None:
        """Work them out, if that is due. All who wait get the same."""
        if self._work is None and self._share.is_due:
            self._work = asyncio.create_task(self._renew())
        if self._work is not None:
            # It goes on if this viewer leaves: others wait for it, and it is not due again soon.
            await asyncio.shield(self._work)

    async def _renew(self) -> None:
        began = self._clock()
        try:
            self._found, self._why_not = await self._ask(), ""
        except StartsUnknown as error:
            self._found, self._why_not = {}, str(error)
        except Exception:
            _log.exception("pages: expected starts could not be worked out")
            self._found, self._why_not = {}, "a fault of this program, which its log has"
        finally:
            self._share.took(began)
            self._work = None

    def of(self, job: str) -> JobStart:
        """Return what is expected of a job that waits."""
        found = self._found.get("jobs", {}).get(job)
        if found is None:
            return JobStart(why_not=self._why_not or NOT_LOOKED_AT)
        if found["why_not"]:
            return JobStart(why_not=found["why_not"])
        at = self._found["at"]
        low, high = found["interval_80_s"]
        middle, low, high = (None if each is None else at + each for each in (found["middle_s"], low, high))
        return JobStart(middle, low, high)

    @property
    def basis(self) -> dict[str, Any] | None:
        """Return what they rest on: how many simulations, of how many seconds from when on; None before the first."""
        return {name: self._found[name] for name in ("at", "samples", "until_s")} if self._found else None


class SeenStarts(Struct, frozen=True):
    """Expected starts as a viewer may see them: why nothing can be said names no job of others."""

    starts: ExpectedStarts
    hidden: HiddenNames

    def of(self, job: str) -> JobStart:
        """Return what is expected of a job that waits."""
        found = self.starts.of(job)
        return replace(found, why_not=self.hidden.removed(found.why_not))

    @property
    def basis(self) -> dict[str, Any] | None:
        """Return what they rest on, as ``ExpectedStarts.basis``."""
        return self.starts.basis
