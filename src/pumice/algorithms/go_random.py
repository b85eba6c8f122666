"""The numbers that Go's ``math/rand`` gives for a seed, to repeat experiments of Go programs.

The generator is additive: y(n) = y(n - 607) + y(n - 273), modulo 2^64. The state of a seed comes from a Lehmer
generator, and is mixed with the state that the sequence of seed 1 has after 7.8e12 steps.
Source: the documentation of Go's ``math/rand``, which promises the sequence of a seed for all of Go 1; Knuth, The Art
of Computer Programming, 3.2.2.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]

_LENGTH, _SHORT = 607, 273
_MIXED_STEPS = 7_800_000_000_000
_LEHMER, _LEHMER_MODULUS = 48271, 2**31 - 1
#: Go's seed in place of 0, for which a Lehmer generator gives zeros only.
_ZERO_SEED = 89482311
#: The number of first values of the Lehmer generator that Go drops.
_UNUSED = 20
_MASK = 2**64 - 1


class GoRandom:
    """The sequence of a seed. Each method takes as many numbers from it as the function does in Go."""

    __slots__ = ("_at", "_state")

    def __init__(self, seed: int) -> None:
        self._state = _in_order([a ^ b for a, b in zip(_words(seed, 40, 20), _mixed(), strict=True)])
        self._at = 0

    def uint64(self) -> int:
        """Return a number from 0 to 2^64 - 1."""
        at, state = self._at, self._state
        state[at] = found = (state[at] + state[at - _SHORT]) & _MASK
        self._at = (at + 1) % _LENGTH
        return found

    def int63(self) -> int:
        """Return a number from 0 to 2^63 - 1."""
        return self.uint64() & (1 << 63) - 1

    def below(self, count: int) -> int:
        """Return a number from 0 to count - 1, as ``Intn`` does for counts up to 2^31 - 1."""
        # A power of 2 divides the range evenly, so no number has to be rejected.
        if count & (count - 1) == 0:
            return self.int63() >> 32 & (count - 1)
        # Numbers above the last whole multiple are drawn again: the first remainders would be more likely otherwise.
        limit = 2**31 - 1 - 2**31 % count
        while (found := self.int63() >> 32) > limit:
            pass
        return found % count

    def shuffled(self, count: int) -> list[int]:
        """Return the numbers 0 to count - 1 in an order of ``Shuffle``."""
        order = list(range(count))
        for last in range(count - 1, 0, -1):
            other = self._scaled(last + 1)
            order[last], order[other] = order[other], order[last]
        return order

    def permutation(self, count: int) -> list[int]:
        """Return the numbers 0 to count - 1 in an order of ``Perm``."""
        order: list[int] = []
        for last in range(count):
            other = self.below(last + 1)
            order.append(last)
            order[last], order[other] = order[other], last
        return order

    def _scaled(self, count: int) -> int:
        """Return a number from 0 to count - 1, as ``Shuffle`` draws it (and not as ``Intn``).

        Source: Lemire, Fast random integer generation, 2019.
        """
        product = (self.int63() >> 31) * count
        if product & 0xFFFFFFFF < count:
            unfair = (2**32 - count) % count
            while product & 0xFFFFFFFF < unfair:
                product = (self.int63() >> 31) * count
        return product >> 32


def _words(seed: int, high: int, low: int) -> list[int]:
    """Return the words of a seed: each is made of three Lehmer numbers, two of them shifted by ``high`` and ``low``."""
    x = seed % _LEHMER_MODULUS or _ZERO_SEED
    for _ in range(_UNUSED):
        x = x * _LEHMER % _LEHMER_MODULUS
    words = []
    for _ in range(_LENGTH):
        word = 0
        for shift in (high, low, 0):
            x = x * _LEHMER % _LEHMER_MODULUS
            word ^= x << shift
        words.append(word & _MASK)
    return words


def _in_order(words: list[int]) -> list[int]:
    """Convert a state from Go's order to that of the sequence, oldest number first, or back."""
    # Go runs through its table backwards. The conversion is a reflection, so it is its own inverse.
    return [words[(_LENGTH - _SHORT - 1 - i) % _LENGTH] for i in range(_LENGTH)]


@lru_cache(maxsize=1)
def _mixed() -> tuple[int, ...]:
    """Return the words with which all seeds are mixed, in Go's order."""
    # Go has them as a table of 607 numbers. Here they are computed: step n of a linear recurrence is a combination of
    # its first terms, with the coefficients of x^n modulo the polynomial of the recurrence.
    known = np.array(_in_order(_words(1, 20, 10)), dtype=np.uint64)
    terms = np.empty(2 * _LENGTH, dtype=np.uint64)
    terms[:_LENGTH] = known
    for i in range(_LENGTH, 2 * _LENGTH):
        terms[i] = terms[i - _LENGTH] + terms[i - _SHORT]
    power = _power_of_x(_MIXED_STEPS)
    later = [int((power * terms[i : i + _LENGTH]).sum(dtype=np.uint64)) for i in range(_LENGTH)]
    # Go's position in its table after so many steps is not the beginning.
    turned = _MIXED_STEPS % _LENGTH
    return tuple(_in_order(later[-turned:] + later[:-turned]))


def _power_of_x(exponent: int) -> U64:
    """Return the coefficients of x^exponent modulo x^607 - x^334 - 1, and modulo 2^64. Shape (607,)."""
    # By squaring: 43 multiplications of polynomials instead of 7.8e12 steps.
    found = np.zeros(_LENGTH, dtype=np.uint64)
    found[0] = 1
    for bit in bin(exponent)[2:]:
        found = _reduced(np.convolve(found, found))
        if bit == "1":
            found = _reduced(np.concatenate((np.zeros(1, dtype=np.uint64), found)))
    return found


def _reduced(terms: U64) -> U64:
    """Return a polynomial modulo x^607 - x^334 - 1. Shape (607,)."""
    # From the highest terms down, so many at a time that none of them is added to another of them.
    while (count := len(terms) - _LENGTH) > 0:
        first = max(_LENGTH, len(terms) - _SHORT)
        top = terms[first:]
        terms = terms[:first].copy()
        terms[first - _LENGTH : first - _LENGTH + len(top)] += top
        terms[first - _SHORT : first - _SHORT + len(top)] += top
        assert len(terms) < count + _LENGTH
    return terms
