"""Equal numbers for equal values, in bounded room."""

from __future__ import annotations

from collections.abc import Hashable


class Numbers:
    """Numbers for equal values. Forgets all values when there are too many; a value then gets a new number, which costs
    sharing and nothing else."""

    MAX = 65_536

    def __init__(self) -> None:
        self._next = 0
        self._of: dict[Hashable, int] = {}

    def of(self, value: Hashable) -> int:
        found = self._of.get(value)
        if found is None:
            if len(self._of) >= self.MAX:
                self._of.clear()
            found = self._of[value] = self._next
            self._next = (self._next + 1) % 2**31
        return found
