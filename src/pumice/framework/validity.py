"""Why a job cannot be complete, whatever is placed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Invalid:
    reason: str
    message: str
