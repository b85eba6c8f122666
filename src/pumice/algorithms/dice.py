"""Pseudo-random numbers by key, without state: the same key always has the same number.

So they can be drawn in any order, and a rollback has nothing to restore.
"""

from __future__ import annotations

from zlib import crc32

import numpy as np
import numpy.typing as npt

_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def rolled(seed: int, name: str, items: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    """Return a number from 0 to below 1 for each item, depending on seed, name and item.

    Shape: that of ``items``. Source: splitmix64, Steele et al., 2014.
    """
    # crc32 and not hash(), which is salted anew in each process.
    start = ((seed & 0xFFFF_FFFF) << 32 | crc32(name.encode())) * _STEP % 2**64
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is meant
        found = np.uint64(start) ^ (items.astype(np.uint64) + np.uint64(1)) * np.uint64(_STEP)
        found = (found ^ (found >> np.uint64(30))) * np.uint64(_FIRST)
        found = (found ^ (found >> np.uint64(27))) * np.uint64(_SECOND)
        found = found ^ (found >> np.uint64(31))
    # The upper 53 bits: as many as a float holds exactly, so that the result is less than 1.
    return np.asarray((found >> np.uint64(11)).astype(np.float64) / 2.0**53)
