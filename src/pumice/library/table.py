"""Tables of results: named columns with units, which polars, DuckDB, pandas and pyarrow read without a copy of ours.

A table speaks the Arrow PyCapsule protocol, so that none of these libraries has to be installed for another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import cast

import numpy as np
import numpy.typing as npt

from pumice.library.column import Column, Kind, text
from pumice.library.html import html_table
from pumice.library.row import Row
from pumice.library.text import Cell, text_table
from pumice.sim.traces.trace import spelling_hint

#: Rows of a table that its text and its HTML show: a table is no longer than a screen.
ROWS_SHOWN = 20

Values = npt.NDArray[np.float64] | npt.NDArray[np.int64] | npt.NDArray[np.bool_] | list[str | None]


Rows = Sequence[Sequence[object]]


class Table:
    """Rows of a result. ``table["wait_s"]`` is a column as a list, with None where a value is missing.

    ``polars.DataFrame(table)``, ``pyarrow.table(table)`` and ``duckdb.sql("select … from table")`` read it as it is;
    ``pandas.DataFrame(table.to_dict())`` needs no further library.
    """

    def __init__(self, name: str, columns: Sequence[Column], rows: Callable[[], Rows]) -> None:
        """``rows``: called once, when a value is first asked for, as most tables of a run are never looked at."""
        self.name = name
        self.columns = tuple(columns)
        self._make = rows

    @cached_property
    def _rows(self) -> Rows:
        return self._make()

    @cached_property
    def _by_column(self) -> dict[str, list[object]]:
        # Transposed once: every consumer but the text reads whole columns.
        by_column = list(zip(*self._rows, strict=True)) or [()] * len(self.columns)
        return {column.name: list(values) for column, values in zip(self.columns, by_column, strict=True)}

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[dict[str, object]]:
        """Yield each row as a dictionary by column name."""
        names = [column.name for column in self.columns]
        return (dict(zip(names, row, strict=True)) for row in self._rows)

    def __getitem__(self, name: str) -> list[object]:
        """Return a column by name, None where a value is missing. Raises: KeyError with the names that there are."""
        if name not in self._by_column:
            raise KeyError(f"{self.name} has no column {name!r}; it has {', '.join(self._by_column)}")
        return list(self._by_column[name])

    def row(self, name: str) -> Row:
        """Return the first row whose first column has this value: one job, queue or node by name, say.

        Raises: LookupError.
        """
        for row in self._rows:
            if row[0] == name:
                return Row(self.name, self.columns, row)
        hint = spelling_hint(name, [str(row[0]) for row in self._rows])
        raise LookupError(f"{self.name} has no row {name!r}{hint}")

    def to_dict(self) -> Mapping[str, Values]:
        """Return columns by name: lists of text, and arrays of numbers in which NaN marks a missing value."""
        return {column.name: self._values(column) for column in self.columns}

    def _values(self, column: Column) -> Values:
        values = self._by_column[column.name]
        if column.kind is Kind.TEXT:
            return cast("list[str | None]", list(values))
        if column.kind is Kind.FLAG:
            return np.array(values, dtype=np.bool_)
        if column.kind is Kind.COUNT and None not in values:
            return np.array(values, dtype=np.int64)
        return np.array(values, dtype=np.float64)  # NumPy reads None as NaN

    @property
    def schema(self) -> Table:
        """The columns with their units, as a table."""
        about = (text("column", "name"), text("type", "kind of value"), text("unit", "unit"), text("about", "meaning"))
        return Table(
            f"columns of {self.name}", about, lambda: [(c.name, c.kind.value, c.unit, c.about) for c in self.columns]
        )

    # -- Arrow ---------------------------------------------------------------------------------------------------------

    def __arrow_c_schema__(self) -> object:
        """Return a PyCapsule of the Arrow schema; units are in the metadata of its fields."""
        from pumice.library.arrow import schema_of

        return schema_of(self.columns).__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a PyCapsule of an Arrow stream of one batch.

        ``requested_schema`` may be answered by the schema that there is. Source: the Arrow PyCapsule interface.
        """
        from pumice.library.arrow import stream_of

        return stream_of(self.columns, self._by_column, len(self)).__arrow_c_stream__()

    # -- to look at ----------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        head = f"{self.name}: {len(self):,} rows × {len(self.columns)} columns"
        return "\n".join([head, *text_table(self.columns_shown, self._shown())])

    def _repr_html_(self) -> str:
        left = len(self) - ROWS_SHOWN
        more = f"and {left:,} more rows" if left > 0 else ""
        units = [f"{column.unit}" for column in self.columns]
        return html_table(f"{self.name}, {len(self):,} rows", self.columns_shown, units, self._shown(), more)

    @property
    def columns_shown(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    def _shown(self) -> list[tuple[Cell, ...]]:
        return [tuple(cast("Cell", value) for value in row) for row in self._rows[:ROWS_SHOWN]]
