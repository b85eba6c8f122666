"""Read rows of text files with bounds on lines, their number, and values."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from pumice.model.instants import epoch_of
from pumice.sim.traces.trace import Problems, TraceError, missing_columns

LINE_BYTES_MAX = 65_536
LINES_MAX = 5_000_000
#: Times, durations and amounts. A float counts exactly up to here, and real values are smaller.
SECONDS_MAX = 1e10
WHOLE_MAX = 2**53
GANG_PODS_MAX = 100_000
CPU_MILLI_MAX = 10**9
MEMORY_MAX = 2**60
GPUS_MAX = 100_000
#: Files of a folder that are named at most.
_NAMED_MAX = 10
#: The unit of columns with dates.
DATE = "date"
_NAME_MAX = 200
T = TypeVar("T")


class BadField(ValueError):
    """An invalid field of a row. ``reason``: equal for all rows with this problem. ``found``: the text of this row."""

    def __init__(self, reason: str, found: str = "") -> None:
        super().__init__(reason, found)
        self.reason, self.found = reason, found


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line, without its end.

    Raises: TraceError for a file that cannot be read, is binary, or is longer than any trace.
    """
    try:
        with path.open("rb") as file:
            number = 0
            while raw := file.readline(LINE_BYTES_MAX + 1):
                number += 1
                if len(raw) > LINE_BYTES_MAX or b"\0" in raw:
                    found = "a zero byte" if b"\0" in raw else f"a line of more than {LINE_BYTES_MAX:,} bytes"
                    raise TraceError(f"{path}: line {number}: found {found}, wanted a table in a text file")
                if number > LINES_MAX:
                    raise TraceError(f"{path}: more than {LINES_MAX:,} lines")
                text = raw.decode("utf-8", "replace").rstrip("\r\n")
                if "\r" in text:
                    raise TraceError(
                        f"{path}: line {number}: found a carriage return in it, wanted lines that end in \\n"
                    )
                yield number, text.removeprefix("\ufeff") if number == 1 else text
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from None


def one_file(path: Path, pattern: str) -> Path:
    """Return a file, or the one file of a folder whose name has this pattern. Raises: TraceError for a folder that has
    none, or more than one."""
    if not path.is_dir():
        return path
    found = sorted(path.glob(pattern))
    if len(found) != 1:
        names = ": " + ", ".join(each.name for each in found[:_NAMED_MAX]) if found else ""
        raise TraceError(f"{path}: found {len(found)} files {pattern}{names}; wanted one, name the file")
    return found[0]


def read_json(path: Path, bytes_max: int) -> Any:
    """Return the value of a JSON file. Raises: TraceError for a file that cannot be read, is larger, or is not JSON."""
    try:
        with path.open("rb") as file:
            raw = file.read(bytes_max + 1)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from None
    if len(raw) > bytes_max:
        raise TraceError(f"{path}: more than {bytes_max >> 20} MiB")
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path}: not JSON: {error}") from None


def number(text: str, name: str, low: float, high: float) -> float:
    """Return the number in a field.

    Raises: BadField if it is invalid or out of bounds.
    """
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise BadField(f"{name} is not a number", text)
    if value < low:
        raise BadField(f"{name} is below {low:,.10g}", text)
    if value > high:
        raise BadField(f"{name} is above {high:,.10g}", text)
    return value


def whole(text: str, name: str, low: int, high: int = WHOLE_MAX) -> int:
    """Return the whole number in a field; ``8.0`` is one.

    Raises: BadField if it is invalid or out of bounds.
    """
    value = number(text, name, low, high)
    if value != int(value):
        raise BadField(f"{name} is not a whole number", text)
    return int(value)


def moment(text: str) -> float | None:
    """Return a date in seconds since the epoch, or None for another text. Without a zone it is UTC."""
    date, _, time = text.strip().replace("T", " ").partition(" ")
    found = epoch_of(f"{date}T{time or '00:00:00'}")
    return epoch_of(f"{date}T{time or '00:00:00'}Z") if found is None else found


def instant(text: str, name: str) -> float:
    """Return a date in seconds since the epoch. Raises: BadField for another text."""
    found = moment(text)
    if found is None:
        raise BadField(f"{name} is not a date such as 2020-06-09 18:41:01", text)
    return found


