"""Which rows does a selector match? Over label columns instead of over one mapping after the other.

A label column is dictionary-encoded: a code a row, -1 where the label is absent, and the value of each code. A
requirement is decided once for each value and once for absence, then looked up by code; how many rows there are does
not matter. ``holds`` and ``matches`` are the same questions about one plain mapping. Source: Kubernetes
``labels.Selector``: NotIn and DoesNotExist match an absent label, Gt and Lt compare integers and match nothing that is
no integer; an unknown operator matches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pumice.model.pod import LabelSelector, Requirement
from pumice.model.selectors import holds, matches

__all__ = ["Column", "EncodedColumn", "holds", "holds_over", "matches", "matches_over"]

Bool = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int32]


class Column(Protocol):
    """One label over many rows: ``values[codes[i]]``, absent where the code is -1."""

    @property
    def codes(self) -> Codes: ...
    @property
    def values(self) -> Sequence[str]: ...
    @property
    def code_of(self) -> Mapping[str, int]: ...


class EncodedColumn:
    """A column from one value (or None for absent) a row."""

    __slots__ = ("code_of", "codes", "values")

    def __init__(self, found: Iterable[str | None]) -> None:
        code_of: dict[str, int] = {}
        codes = [-1 if value is None else code_of.setdefault(value, len(code_of)) for value in found]
        self.codes: Codes = np.array(codes, dtype=np.int32)
        self.values: list[str] = list(code_of)
        self.code_of = code_of


def holds_over(requirement: Requirement, column: Column) -> Bool:
    """Whether one requirement holds, row by row. Shape (rows,)."""
    key = requirement.key
    if requirement.operator in ("In", "NotIn"):  # however many values the column has
        named = [column.code_of[value] for value in requirement.values if value in column.code_of]
        found: Bool = column.codes == named[0] if len(named) == 1 else np.isin(column.codes, named)
        return found if requirement.operator == "In" else ~found
    answers = [holds(requirement, {key: value}) for value in column.values]
    answers.append(holds(requirement, {}))  # code -1 reads the last entry
    return np.array(answers, dtype=bool)[column.codes]


def matches_over(selector: LabelSelector, column_of: Callable[[str], Column], count: int) -> Bool:
    """Whether a selector matches, row by row. An empty selector matches every row. Shape (count,)."""
    found = np.ones(count, dtype=bool)
    for requirement in selector.requirements:
        found &= holds_over(requirement, column_of(requirement.key))
    return found
