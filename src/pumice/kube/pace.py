"""How soon to try one thing again, and how often to try anything at all.

Source: Volcano's rate limit of its resync queue: the longer of an exponential delay a key and a token bucket for all.
"""

from __future__ import annotations

from collections import OrderedDict

from pumice.kube.backoff import TokenBucket


class Pace:
    """Delays that double from ``first_s`` to ``last_s`` for each key, and ``rate`` a second for all with ``burst``.

    Remembers at most ``keys_max`` keys; the one that failed longest ago is forgotten first.
    """

    def __init__(
        self,
        first_s: float = 0.005,
        last_s: float = 30.0,
        rate: float = 100.0,
        burst: float = 1000.0,
        keys_max: int = 100_000,
    ) -> None:
        self._first_s, self._last_s, self._keys_max = first_s, last_s, keys_max
        self._bucket = TokenBucket(rate, burst)
        self._next_s: OrderedDict[str, float] = OrderedDict()

    def delay(self, key: str, at_least_s: float | None = None) -> float:
        """Seconds to wait now; not less than what the server asked for."""
        own = self._next_s.pop(key, self._first_s)
        self._next_s[key] = min(2 * own, self._last_s)
        if len(self._next_s) > self._keys_max:
            self._next_s.popitem(last=False)
        return max(own, self._bucket.wait_s(), min(at_least_s or 0.0, self._last_s))

    def forget(self, key: str) -> None:
        """It went well: the next failure is a first one."""
        self._next_s.pop(key, None)
