"""Which of two sibling queues goes first. Arrays in, arrays out; units and inf as in ``queue_tree``.

Source: KAI proportion (queue order). Its last rule but one compares shares in all resources at once, so that two queues
may be neither before nor after each other by it: keys alone cannot say it, ``compare_turns`` does.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]

#: What a share of nothing makes of an amount.
_NO_SHARE = 1000.0


def turn_keys(
    allocated: F64, job: F64, victims: F64, fair: F64, quota: F64, share: F64, total: F64, priority: F64
) -> F64:
    """What is compared of queues, one key after the other, smallest first. Shapes (Q, R); ``total`` (R,), ``priority``
    (Q,). Returns (Q, 6).

    ``job``: what the best job of each asks for. ``victims``: what would be taken from it. ``share``: its allocatable
    share. The keys: over its fair share in every resource; beyond its quota with the job; its priority; would hold
    something of which it has no share; dominant share with the job and without the victims; dominant share as it is.
    """
    held = allocated + job
    return np.stack(
        [
            (fair < allocated).all(axis=-1).astype(np.float64),
            (held > quota).any(axis=-1).astype(np.float64),
            -priority,
            ((share == 0) & (held > 0)).any(axis=-1).astype(np.float64),
            _dominant(held - victims, share, total),
            _dominant(allocated, share, total),
        ],
        axis=-1,
    )


def _dominant(amount: F64, share: F64, total: F64) -> F64:
    """The largest part of its share that each holds, of the total where that is unlimited. Shapes (Q, R) -> (Q,)."""
    of = np.where(np.isinf(share), total, share)
    part = np.divide(amount, of, out=amount * _NO_SHARE, where=of != 0)
    largest: F64 = part.max(axis=-1, initial=0.0)
    return largest


def compare_turns(
    left_keys: F64, right_keys: F64, left_share: F64, right_share: F64, left_rank: int, right_rank: int
) -> int:
    """Negative: the left goes first, positive: the right. ``rank``: place by age and name."""
    for left, right in zip(left_keys.tolist(), right_keys.tolist(), strict=True):
        if left != right:
            return -1 if left < right else 1
    at_most, at_least = bool((left_share <= right_share).all()), bool((right_share <= left_share).all())
    if at_most != at_least:
        return -1 if at_most else 1
    return left_rank - right_rank
