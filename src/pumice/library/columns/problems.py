"""What of an input could not be used."""

from __future__ import annotations

from collections.abc import Iterable

from pumice.library.column import text
from pumice.runtime.problems.problem import Problem

PROBLEM_COLUMNS = (
    text("severity", "error: not used; warning: used, and probably not as meant; note: a change for the user"),
    text("where", "file and document, or object"),
    text("what", "the problem"),
)


def problem_rows(problems: Iterable[Problem]) -> list[tuple[object, ...]]:
    return [(problem.severity.value, problem.where, problem.what) for problem in problems]
