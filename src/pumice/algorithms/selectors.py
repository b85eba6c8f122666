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

from pumice.algorithms.groups import RowsOf
from pumice.model.pod import LabelSelector, Requirement
from pumice.model.selectors import holds, matches

__all__ = ["Column", "EncodedColumn", "holds", "holds_over", "matches", "rows_matching"]

Bool = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


_EVERY_ROW = slice(None)


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

    __slots__ = ("_rows_of", "code_of", "codes", "values")

    def __init__(self, found: Iterable[str | None]) -> None:
        self.code_of: dict[str, int] = {}
        self.codes: Codes = np.array([-1 if value is None else self._code(value) for value in found], dtype=np.int32)
        self.values: list[str] = list(self.code_of)
        self._rows_of: RowsOf | None = None

    @classmethod
    def of(cls, values: Mapping[int, str], count: int) -> EncodedColumn:
        """From the values of some of ``count`` rows; the label is absent in the others."""
        column = cls(())
        column.codes = np.full(count, -1, dtype=np.int32)
        column.codes[list(values)] = [column._code(value) for value in values.values()]
        column.values = list(column.code_of)
        return column

    def _code(self, value: str) -> int:
        return self.code_of.setdefault(value, len(self.code_of))

    def rows_with(self, values: Iterable[str]) -> I64:
        """Rows that have one of some values, ascending."""
        if self._rows_of is None:
            self._rows_of = RowsOf(self.codes)
        return self._rows_of(*[self.code_of[value] for value in dict.fromkeys(values) if value in self.code_of])


def holds_over(requirement: Requirement, column: Column, rows: I64 | slice = _EVERY_ROW) -> Bool:
    """Whether one requirement holds, row by row. Shape (rows,)."""
    key, codes = requirement.key, column.codes[rows]
    if requirement.operator in ("In", "NotIn"):  # however many values the column has
        named = [column.code_of[value] for value in requirement.values if value in column.code_of]
        if not named:  # also quick where a tenant names labels that no row has
            return np.full(len(codes), requirement.operator == "NotIn")
        found: Bool = codes == named[0] if len(named) == 1 else np.isin(codes, named)
        return found if requirement.operator == "In" else ~found
    answers = [holds(requirement, {key: value}) for value in column.values]
    answers.append(holds(requirement, {}))  # code -1 reads the last entry
    return np.array(answers, dtype=bool)[codes]


def rows_matching(selector: LabelSelector, column_of: Callable[[str], EncodedColumn], every: I64) -> I64:
    """Those of some rows, ascending, that a selector matches; the others have no labels. An empty selector matches
    every row. Where it names values of a label nobody else is looked at."""
    named = next((each for each in selector.requirements if each.operator == "In"), None)
    rows = every if named is None else column_of(named.key).rows_with(named.values)
    for requirement in selector.requirements:
        if requirement is not named:
            rows = rows[holds_over(requirement, column_of(requirement.key), rows)]
    return rows
