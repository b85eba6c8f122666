"""When the next cycle is due."""

from __future__ import annotations

from dataclasses import dataclass

_LATE_MAX_S = 30.0


@dataclass(slots=True)
class Rhythm:
    """A cycle each period, as time alone may change a decision; and one at once when something happened, of those at
    most one a period. After cycles that failed it waits twice as long each time.

    Seconds, of any clock that only goes forward.
    """

    period_s: float
    failures: int = 0
    _began: float = float("-inf")
    _woken: float = float("-inf")  # when a cycle last began because something had happened

    def due(self, news: bool) -> float:
        """When to begin the next cycle. In the past: now."""
        if self.failures:
            return self._began + min(self.period_s * 2.0**self.failures, max(_LATE_MAX_S, self.period_s))
        regular = self._began + self.period_s
        return min(regular, self._woken + self.period_s) if news else regular

    def begin(self, now: float, news: bool) -> None:
        """A cycle begins."""
        self._began = now
        if news:
            self._woken = now

    def end(self, failed: bool) -> None:
        """It is over."""
        self.failures = min(self.failures + 1, 30) if failed else 0
