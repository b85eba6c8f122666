"""Work that pages ask for and that takes seconds: done now and then, in a share of the time, once for all viewers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pumice.runtime.serving.time_share import TimeShare

_log = logging.getLogger("pumice.run")
#: Not again before so many seconds have passed: after a result, and after none.
_LEAST_S, _RETRY_S = 30.0, 5.0

#: Returns a JSON document. Raises: NoResult.
Ask = Callable[[], Awaitable[Mapping[str, Any]]]


class NoResult(Exception):
    """There is no result: why."""


class SharedWork:
    """``found``: the newest result, empty for none, and ``why_not`` then says why. ``ask``: does the work. ``clock``:
    seconds that never go back. ``changes``: whether the cluster goes on, so that the work is due again when it is done.
    """

    def __init__(self, ask: Ask, clock: Callable[[], float], *, changes: bool) -> None:
        self.found: Mapping[str, Any] = {}
        self.why_not = ""
        self._ask, self._clock, self._changes = ask, clock, changes
        self._done, self._failed = TimeShare(clock, least_s=_LEAST_S), TimeShare(clock, least_s=_RETRY_S)
        self._work: asyncio.Task[None] | None = None

    async def renew(self) -> None:
        """Do the work, if that is due. All who wait get the same."""
        self.begin()
        if self._work is not None:
            # It goes on if this viewer leaves: others wait for it, and it is not due again soon.
            await asyncio.shield(self._work)

    def begin(self) -> None:
        """Begin the work, if that is due, and do not wait for it."""
        is_done = bool(self.found) and not self._changes
        if self._work is None and not is_done and self._done.is_due and self._failed.is_due:
            self._work = asyncio.create_task(self._renew())

    async def _renew(self) -> None:
        began, share = self._clock(), self._failed
        try:
            self.found, self.why_not = await self._ask(), ""
            share = self._done
        except NoResult as error:
            self.found, self.why_not = {}, str(error)
        except Exception:
            _log.exception("pages: work for a page failed")
            self.found, self.why_not = {}, "a fault of this program, which its log has"
        finally:
            share.took(began)
            self._work = None
