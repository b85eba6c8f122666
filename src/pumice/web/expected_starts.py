"""When waiting jobs are expected to start, as pages show it: worked out now and then, and shared by all viewers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from pumice.answers.seen import HiddenNames
from pumice.web.shared_work import Ask, SharedWork

#: Said of a job that came since, or that has its nodes.
NOT_LOOKED_AT = "not worked out yet for this job"


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
    """``ask``: returns the part of ``pumice explain --all --starts --json`` about starts, with ``at``, from which they
    count. ``clock``, ``changes``: as for ``SharedWork``."""

    def __init__(self, ask: Ask, clock: Callable[[], float], *, changes: bool) -> None:
        self._work = SharedWork(ask, clock, changes=changes)

    async def renew(self) -> None:
        """Work them out, if that is due. All who wait get the same."""
        await self._work.renew()

    def of(self, job: str) -> JobStart:
        """Return what is expected of a job that waits."""
        found = self._work.found.get("jobs", {}).get(job)
        if found is None:
            return JobStart(why_not=self._work.why_not or NOT_LOOKED_AT)
        if found["why_not"]:
            return JobStart(why_not=found["why_not"])
        at = self._work.found["at"]
        low, high = found["interval_80_s"]
        middle, low, high = (None if each is None else at + each for each in (found["middle_s"], low, high))
        return JobStart(middle, low, high)

    @property
    def basis(self) -> dict[str, Any] | None:
        """Return what they rest on: how many simulations, of how many seconds from when on; None before the first."""
        found: Mapping[str, Any] = self._work.found
        return {name: found[name] for name in ("at", "samples", "until_s")} if found else None


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
