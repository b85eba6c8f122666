"""The values of one label over some rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import F64, I64, AnyArray


class LabelValues(NamedTuple):
    """The value of one label in each of some rows. ``values``: the different ones, sorted; rows without the label have
    the empty text. ``codes`` (rows,): for each row the place of its value in ``values``."""

    values: list[str]
    codes: I64

    @classmethod
    def of(cls, each: Sequence[str]) -> LabelValues:
        """Those of rows that have these values."""
        values = sorted(set(each))
        place = {value: i for i, value in enumerate(values)}
        return cls(values, np.array([place[value] for value in each], dtype=np.int64))

    def sums(self, amounts: AnyArray) -> dict[str, F64]:
        """By value, the sum over its rows of ``amounts`` (rows, …)."""
        found = np.zeros((len(self.values), *amounts.shape[1:]))
        np.add.at(found, self.codes, amounts)
        return dict(zip(self.values, found, strict=True))
