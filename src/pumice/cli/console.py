"""Print lines and tables, with styles on a terminal. Names in them cannot move the cursor."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import IO
from unicodedata import combining, east_asian_width

import click

from pumice.runtime.printing import escaped_lines

WIDTH_UNSEEN = 120  # in a file or a pipe: wide, and the same on every machine
_WIDTH_MIN = 20
#: A text and its style: "", "bold", "dim" or a colour.
Styled = tuple[str, str]


class Column:
    """Heading and layout of one column. ``wraps``: its texts may be broken into lines where the table is too wide."""

    __slots__ = ("head", "right", "wraps")

    def __init__(self, head: str = "", *, right: bool = False, wraps: bool = True) -> None:
        self.head, self.right, self.wraps = head, right, wraps


class Table:
    """Rows of cells, each a text or a text with its style. A table whose columns have no headings shows none.

    ``gap``: spaces between two columns.
    """

    def __init__(self, *columns: Column | str, gap: int = 2) -> None:
        self.columns = tuple(Column(each) if isinstance(each, str) else each for each in columns)
        self.gap = gap
        self.rows: list[list[Styled]] = []

    def add(self, *cells: str | Styled) -> None:
        assert len(cells) == len(self.columns)
        self.rows.append([_styled(cell) for cell in cells])

    def lines(self, width: int) -> Iterator[list[Styled]]:
        """Yield each line as its cells, padded to the width of their columns."""
        headed = [[(each.head, "dim") for each in self.columns]] if any(each.head for each in self.columns) else []
        rows = [[(escaped_lines(text), style) for text, style in row] for row in headed + self.rows]
        widths = self._widths(rows, width)
        for row in rows:
            broken = [list(broken_to(text, size)) for (text, _), size in zip(row, widths, strict=True)]
            for line in zip_longest(*broken, fillvalue=""):
                yield [
                    (_padded(part, size, column.right), style)
                    for part, size, column, (_, style) in zip(line, widths, self.columns, row, strict=True)
                ]

    def _widths(self, rows: Sequence[Sequence[Styled]], width: int) -> list[int]:
        """Return the width of each column: that of its longest line. If the table is too wide, the widest columns
        become narrower."""
        free = max(width - self.gap * (len(self.columns) - 1), len(self.columns))
        widths = [
            min(max((cells(line) for row in rows for line in row[i][0].split("\n")), default=0), free)
            for i in range(len(self.columns))
        ]
        able = [i for i, column in enumerate(self.columns) if column.wraps]
        while sum(widths) > free and max((widths[i] for i in able), default=1) > 1:
            widths[max(able, key=widths.__getitem__)] -= 1
        return widths


class Console:
    """Prints text, as wide as the terminal, and with styles only on a terminal."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        seen = stream.isatty()
        self._width = max(shutil.get_terminal_size().columns, _WIDTH_MIN) if seen else WIDTH_UNSEEN
        self._styles = seen and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def print(self, text: str = "", style: str = "") -> None:
        """Print a text, broken into lines at words where it is too long."""
        for line in broken_to(escaped_lines(text), self._width):
            self._write([(line, style)])

    def print_parts(self, *parts: Styled) -> None:
        """Print one line, of parts with a style each, however long it is."""
        self._write([(escaped_lines(text), style) for text, style in parts])

    def print_table(self, table: Table) -> None:
        for line in table.lines(self._width):
            self._write(line, " " * table.gap)

    def _write(self, parts: Sequence[Styled], gap: str = "") -> None:
        text = gap.join(self._in_style(part, style) for part, style in parts)
        click.echo(text.rstrip(), file=self._stream, color=self._styles)

    def _in_style(self, text: str, style: str) -> str:
        if not self._styles or not style or not text.strip():
            return text
        if style in ("bold", "dim"):
            return click.style(text, bold=style == "bold" or None, dim=style == "dim" or None)
        return click.style(text, fg=style)


def cells(text: str) -> int:
    """Return the number of columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def broken_to(text: str, width: int) -> Iterator[str]:
    """Return the lines of a text, each at most ``width`` wide: broken at spaces, or within a word that is wider than
    that."""
    for line in text.split("\n"):
        yield from _broken(line, width) if cells(line) > width else (line,)


def _broken(line: str, width: int) -> Iterator[str]:
    taken = ""
    for word in _words(line):
        if cells(taken + word.rstrip()) <= width:
            taken += word
            continue
        if taken:
            yield taken.rstrip()
        pieces = list(_pieces(word.rstrip(), width))
        yield from pieces[:-1]
        taken = pieces[-1] + word[len(word.rstrip()) :]
    yield taken.rstrip()


def _words(line: str) -> Iterator[str]:
    """Yield each word with the spaces after it. Spaces at the beginning belong to the first word."""
    begin = 0
    for i in range(1, len(line)):
        if line[i - 1] == " " != line[i] and line[begin:i].strip():
            yield line[begin:i]
            begin = i
    yield line[begin:]


def _pieces(word: str, width: int) -> Iterator[str]:
    piece, size = "", 0
    for char in word:
        needs = cells(char)
        if size + needs > width and piece:
            yield piece
            piece, size = "", 0
        piece, size = piece + char, size + needs
    yield piece


def _padded(text: str, width: int, right: bool) -> str:
    spaces = " " * max(width - cells(text), 0)
    return spaces + text if right else text + spaces


def _styled(cell: str | Styled) -> Styled:
    return (cell, "") if isinstance(cell, str) else cell


def columns(heads: Iterable[str], right: Iterable[str]) -> list[Column]:
    """Return a column for each heading. Those in ``right`` are aligned to the right."""
    numbers = set(right)
    return [Column(head, right=head in numbers) for head in heads]
