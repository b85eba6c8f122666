"""Locks of nodes, in annotations. Binding a pod to shared cards takes the lock, and the node's device plugin releases
it.

Source: Volcano nodelock, which comes from HAMi.
"""

from __future__ import annotations

from collections.abc import Mapping

from pumice.model.instants import epoch_of

#: Seconds after which a lock that was not released expires. Source: Volcano nodelock.
LOCK_EXPIRES_S = 300.0
LOCKED = "has been locked within 5 minutes"


def is_locked(annotations: Mapping[str, str], lock: str, now: float) -> bool:
    """Return True if the lock of this name is held at ``now`` (seconds since the epoch)."""
    written = annotations.get(lock)
    if written is None:
        return False
    taken = epoch_of(written[:64])
    # A time that cannot be read does not expire: it is safer to wait than to bind two pods at once.
    return taken is None or now - taken <= LOCK_EXPIRES_S
