"""Why kinds are not followed at present, and what of it is logged."""

from __future__ import annotations

import logging
from enum import StrEnum

from msgspec import Struct

from pumice.kube.api.kinds import Kind

_log = logging.getLogger("pumice.kube")


class Cause(StrEnum):
    """Causes. The first two affect every kind."""

    UNREACHABLE = "the API server does not answer"
    CREDENTIALS = "the credentials are not accepted"
    FORBIDDEN = "forbidden"
    MISSING = "not installed"
    FAILS = "fails"


_SHARED = {
    Cause.UNREACHABLE: "the API server responds again",
    Cause.CREDENTIALS: "the API server accepts these credentials again",
}


class _Trouble(Struct, frozen=True):
    cause: Cause
    text: str


class WatchFailures:
    """Failures by kind. A cause is logged once until it is over, whatever its text and however many kinds it affects;
    then its end is logged.

    ``of`` and ``texts`` include failures that are not logged (yet). ``beside``: another follower of the same kinds over
    the same API server, with its own failures. What is logged for one counts for all, and the first one's ``texts``
    include all.
    """

    def __init__(self, beside: WatchFailures | None = None) -> None:
        self._by_kind: dict[str, _Trouble] = {}
        #: Causes that were logged, with the kind, or "" if many share it.
        self._said: set[tuple[Cause, str]] = beside._said if beside is not None else set()
        self._beside: list[WatchFailures] = []
        if beside is not None:
            beside._beside.append(self)

    def of(self, kind: Kind) -> str:
        found = self._by_kind.get(kind.full_name)
        return found.text if found is not None else ""

    def note(self, kind: Kind, cause: Cause, text: str, level: int = logging.WARNING, *, log: bool = True) -> None:
        """Note what is wrong with a kind. ``log``: also log it."""
        self._by_kind[kind.full_name] = _Trouble(cause, text)
        said = cause, "" if cause in _SHARED else kind.full_name
        if log and said not in self._said:
            self._said.add(said)
            _log.log(level, "%s", text)

    def over(self, kind: Kind, text: str = "") -> None:
        """Note that the kind is followed. ``text``: what to log, if there is more to say."""
        if self._by_kind.pop(kind.full_name, None) is None:
            return
        for cause in [cause for cause in _SHARED if (cause, "") in self._said]:
            if all(trouble.cause is not cause for trouble in self._by_kind.values()):
                self._said.discard((cause, ""))
                _log.info("%s", _SHARED[cause])
        own = {(cause, kind.full_name) for cause in Cause} & self._said
        self._said -= own
        if own:
            _log.info("%s", text or f"{kind.full_name}: watched again")

    def forget(self) -> None:
        """Forget all failures, because the kinds are no longer followed."""
        self._by_kind.clear()

    def texts(self) -> list[str]:
        own = {trouble.text for trouble in self._by_kind.values()}
        return sorted(own.union(*(other.texts() for other in self._beside)))
