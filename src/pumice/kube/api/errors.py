"""What an API server says no with, and what a network does instead of an answer. Each makes one line of text."""

from __future__ import annotations

from typing import Final

import msgspec

_SHOWN_MAX = 400
#: What decoding raises for anything that a server may send, a hundred thousand levels of JSON included.
NO_JSON: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def clean(text: str, length_max: int = _SHOWN_MAX) -> str:
    """Text from elsewhere on one line: no control characters, not too long. Names are made to look like log lines."""
    if len(text) > length_max:
        text = f"{text[:length_max]}…"
    return text if text.isprintable() else "".join(c if c.isprintable() else "�" for c in text)


class KubeError(Exception):
    """Anything that goes wrong between here and an API server."""


class ApiError(KubeError):
    """An answer other than yes. ``reason`` is the server's word for it, such as ``AlreadyExists``; ``causes`` are more
    such words; ``kind`` is the plural of what it is about."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        what: str = "",
        retry_after_s: float | None = None,
        *,
        causes: tuple[str, ...] = (),
        kind: str = "",
    ) -> None:
        super().__init__(status, reason, message, what)
        self.status = status
        self.reason = clean(reason)
        self.message = clean(message)
        self.what = what  # GET /api/v1/pods
        self.retry_after_s = retry_after_s
        self.causes = causes
        self.kind = kind

    def __str__(self) -> str:
        said = f"{self.reason}: {self.message}" if self.reason else self.message
        return f"{self.what}: HTTP {self.status} {said}".strip()

    @property
    def expired(self) -> bool:
        """The resource version, or the continue token, is too old: list anew."""
        return self.status == 410 or self.reason in ("Expired", "Gone")

    @property
    def namespace_goes(self) -> bool:
        """The namespace is being deleted, or is gone: nothing can be made in it, and nobody misses that."""
        return "NamespaceTerminating" in self.causes or (self.status == 404 and self.kind == "namespaces")

    @property
    def may_pass(self) -> bool:
        """Whether the same request may be answered otherwise in a while."""
        return self.status in (408, 429) or self.status >= 500


class Unreachable(KubeError):
    """No answer. ``maybe_applied``: the request may have been carried out all the same."""

    def __init__(self, what: str, why: str, maybe_applied: bool) -> None:
        super().__init__(what, why, maybe_applied)
        self.what = what
        self.why = clean(why)
        self.maybe_applied = maybe_applied

    def __str__(self) -> str:
        return f"{self.what}: no answer: {self.why}"


class TooLarge(KubeError):
    """More than anyone should send. What had been read was thrown away."""

    def __init__(self, what: str, bytes_max: int) -> None:
        super().__init__(what, bytes_max)
        self.what = what
        self.bytes_max = bytes_max

    def __str__(self) -> str:
        return f"{self.what}: more than {self.bytes_max / 1e6:.0f} MB, cut off"


class Garbage(KubeError):
    """Bytes that are no JSON, or no JSON of the kind that was asked for."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what, why)
        self.what = what
        self.why = clean(why)

    def __str__(self) -> str:
        return f"{self.what}: not what an API server sends: {self.why}"


class AccessError(KubeError):
    """There is no way in: kubeconfig missing or wrong, credentials that cannot be had."""
