"""Wrong input of a caller."""

from __future__ import annotations

from collections.abc import Iterable


class InputError(ValueError):
    """An argument or a file cannot be used. ``problems``: all that were found, each with the place, what was found and
    what was wanted."""

    def __init__(self, problems: str | Iterable[str]) -> None:
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))
