"""Who answers questions that a cycle cannot answer from its snapshot: programs that a policy names.

The one seam for it, handed in by the shell like the planner. A cycle under a policy that asks nobody is a function of
its snapshot; under one that does, of its snapshot and the answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class OutsideError(Exception):
    """Why there is no answer, in a sentence."""


class Outside(Protocol):
    def ask(self, url: str, question: Mapping[str, Any], within_s: float) -> Mapping[str, Any]:
        """The answer to a question, both as JSON has them. It takes no longer than that; all answers of one cycle
        together are bounded, too. Raises: OutsideError."""
        ...


class _Nobody:
    def ask(self, url: str, question: Mapping[str, Any], within_s: float) -> Mapping[str, Any]:
        raise OutsideError("nobody is asked here")


#: Where there is nobody to ask: in simulations, and in cycles on files.
NOBODY: Outside = _Nobody()
