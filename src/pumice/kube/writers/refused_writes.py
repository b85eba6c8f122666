"""Objects whose writes are refused: each is retried at growing intervals, and logged once until it succeeds."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from pumice.kube.api.rate_limit import RateLimit

_log = logging.getLogger("pumice.kube")
_FIRST_S, _LAST_S = 1.0, 60.0
_LOGGED_MAX = 10_000


class RefusedWrites:
    """``what``: what is written, such as ``status of PodGroup``. Keys are of one kind. Usable from any thread."""

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._rate_limit = RateLimit(_FIRST_S, _LAST_S, rate=0.0, clock=clock)
        self._logged: dict[str, None] = {}

    def holds_back(self, key: str) -> bool:
        """Return True if it is too soon to try again."""
        return self._rate_limit.left_s(key) > 0

    def refused(self, key: str, why: object) -> None:
        """Note a refused write."""
        delay = self._rate_limit.delay(key)
        if key in self._logged:
            _log.debug("%s %s not written: %s; next attempt in %.0f s", self._what, key, why, delay)
            return
        if len(self._logged) >= _LOGGED_MAX:
            self._logged.clear()
        self._logged[key] = None
        _log.warning("%s %s not written: %s; retried at longer and longer intervals", self._what, key, why)

    def written(self, key: str) -> None:
        """Note a successful write."""
        self._rate_limit.forget(key)
        if key in self._logged:
            del self._logged[key]
            _log.info("%s %s written", self._what, key)

    def gone(self, key: str) -> None:
        self._rate_limit.forget(key)
        self._logged.pop(key, None)
