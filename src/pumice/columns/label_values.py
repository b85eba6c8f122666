"""The values of one label over some rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import F64, I64, AnyArray


class LabelValues(NamedTuple):
    """The value of one label in each of some rows.

    ``values`` has the different values, sorted; a row without the label has the empty text. ``codes`` (rows,) has for
    each row the index of its value in ``values``.
    """

    values: list[str]
    codes: I64

    @classmethod
    def of(cls, each: Sequence[str]) -> LabelValues:
        """Return the values of rows, given as one text for each row."""
        # Sorted, because the order of a set differs from run to run.
        values = sorted(set(each))
        place = {value: i for i, value in enumerate(values)}
        return cls(values, np.array([place[value] for value in each], dtype=np.int64))

    def sums(self, amounts: AnyArray) -> dict[str, F64]:
        """Return for each value the sum of ``amounts`` (rows, …) over the rows that have it."""
        found = np.zeros((len(self.values), *amounts.shape[1:]))
        # Not ``found[codes] += amounts``, which adds only one of several rows with equal codes.
        np.add.at(found, self.codes, amounts)
        return dict(zip(self.values, found, strict=True))
