"""What generators of worlds roll."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


class Dice:
    """Choices of one seed: the same seed, the same choices."""

    def __init__(self, *seed: int) -> None:
        self._rng = np.random.default_rng(seed)  # noqa: TID251 - the seed is the caller's

    def chance(self, share: float) -> bool:
        """Yes in such a share of cases."""
        return bool(self._rng.random() < share)

    def one(self, options: Sequence[T]) -> T:
        """Any of these, each as likely."""
        return options[int(self._rng.integers(len(options)))]

    def number(self, low: int, high: int) -> int:
        """From ``low`` to ``high``, both included."""
        return int(self._rng.integers(low, high + 1))

    def some(self, options: Sequence[T], share: float) -> list[T]:
        """Of these each with such a chance, in their order."""
        return [each for each in options if self.chance(share)]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """All of these in any order."""
        return [options[i] for i in self._rng.permutation(len(options)).tolist()]
