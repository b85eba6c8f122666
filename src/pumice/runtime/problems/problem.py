"""Something wrong, or worth knowing, in what was read: told, never skipped in silence."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

_SHOWN_MAX = 200


class Severity(StrEnum):
    """ERROR: something named cannot be used as it is. WARNING: it can, but hardly as meant. NOTE: done for the user."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Problem(Struct, frozen=True):
    """``where`` names a file and document, or an object; ``what`` says what is the matter."""

    where: str
    what: str
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        return f"{self.severity}: {self.where}: {self.what}"


def not_utf8(error: UnicodeDecodeError) -> str:
    """What is wrong with bytes that were to be text."""
    return f"is not UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}"


def unforeseen(error: Exception) -> str:
    """What to say of an error that no reader is known to raise: the input is named, and what it did here."""
    first = (str(error).splitlines() or [""])[0][:_SHOWN_MAX]
    return f"cannot be read; unexpected error: {type(error).__name__}{': ' if first else ''}{first}"
