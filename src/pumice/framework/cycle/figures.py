"""Numbers that plugins publish by name, for metrics and reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from pumice.columns.dtypes import AnyArray

#: What a plugin gives under a name: numbers, or a function that finds them when somebody asks, which is nobody in most
#: cycles. It is called when the session is over, so it holds on to tables and not to the session.
Given = Mapping[str, Any]


class Figures(Mapping[str, AnyArray]):
    """Found when somebody asks for one of them, once; where there are several of these with one ``found``, for all of
    them. One that fails then is not published."""

    def __init__(self, find: Callable[[], Given], found: dict[str, AnyArray] | None = None) -> None:
        self._find: Callable[[], Given] | None = find
        self._found: dict[str, AnyArray] = {} if found is None else found

    def _all(self) -> dict[str, AnyArray]:
        find, self._find = self._find, None
        if find is not None and not self._found:
            arrays = {name: _array(value) for name, value in find().items()}
            self._found.update({name: array for name, array in arrays.items() if array is not None})
        return self._found

    def __getitem__(self, name: str) -> AnyArray:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


def _array(value: Any) -> AnyArray | None:
    if not callable(value):
        return np.asarray(value)
    try:
        return np.asarray(value())
    except Exception:
        return None
