"""Label selectors over many rows at once, by label columns. ``holds`` and ``matches`` are for one mapping of labels.

A label column is dictionary-encoded: a code for each row, -1 where the label is absent, and the value of each code.
Source: Kubernetes ``labels.Selector``. NotIn and DoesNotExist match an absent label. Gt and Lt compare integers, and do
not match other values. An unknown operator matches nothing.
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
    """One label over many rows: row i has ``values[codes[i]]``, or not the label if the code is -1."""

    @property
    def codes(self) -> Codes: ...
    @property
    def values(self) -> Sequence[str]: ...
    @property
    def code_of(self) -> Mapping[str, int]: ...


class EncodedColumn:
    """A label column made from the value of each row, None where the label is absent."""

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
        """Return the rows that have one of some values, ascending."""
        if self._rows_of is None:
            self._rows_of = RowsOf(self.codes)
        return self._rows_of(*[self.code_of[value] for value in dict.fromkeys(values) if value in self.code_of])


def holds_over(requirement: Requirement, column: Column, rows: I64 | slice = _EVERY_ROW) -> Bool:
    """Return for each row whether a requirement holds. Shape (rows,)."""
    key, codes = requirement.key, column.codes[rows]
    # By code, without looking at the values: a label such as the host name has as many as there are nodes.
    if requirement.operator in ("In", "NotIn"):
        named = [column.code_of[value] for value in requirement.values if value in column.code_of]
        if not named:  # also quick where a tenant names labels that no row has
            return np.full(len(codes), requirement.operator == "NotIn")
        found: Bool = codes == named[0] if len(named) == 1 else np.isin(codes, named)
        return found if requirement.operator == "In" else ~found
    # Once for each value instead of once for each row. The answer for an absent label is last, where code -1 reads it.
    answers = [holds(requirement, {key: value}) for value in column.values]
    answers.append(holds(requirement, {}))
    return np.array(answers, dtype=bool)[codes]


def rows_matching(selector: LabelSelector, column_of: Callable[[str], EncodedColumn], every: I64) -> I64:
    """Return which rows of ``every``, ascending, a selector matches. An empty selector matches all of them.

    Rows that are not in ``every`` must not have labels.
    """
    # An In requirement comes first, if there is one: the index finds its rows, and only those are looked at further.
    named = next((each for each in selector.requirements if each.operator == "In"), None)
    rows = every if named is None else column_of(named.key).rows_with(named.values)
    for requirement in selector.requirements:
        if requirement is not named:
            rows = rows[holds_over(requirement, column_of(requirement.key), rows)]
    return rows
