"""Pods whose eviction was refused. For a while, no plan rests on their eviction.

A disruption budget, or a busy server, can refuse an eviction for hours. If the pod remained a candidate, a plan would
rest on it, and evict the other pods that it needs in vain. So the pod itself is marked as staying, for a second at
first, and for up to ten minutes in the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec.structs import replace

from pumice.kube.api.rate_limit import RateLimit
from pumice.model.pod import Pod

_FIRST_S, _LAST_S = 1.0, 600.0
_PODS_MAX = 100_000


class RefusedEvictions:
    """Pods by key, with UID. Not for several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate_limit = RateLimit(_FIRST_S, _LAST_S, rate=0.0, clock=clock)
        self._uids: dict[str, str] = {}

    def refused(self, key: str, uid: str) -> None:
        """Note another refused eviction of a pod."""
        self._rate_limit.delay(key)
        if len(self._uids) < _PODS_MAX:
            self._uids[key] = uid

    def gone(self, key: str) -> None:
        """Note that the pod no longer exists."""
        self._rate_limit.forget(key)
        self._uids.pop(key, None)

    def marked(self, pod: Pod) -> Pod:
        """Return the pod, with the mark if it is spared at present."""
        spared = self._uids.get(pod.key) == pod.uid
        return pod if pod.stays == spared else replace(pod, stays=spared)

    def over(self) -> list[str]:
        """Return pods that are no longer spared. If their eviction is refused again, they are spared for twice as
        long."""
        found = [key for key in self._uids if not self._rate_limit.left_s(key)]
        for key in found:
            del self._uids[key]
        return found
