"""Errors of an API server and of the network. Each has one line of text."""

from __future__ import annotations

from typing import Final

import msgspec

_SHOWN_MAX = 400
#: What decoding raises for anything that a server may send, including a hundred thousand levels of JSON.
NO_JSON: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def clean(text: str, length_max: int = _SHOWN_MAX) -> str:
    """Return foreign text on one line, without control characters, and shortened. A name may try to look like a log
    entry."""
    if len(text) > length_max:
        text = f"{text[:length_max]}…"
    return text if text.isprintable() else "".join(c if c.isprintable() else "�" for c in text)


class KubeError(Exception):
    """Anything that goes wrong between this process and an API server."""


class ApiError(KubeError):
    """A refusal. ``reason``: the server's word for it, such as ``AlreadyExists``. ``causes``: further such words.
    ``kind``: the plural of what it is about."""

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
        """True if the resource version, or the continue token, is too old, so that the kind must be listed again."""
        return self.status == 410 or self.reason in ("Expired", "Gone")

    @property
    def namespace_goes(self) -> bool:
        """True if the namespace is being deleted or gone, so that nothing can be created in it, which is no loss."""
        return "NamespaceTerminating" in self.causes or (self.status == 404 and self.kind == "namespaces")

    @property
    def may_pass(self) -> bool:
        """True if the same request may succeed later."""
        return self.status in (408, 429) or self.status >= 500


class Unreachable(KubeError):
    """No answer. ``maybe_applied``: the request may have been carried out."""

    def __init__(self, what: str, why: str, maybe_applied: bool) -> None:
        super().__init__(what, why, maybe_applied)
        self.what = what
        self.why = clean(why)
        self.maybe_applied = maybe_applied

    def __str__(self) -> str:
        return f"{self.what}: no answer: {self.why}"


class NotAllowed(KubeError):
    """A write was not sent, because this client may not write at present: leadership is lost."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"{self.what}: not sent: leadership is lost"


class TooLarge(KubeError):
    """An answer was larger than any valid one. What had been read was discarded."""

    def __init__(self, what: str, bytes_max: int) -> None:
        super().__init__(what, bytes_max)
        self.what = what
        self.bytes_max = bytes_max

    def __str__(self) -> str:
        return f"{self.what}: more than {self.bytes_max / 1e6:.0f} MB, cut off"


class Garbage(KubeError):
    """Bytes that are not JSON, or not of the requested kind."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what, why)
        self.what = what
        self.why = clean(why)

    def __str__(self) -> str:
        return f"{self.what}: not what an API server sends: {self.why}"


class AccessError(KubeError):
    """No access: the kubeconfig is missing or wrong, or credentials cannot be obtained."""
