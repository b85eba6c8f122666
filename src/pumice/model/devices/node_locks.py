"""Locks on nodes, by annotation: who gives a pod cards of a node takes it, and the node's device plugin gives it back.

Source: Volcano nodelock (spec 04 §24), which has it from HAMi.
"""

from __future__ import annotations

from collections.abc import Mapping

from pumice.model.instants import epoch_of

#: Nobody gave the lock back: it holds no longer.
LOCK_EXPIRES_S = 300.0
LOCKED = "has been locked within 5 minutes"


def is_locked(annotations: Mapping[str, str], lock: str, now: float) -> bool:
    """Whether a node's lock of that name holds. One whose time cannot be read holds, and does not expire; ``now``:
    seconds since the epoch."""
    written = annotations.get(lock)
    if written is None:
        return False
    taken = epoch_of(written[:64])
    return taken is None or now - taken <= LOCK_EXPIRES_S
