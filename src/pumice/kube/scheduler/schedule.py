"""When the next cycle is due."""

from __future__ import annotations

from dataclasses import dataclass

_LATE_MAX_S = 30.0
_REST = 3  # times as long as the last cycle took: what changes all the time has a quarter of a processor at most


@dataclass(slots=True)
class CycleSchedule:
    """A cycle each period, as time alone may change a decision; and one soon after something happened, once no more
    has for ``settle_s``: the pods of a gang come one by one. While changes pour in that may take as long as the period,
    and no longer. After cycles that failed it waits twice as long each time.

    ``on_change`` False is Volcano's rhythm: a period from the end of a cycle to the beginning of the next, whatever
    happens meanwhile.

    Seconds, of any clock that only goes forward.
    """

    period_s: float
    settle_s: float = 0.05
    on_change: bool = True
    failures: int = 0
    _began: float = float("-inf")
    _ended: float = float("-inf")
    _changed: float | None = None  # when something last happened that no cycle has seen

    def change(self, now: float) -> None:
        """Something happened that may change a decision."""
        self._changed = now

    @property
    def changed(self) -> bool:
        """Whether something happened since the last cycle began."""
        return self._changed is not None

    def due(self) -> float:
        """When to begin the next cycle, by what is known so far. In the past: now."""
        if self.failures:
            return self._began + min(self.period_s * 2.0**self.failures, max(_LATE_MAX_S, self.period_s))
        if not self.on_change:
            return self._ended + self.period_s
        regular = self._began + self.period_s
        if self._changed is None:
            return regular
        rested = self._ended + _REST * (self._ended - self._began) if self._ended > self._began else self._ended
        return min(regular, max(self._changed + self.settle_s, rested))

    def begin(self, now: float) -> None:
        """A cycle begins: it sees everything that happened until now."""
        self._began, self._changed = now, None

    def end(self, now: float, failed: bool = False) -> None:
        """It is over."""
        self._ended = now
        self.failures = min(self.failures + 1, 30) if failed else 0
