"""How soon to retry something, and how often to try anything.

Source: Volcano's rate limit of its resync queue: the longer of an exponential delay per key and a token bucket for all.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from pumice.kube.api.backoff import TokenBucket

_KEYS_MAX = 100_000


class RateLimit:
    """Delays that double from ``first_s`` to ``last_s`` for each key, and ``rate`` per second for all, with ``burst``.

    Rate 0: no limit. With very many keys, the key that failed longest ago is forgotten first.
    """

    def __init__(
        self,
        first_s: float = 0.005,
        last_s: float = 30.0,
        rate: float = 100.0,
        burst: float = 1000.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._first_s, self._last_s, self._clock = first_s, last_s, clock
        self._bucket = TokenBucket(rate, burst)
        self._failed: OrderedDict[str, tuple[float, float]] = OrderedDict()  # delay, and its end

    def delay(self, key: str) -> float:
        """Note a failure. Return how many seconds to wait before the next attempt."""
        last, _ = self._failed.pop(key, (0.0, 0.0))
        delay = min(2 * last, self._last_s) if last else self._first_s
        self._failed[key] = delay, self._clock() + delay
        if len(self._failed) > _KEYS_MAX:
            self._failed.popitem(last=False)
        return max(delay, self._bucket.wait_s())

    def left_s(self, key: str) -> float:
        """Return how many seconds of the key's last delay are left."""
        found = self._failed.get(key)
        return max(0.0, found[1] - self._clock()) if found is not None else 0.0

    def forget(self, key: str) -> None:
        """Note a success: the next failure is a first one."""
        self._failed.pop(key, None)
