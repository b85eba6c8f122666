"""Numbers that look random and are the same for the same keys: what rolls them keeps no state, so they can be asked in
any order and taken back."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import numpy.typing as npt

_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def rolled(seed: int, name: str, items: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    """A number from 0 to below 1 for each item, by seed, name and item. Source: splitmix64, Steele et al., 2014.

    Shape: that of ``items``.
    """
    start = ((seed & 0xFFFF_FFFF) << 32 | crc32(name.encode())) * _STEP % 2**64
    with np.errstate(over="ignore"):
        found = np.uint64(start) ^ (items.astype(np.uint64) + np.uint64(1)) * np.uint64(_STEP)
        found = (found ^ (found >> np.uint64(30))) * np.uint64(_FIRST)
        found = (found ^ (found >> np.uint64(27))) * np.uint64(_SECOND)
        found = found ^ (found >> np.uint64(31))
    return np.asarray((found >> np.uint64(11)).astype(np.float64) / 2.0**53)
