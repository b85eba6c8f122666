"""When the next cycle is due."""

from __future__ import annotations

from dataclasses import dataclass

_LATE_MAX_S = 30.0
_REST = 3  # times the duration of the last cycle, so that constant changes use at most a quarter of a processor


@dataclass(slots=True)
class CycleSchedule:
    """A cycle per period, because time alone may change a decision, and one soon after a change, once there was no
    other for ``settle_s``: the pods of a gang arrive one by one. With constant changes, that may take as long as the
    period and no longer. After failed cycles it waits twice as long each time.

    ``on_change`` False is Volcano's schedule: a period from the end of a cycle to the start of the next, whatever
    happens.

    Times are seconds of any clock that only increases.
    """

    period_s: float
    settle_s: float = 0.05
    on_change: bool = True
    failures: int = 0
    _began: float = float("-inf")
    _ended: float = float("-inf")
    _changed: float | None = None  # time of the last change that no cycle has seen

    def change(self, now: float) -> None:
        """Note a change that may affect a decision."""
        self._changed = now

    @property
    def changed(self) -> bool:
        """True if there was a change since the last cycle began."""
        return self._changed is not None

    def due(self) -> float:
        """Return when to begin the next cycle, as far as known. In the past: now."""
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
        """A cycle begins, and sees everything until now."""
        self._began, self._changed = now, None

    def end(self, now: float, failed: bool = False) -> None:
        """The cycle is over."""
        self._ended = now
        self.failures = min(self.failures + 1, 30) if failed else 0
