"""Tables whose rows come and go: columns that double when full, a free list, and copies for a session."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from pumice.columns.dtypes import Bool, read_only


class Growing:
    """Columns named by the subclass. ``alive`` marks rows in use; freed rows are handed out again, the last one first.

    ``NUMBERS`` gives each array's dtype and the value of an unused row, ``WIDE`` the same for arrays with a second axis
    whose length is given at construction, ``OBJECTS`` the lists, ``MOVING`` the arrays that a session writes on.
    """

    NUMBERS: ClassVar[dict[str, tuple[Any, Any]]] = {}
    WIDE: ClassVar[dict[str, Any]] = {}
    OBJECTS: ClassVar[tuple[str, ...]] = ()
    MOVING: ClassVar[tuple[str, ...]] = ()

    def __init__(self, widths: dict[str, int] | None = None) -> None:
        self._free: list[int] = []
        self._widths = widths or {}
        self.alive: Bool = np.zeros(0, dtype=bool)
        for name, (dtype, _) in self.NUMBERS.items():
            setattr(self, name, np.zeros(0, dtype=dtype))
        for name, dtype in self.WIDE.items():
            setattr(self, name, np.zeros((0, self._widths[name]), dtype=dtype))
        for name in self.OBJECTS:
            setattr(self, name, [])

    @property
    def capacity(self) -> int:
        """Number of rows, used or not: the length of every column."""
        return len(self.alive)

    def new_row(self) -> int:
        """A row with every column at its unused value, marked alive."""
        if not self._free:
            self._grow(max(64, 2 * self.capacity))
        row = self._free.pop()
        self.alive[row] = True
        return row

    def free_row(self, row: int) -> None:
        """Give a row back and blank it."""
        self.alive[row] = False
        for name, (_, unused) in self.NUMBERS.items():
            getattr(self, name)[row] = unused
        for name in self.WIDE:
            getattr(self, name)[row] = 0
        for name in self.OBJECTS:
            getattr(self, name)[row] = None
        self._free.append(row)

    def _grow(self, size: int) -> None:
        old = self.capacity
        fresh_alive = np.zeros(size, dtype=bool)
        fresh_alive[:old] = self.alive
        self.alive = fresh_alive
        for name, (dtype, unused) in self.NUMBERS.items():
            column = np.full(size, unused, dtype=dtype)
            column[:old] = getattr(self, name)
            setattr(self, name, column)
        for name, dtype in self.WIDE.items():
            wide = np.zeros((size, self._widths[name]), dtype=dtype)
            wide[:old] = getattr(self, name)
            setattr(self, name, wide)
        for name in self.OBJECTS:
            getattr(self, name).extend([None] * (size - old))
        self._free.extend(range(size - 1, old - 1, -1))

    def session_copy(self, *, to_write: bool = True) -> Self:
        """The same table with its own moving columns; everything else is shared and must not be written. Not
        ``to_write``: the moving columns are shared too, and a write to them is an error."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        for name in self.MOVING:
            column = self.__dict__[name]
            twin.__dict__[name] = column.copy() if to_write else read_only(column)
        return twin
