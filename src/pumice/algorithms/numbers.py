"""Numbers for values, in bounded memory."""

from __future__ import annotations

from collections.abc import Hashable


class Numbers:
    """Numbers for values: equal numbers mean equal values.

    If there are too many values, all are forgotten. A value gets another number then, so equal values can have unequal
    numbers. Callers share work between equal numbers, so that costs time and is not wrong.
    """

    MAX = 65_536

    def __init__(self) -> None:
        self._next = 0
        self._of: dict[Hashable, int] = {}

    def of(self, value: Hashable) -> int:
        """Return the number of a value, a new one if it has none."""
        found = self._of.get(value)
        if found is None:
            if len(self._of) >= self.MAX:
                self._of.clear()
            # Not from 0 again: numbers from before are still in columns. They are int32, hence the modulus.
            found = self._of[value] = self._next
            self._next = (self._next + 1) % 2**31
        return found
