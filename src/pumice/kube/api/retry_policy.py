"""How long to wait for an API server that does not answer, or refuses, and when to believe a refusal.

A server that has just been started, and a cluster in which this was just installed, refuse at first what they allow
later, because roles, definitions and caches appear one after the other. So in the first minute after an outage, or of
this process, a refused request is repeated soon.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from msgspec import Struct

from pumice.kube.api.backoff import Backoff


class RetryPolicy(Struct, frozen=True):
    """Delays of a reflector, in seconds.

    Delays double from ``first_s``: to ``unreachable_last_s`` if there is no answer, since asking costs almost nothing;
    to ``soon_last_s`` in the first ``soon_s`` of refusals; to ``last_s`` after that. ``missing_s``: then between checks
    for a kind that is not installed or not allowed. ``believed_s``: a refusal that has lasted for this time is
    reported, and an optional kind is no longer waited for. ``watch_s``: the server ends a watch after this time to
    twice this time.
    """

    first_s: float = 0.2
    unreachable_last_s: float = 3.0
    soon_s: float = 60.0
    soon_last_s: float = 2.0
    last_s: float = 30.0
    missing_s: float = 30.0
    believed_s: float = 3.0
    watch_s: float = 300.0


class RetryDelays:
    """The delays of one reflector, one after the other."""

    def __init__(self, retry_policy: RetryPolicy, clock: Callable[[], float] = time.monotonic) -> None:
        self._retry_policy, self._clock = retry_policy, clock
        self.succeeded()

    def succeeded(self) -> None:
        """Note success: the next problem is a first one."""
        p = self._retry_policy
        self._unreachable = Backoff(p.first_s, p.unreachable_last_s)
        self._soon = Backoff(p.first_s, p.soon_last_s)
        self._late = Backoff(p.first_s, p.last_s)
        self._refused_since: float | None = None
        self._relisted = False

    def unreachable(self) -> float:
        """Note that there was no answer. The next server to answer may have just been started."""
        delay = self._unreachable.next()
        self._refused_since, self._relisted = None, False
        return delay

    def refused(self, *, lasting: bool, at_least_s: float | None = None) -> float:
        """Note a refusal. ``lasting``: a right or a kind must be added; otherwise it may pass by itself."""
        if self._refused_since is None:
            p = self._retry_policy
            self._refused_since = self._clock()
            self._unreachable, self._soon = Backoff(p.first_s, p.unreachable_last_s), Backoff(p.first_s, p.soon_last_s)
        if self.refused_s < self._retry_policy.soon_s:
            return self._soon.next(at_least_s)
        if lasting:
            return self._retry_policy.missing_s * (0.5 + random.random())
        return self._late.next(at_least_s)

    @property
    def refused_s(self) -> float:
        """Seconds since the first refusal."""
        return self._clock() - self._refused_since if self._refused_since is not None else 0.0

    @property
    def believed(self) -> bool:
        """True if the refusal has lasted long enough to be believed."""
        return self._refused_since is not None and self.refused_s >= self._retry_policy.believed_s

    def relist(self) -> float:
        """Note that everything must be read again: at once, unless that was done last time without success."""
        helped, self._relisted = not self._relisted, True
        return 0.0 if helped else self._late.next()
