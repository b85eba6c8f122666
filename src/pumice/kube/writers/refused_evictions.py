"""Pods whose eviction was refused: for a while nobody counts on their leaving.

A disruption budget, or a server that is too busy, can refuse an eviction for hours. Were the pod still a candidate, a
plan would count on it, and evict the others that it needs for nothing. So it is said of the pod itself that it stays,
for a second at first and for up to ten minutes in the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec.structs import replace

from pumice.kube.api.rate_limit import RateLimit
from pumice.model.pod import Pod

_FIRST_S, _LAST_S = 1.0, 600.0
_SPARED_MAX = 100_000


class RefusedEvictions:
    """By key, with the uid of the pod that is meant. Not for several threads at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._pace = RateLimit(_FIRST_S, _LAST_S, rate=0.0, clock=clock)
        self._uids: dict[str, str] = {}

    def refused(self, key: str, uid: str) -> None:
        """The eviction of a pod was refused once more."""
        self._pace.delay(key)
        if len(self._uids) < _SPARED_MAX:
            self._uids[key] = uid

    def gone(self, key: str) -> None:
        """There is no such pod any more."""
        self._pace.forget(key)
        self._uids.pop(key, None)

    def marked(self, pod: Pod) -> Pod:
        """The pod, with the mark if it is spared now."""
        spared = self._uids.get(pod.key) == pod.uid
        return pod if pod.stays == spared else replace(pod, stays=spared)

    def over(self) -> list[str]:
        """Pods that are spared no longer from now on. If their eviction is refused again, it is for twice as long."""
        found = [key for key in self._uids if not self._pace.left_s(key)]
        for key in found:
            del self._uids[key]
        return found
