"""Writes that are not confirmed yet, so that nothing is written twice."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from pumice.kube.api.errors import NO_JSON

_DIGITS_MAX = 100  # of two resource versions together; the server's text is not trusted


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Answer(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


_answer_decoder = msgspec.json.Decoder(_Answer)


def version_of(raw: bytes) -> str:
    """Return the resource version of an object in an answer, "" if there is none."""
    try:
        return _answer_decoder.decode(raw).metadata.resource_version
    except NO_JSON:
        return ""


def is_older(version: str, other: str) -> bool:
    """Return True if a resource version is older than another one of the same object. Unknown ones are older than
    any."""
    if version.isdecimal() and other.isdecimal() and len(version) + len(other) < _DIGITS_MAX:
        return int(version) < int(other)
    return version != other


class PendingWrites:
    """The last write to each object, until its echo arrives. Usable from any thread.

    Other writes to the object are not delayed. A write is forgotten when a version of the object arrives that is not
    older than the one written, or after ``keep_s``, because then the echo was lost.
    """

    def __init__(self, keep_s: float, clock: Callable[[], float]) -> None:
        self._keep_s, self._clock = keep_s, clock
        self._by_key: dict[str, tuple[object, str, float]] = {}

    def begin(self, key: str, content: object) -> bool:
        """Note that this will be written. Return False if it has been, or will be."""
        last = self._by_key.get(key)
        if last is not None and last[0] == content and self._clock() - last[2] < self._keep_s:
            return False
        self._by_key[key] = (content, "", self._clock())
        return True

    def done(self, key: str, content: object, version: str, known: str) -> None:
        """Note that it was written as ``version``. ``known``: the version that arrived last."""
        last = self._by_key.get(key)
        if last is None or last[0] != content:
            return
        if is_older(known, version):
            self._by_key[key] = (content, version, self._clock())
        else:
            del self._by_key[key]  # the echo arrived before the answer

    def failed(self, key: str, content: object) -> None:
        """Note that it was not written."""
        last = self._by_key.get(key)
        if last is not None and last[0] == content:
            del self._by_key[key]

    def observe(self, key: str, version: str) -> bool:
        """Note that this version of the object arrived. Return True if it is the echo of the write."""
        last = self._by_key.get(key)
        if last is None or not last[1] or is_older(version, last[1]):
            return False
        self._by_key.pop(key, None)
        return version == last[1]

    def content(self, key: str) -> object:
        """Return the content of the last write to an object that has no echo yet, or None."""
        last = self._by_key.get(key)
        return None if last is None else last[0]

    def is_newest(self, key: str, content: object) -> bool:
        """Return True if this is the last write that was begun, and it is not done yet."""
        last = self._by_key.get(key)
        return last is not None and last[0] == content

    def is_under_way(self, key: str) -> bool:
        """Return True if a write to the object has no echo yet."""
        return key in self._by_key

    def gone(self, key: str) -> None:
        self._by_key.pop(key, None)
