"""Completed indexes of a Job of Kubernetes, as ranges: how many there are is up to the numbers that a tenant writes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator

#: Digits of the largest index, which is a number of 32 bits.
_DIGITS_MAX = 10


class Indexes:
    """A set of indexes. Source: Kubernetes job controller, orderedIntervals."""

    def __init__(self, ranges: list[tuple[int, int]]) -> None:
        """``ranges``: first and last index of each."""
        self._ranges: list[tuple[int, int]] = []
        for first, last in sorted(ranges):
            if self._ranges and first <= self._ranges[-1][1] + 1:
                begin, end = self._ranges.pop()
                first, last = begin, max(end, last)
            self._ranges.append((first, last))

    @classmethod
    def read(cls, text: str, completions: int) -> Indexes:
        """Read indexes such as ``0-3,7``, those below the number of completions. What is no index is left out."""
        found = []
        for each in text.split(","):
            first, _, last = each.partition("-")
            begin, end = _index(first), _index(last or first)
            if begin is not None and end is not None and begin <= min(end, completions - 1):
                found.append((begin, min(end, completions - 1)))
        return cls(found)

    def __or__(self, others: Collection[int]) -> Indexes:
        return Indexes([*self._ranges, *((each, each) for each in others)])

    def __contains__(self, index: object) -> bool:
        if not isinstance(index, int):
            return False
        at = bisect_right(self._ranges, (index, float("inf"))) - 1
        return at >= 0 and index <= self._ranges[at][1]

    def count(self) -> int:
        """Return how many indexes there are."""
        return sum(last - first + 1 for first, last in self._ranges)

    def missing(self, completions: int) -> Iterator[int]:
        """Yield the indexes below a number that are not among these, in order."""
        free = 0
        for first, last in [*self._ranges, (completions, completions)]:
            yield from range(free, min(first, completions))
            free = last + 1

    def text(self) -> str:
        """Return the indexes as Kubernetes writes them: ``0-3,7``."""
        return ",".join(str(a) if a == b else f"{a},{b}" if b == a + 1 else f"{a}-{b}" for a, b in self._ranges)


def _index(text: str) -> int | None:
    # Python refuses to read numbers of thousands of digits, and this one would be none.
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX else None
