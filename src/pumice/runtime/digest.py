"""A hash of all decisions: equal digests mean equal decisions in equal order."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from pumice.model.decisions import Bind, Decision


class Digest:
    """Add decisions as they are made, and read the hash at any time."""

    def __init__(self) -> None:
        self._hash = sha256()

    def add(self, now: float, decisions: Sequence[Decision]) -> bytes:
        """Return the text that was added. ``now``: time of the cycle that decided. Cycles without decisions do not
        change the hash."""
        if not decisions:
            return b""
        at = repr(now)
        lines = [
            f"{at} {'bind' if isinstance(each, Bind) else f'evict {each.reason}'} {each.pod} {each.node}\n"
            for each in decisions
        ]
        text = "".join(lines).encode()
        self._hash.update(text)
        return text

    @property
    def hex(self) -> str:
        return self._hash.hexdigest()[:32]


def digest_of(now: float, decisions: Sequence[Decision]) -> str:
    """Return the digest of one cycle at ``now`` (seconds since the epoch)."""
    digest = Digest()
    digest.add(now, decisions)
    return digest.hex