def plain_name(text: str, what: str = "a name") -> str:
    """Return the name in a field. Raises: BadField for one that no object can have."""
    if not 1 <= len(text) <= _NAME_MAX or not text.isprintable() or "/" in text or " " in text:
        raise BadField(f"{what} is empty, too long, or has spaces or /", text)
    return text


def name_part(text: str, most: int = 60, default: str = "x") -> str:
    """Return a text as a part of Kubernetes names, ``default`` if nothing of it can be one."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:most] or default


class Row:
    """A line of a table with named columns."""

    __slots__ = ("_columns", "_fields", "_used", "line")

    def __init__(self, line: int, fields: Sequence[str], columns: dict[str, int], used: set[str]) -> None:
        self.line, self._fields, self._columns, self._used = line, fields, columns, used

    def text(self, name: str) -> str:
        """Return the field, stripped, "" if the table has no such column."""
        place = self._columns.get(name)
        if place is None:
            return ""
        self._used.add(name)
        return self._fields[place].strip()

    def number(self, name: str, low: float = 0.0, high: float = SECONDS_MAX) -> float:
        return number(self.text(name), name, low, high)

    def whole(self, name: str, low: int = 0, high: int = WHOLE_MAX) -> int:
        return whole(self.text(name), name, low, high)


class Table:
    """A CSV file with a header, or without one if ``names`` says what its columns are.

    Raises: TraceError if a wanted column is missing. ``rows`` yields a BadField instead of a row of the wrong length.
    """

    def __init__(self, path: Path, wanted: Sequence[str], names: Sequence[str] = ()) -> None:
        self.path = path
        self._lines = lines(path)
        self._used: set[str] = set()
        first = next(self._lines, (1, ""))
        self.columns = [name.strip() for name in next(csv.reader([first[1]]), [])]
        if names and self.columns[:1] != list(names[:1]):
            self._lines, self.columns = chain([first], self._lines), list(names)
        if not set(wanted) <= set(self.columns):
            raise missing_columns(str(path), self.columns, wanted)

    def rows(self) -> Iterator[tuple[int, Row | BadField]]:
        """Yield (line, row) for each line that is not blank."""
        places = {name: i for i, name in enumerate(self.columns)}
        count = len(self.columns)
        for line, text in self._lines:
            if not text.strip():
                continue
            fields = text.split(",") if '"' not in text else next(csv.reader([text]), [])
            if len(fields) == count:
                yield line, Row(line, fields, places, self._used)
            else:
                yield line, BadField(f"a row does not have {count} fields", f"{len(fields)} fields")

    def each(self, read: Callable[[Row], T], problems: Problems) -> Iterator[T]:
        """Yield what ``read`` makes of each row. A row for which it raises BadField, or of the wrong length, is counted
        among the problems."""
        for line, row in self.rows():
            try:
                if isinstance(row, BadField):
                    raise row
                found = read(row)
            except BadField as error:
                problems.add(str(self.path), error.reason, place(line, error))
            else:
                yield found

    def by_name(self, read: Callable[[Row], tuple[str, T]], problems: Problems, what: str = "a name") -> dict[str, T]:
        """Return by name what ``read`` makes of each row, as ``each`` does. ``what`` has a name: that of the first row
        which has it."""
        found: dict[str, T] = {}

        def once(row: Row) -> tuple[str, T]:
            name, value = read(row)
            if name in found:
                raise BadField(f"{what} occurs twice", name)
            return name, value

        for name, value in self.each(once, problems):
            found[name] = value
        return found

    def notes(self) -> list[str]:
        """Return a sentence about columns that no row was asked for so far, if there are any."""
        unused = [name[:60] for name in self.columns if name not in self._used]
        return [f"columns not used: {', '.join(unused)}"] if unused else []


def header_of(path: Path) -> list[str]:
    """Return the first line of a file as CSV fields, none for an empty file."""
    for _, text in lines(path):
        return [name.strip() for name in next(csv.reader([text]), [])]
    return []


def place(line: int, error: BadField) -> str:
    """Return ``line 7 ('x')``, shortened."""
    found = error.found if len(error.found) <= 30 else error.found[:30] + "…"
    return f"line {line} ({found!r})" if found else f"line {line}"
