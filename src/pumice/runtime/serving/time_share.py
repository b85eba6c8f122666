"""A share of a thread's time for work that must not keep others waiting."""

from __future__ import annotations

from collections.abc import Callable

#: After work that took t seconds none is due for so many times t: it takes at most 1/20 of the time.
SHARE = 20.0


class TimeShare:
    """Says when work is due again. ``clock``: seconds that never go back. ``times``: see SHARE.

    ``least_s``: it is not due again before so many seconds have passed, however fast it was. ``ahead_s``: it is due so
    many seconds earlier, so that the second of a few changes need not wait; the share holds on average.
    """

    def __init__(
        self, clock: Callable[[], float], times: float = SHARE, least_s: float = 0.0, ahead_s: float = 0.0
    ) -> None:
        self._clock, self._times, self._least_s, self._ahead_s = clock, times, least_s, ahead_s
        self._not_before = 0.0

    @property
    def is_due(self) -> bool:
        return self._clock() >= self._not_before - self._ahead_s

    def took(self, began: float) -> None:
        """Note that work ends now. ``began``: when it did, by the clock."""
        ended = self._clock()
        self._not_before = max(ended, self._not_before) + max(self._least_s, self._times * (ended - began))
