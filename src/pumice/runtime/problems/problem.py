"""Problems in what was read: reported, and never skipped silently."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

_SHOWN_MAX = 200


class Severity(StrEnum):
    """ERROR: an object cannot be used as it is. WARNING: it can, but probably not as intended. NOTE: a change for the
    user."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Problem(Struct, frozen=True):
    """``where``: a file and document, or an object. ``what``: the problem."""

    where: str
    what: str
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        return f"{self.severity}: {self.where}: {self.what}"


def not_utf8(error: UnicodeDecodeError) -> str:
    """Return what is wrong with bytes that should be text."""
    return f"is not UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}"


def unforeseen(error: Exception) -> str:
    """Return the text for an error that no reader is known to raise: the input and the error."""
    first = (str(error).splitlines() or [""])[0][:_SHOWN_MAX]
    return f"cannot be read; unexpected error: {type(error).__name__}{': ' if first else ''}{first}"
