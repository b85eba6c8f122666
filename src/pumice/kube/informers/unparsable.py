"""Objects of one kind that cannot be read: which ones, why, and what is logged."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pumice.kube.api.codec import BadObject
from pumice.kube.api.kinds import Kind

_log = logging.getLogger("pumice.kube")
_AGAIN_S = 60.0


@dataclass(slots=True)
class Unparsable:
    """An object as last seen, and why it could not be read. ``logged_at``: when it was last logged."""

    key: str
    uid: str
    version: str
    why: str
    logged_at: float


class UnparsableObjects:
    """Logs each object when it appears, when another error is found, and when it has changed without improvement. The
    last at most once a minute, because the status of a pod changes often. The limit holds per object.

    ``count``: number of versions that were not read. ``on_unparsable``: called with what is logged.
    """

    def __init__(
        self, kind: Kind, on_unparsable: Callable[[Kind, Unparsable], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.count = 0
        self._kind, self._on_unparsable, self._clock = kind, on_unparsable, clock
        self._by_key: dict[str, Unparsable] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def current(self) -> list[Unparsable]:
        """Return the objects that exist at present."""
        return list(self._by_key.values())

    def note(self, bad: BadObject) -> None:
        """Note a version of an object that was not read."""
        before, now = self._by_key.get(bad.key), self._clock()
        if before is not None and (before.uid, before.version, before.why) == (bad.uid, bad.version, bad.why):
            return  # listed again, and logged before
        self.count += 1
        is_old = before is not None and before.uid == bad.uid and before.why == bad.why
        silent = before is not None and is_old and now - before.logged_at < _AGAIN_S
        logged_at = before.logged_at if before is not None and silent else now
        found = self._by_key[bad.key] = Unparsable(bad.key, bad.uid, bad.version, bad.why, logged_at)
        if not silent:
            _log.error("%s: unreadable, other objects are not affected: %s", self._kind.full_name, bad.why)
            self._on_unparsable(self._kind, found)

    def read(self, key: str) -> None:
        """Note that an object can be read again."""
        if self._by_key.pop(key, None) is not None:
            _log.info("%s: readable again: %s", self._kind.full_name, key)

    def gone(self, key: str) -> None:
        self._by_key.pop(key, None)

    def keep(self, keys: Iterable[str]) -> None:
        """Note that only these objects exist."""
        kept = set(keys)
        for key in [key for key in self._by_key if key not in kept]:
            del self._by_key[key]
