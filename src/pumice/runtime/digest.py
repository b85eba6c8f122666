"""One hash for everything that was decided: equal digests mean equal decisions, in equal order."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from pumice.model.decisions import Bind, Decision


class Digest:
    """Add decisions as they come, read the hash at any time."""

    def __init__(self) -> None:
        self._hash = sha256()

    def add(self, now: float, decisions: Iterable[Decision]) -> None:
        """``now``: moment of the cycle that decided. Cycles that decide nothing leave no mark."""
        for decision in decisions:
            kind = "bind" if isinstance(decision, Bind) else f"evict {decision.reason}"
            self._hash.update(f"{now!r} {kind} {decision.pod} {decision.node}\n".encode())

    @property
    def hex(self) -> str:
        return self._hash.hexdigest()[:32]
