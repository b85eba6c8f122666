"""Something wrong, or worth knowing, in what was read: told, never skipped in silence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """ERROR: something named cannot be used as it is. WARNING: it can, but hardly as meant. NOTE: done for the user."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Problem:
    """``where`` names a file and document, or an object; ``what`` says what is the matter."""

    where: str
    what: str
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        return f"{self.severity}: {self.where}: {self.what}"
