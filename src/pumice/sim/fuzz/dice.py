"""Random choices of generators of worlds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


class Dice:
    """Choices by seed: equal seeds give equal choices."""

    def __init__(self, *seed: int) -> None:
        self._rng = np.random.default_rng(seed)  # noqa: TID251 - the seed is the caller's

    def chance(self, share: float) -> bool:
        """Return True with this probability."""
        return bool(self._rng.random() < share)

    def one(self, options: Sequence[T]) -> T:
        """Return one option; all are equally likely."""
        return options[int(self._rng.integers(len(options)))]

    def number(self, low: int, high: int) -> int:
        """Return a number from ``low`` to ``high``, both included."""
        return int(self._rng.integers(low, high + 1))

    def some(self, options: Sequence[T], share: float) -> list[T]:
        """Return options, each with this probability, in their order."""
        return [each for each in options if self.chance(share)]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """Return all options in random order."""
        return [options[i] for i in self._rng.permutation(len(options)).tolist()]
