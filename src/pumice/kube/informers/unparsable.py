"""Objects of one kind that cannot be read: which they are, why, and what of it is said in the log."""

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
    """An object as it was last seen, and why it could not be read. ``said`` is when the log last had it."""

    key: str
    uid: str
    version: str
    why: str
    said: float


class UnparsableObjects:
    """Each is said when it turns up, when something else is wrong with it, and when it has changed and is no better:
    that at most once a minute, since the status of a pod changes often. No other object is mute for it.

    ``count`` is how many versions were not read. ``told`` hears of what is said, to tell others.
    """

    def __init__(
        self, kind: Kind, told: Callable[[Kind, Unparsable], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.count = 0
        self._kind, self._told, self._clock = kind, told, clock
        self._by_key: dict[str, Unparsable] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def standing(self) -> list[Unparsable]:
        """Those that are there now."""
        return list(self._by_key.values())

    def note(self, bad: BadObject) -> None:
        """A version of an object was not read."""
        before, now = self._by_key.get(bad.key), self._clock()
        if before is not None and (before.uid, before.version, before.why) == (bad.uid, bad.version, bad.why):
            return  # listed again
        self.count += 1
        is_old = before is not None and before.uid == bad.uid and before.why == bad.why
        silent = before is not None and is_old and now - before.said < _AGAIN_S
        said = before.said if before is not None and silent else now
        found = self._by_key[bad.key] = Unparsable(bad.key, bad.uid, bad.version, bad.why, said)
        if not silent:
            _log.error("%s: unreadable, other objects are not affected: %s", self._kind.full_name, bad.why)
            self._told(self._kind, found)

    def read(self, key: str) -> None:
        """It can be read after all."""
        if self._by_key.pop(key, None) is not None:
            _log.info("%s: readable again: %s", self._kind.full_name, key)

    def gone(self, key: str) -> None:
        self._by_key.pop(key, None)

    def keep(self, keys: Iterable[str]) -> None:
        """Of these alone it is known that they are there."""
        kept = set(keys)
        for key in [key for key in self._by_key if key not in kept]:
            del self._by_key[key]
