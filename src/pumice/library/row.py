"""One row of a table to look at: one job, one queue, one decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from pumice.library.column import Column
from pumice.library.html import FACT_MAX, html_facts
from pumice.library.text import Cell, cell_text, screen


class Row(Mapping[str, object]):
    """One row of a table: a mapping from names of columns to values, None where one is missing."""

    def __init__(self, table: str, columns: Sequence[Column], values: Sequence[object]) -> None:
        """``table``: the name of the table that it is of."""
        self._table, self._columns = table, tuple(columns)
        self._values = dict(zip((column.name for column in columns), values, strict=True))

    def __getitem__(self, name: str) -> object:
        """Return a value by the name of its column. Raises: KeyError with the columns that there are."""
        if name not in self._values:
            raise KeyError(f"a row of {self._table} has no column {name!r}; it has {', '.join(self._values)}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def _facts(self) -> dict[str, str]:
        """Return each value with its unit, less missing ones."""
        facts = {}
        for column in self._columns:
            value, unit = cell_text(cast("Cell", self._values[column.name]), FACT_MAX), column.unit
            if value:
                facts[column.name] = f"{value} ({unit})" if " " in unit else f"{value} {unit}".rstrip()
        return facts

    def __repr__(self) -> str:
        facts = self._facts()
        width = max(map(len, facts), default=0)
        return screen([f"row of {self._table}", *(f"  {name.ljust(width)}  {value}" for name, value in facts.items())])

    def _repr_html_(self) -> str:
        return html_facts(f"row of {self._table}", self._facts())
