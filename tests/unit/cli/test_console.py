"""Lines and tables fit the width, keep their columns, and carry styles on a terminal only."""

from __future__ import annotations

import io

import pytest

from pumice.cli.console import WIDTH_UNSEEN, Column, Console, Table, broken_to, cells


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("one two", 7, ["one two"]),
        ("  one two", 5, ["  one", "two"]),
        ("abcdefgh ij", 3, ["abc", "def", "gh", "ij"]),
        ("a\nb c", 2, ["a", "b", "c"]),
        ("節点 節点", 5, ["節点", "節点"]),
        ("", 5, [""]),
    ],
)
def test_text_is_broken_at_words(text: str, width: int, lines: list[str]) -> None:
    assert list(broken_to(text, width)) == lines


def test_wide_and_combining_characters_count_as_on_a_terminal() -> None:
    assert [cells(text) for text in ("abc", "節点", "e\u0301")] == [3, 4, 1]


def printed(table: Table, stream: io.StringIO) -> list[str]:
    Console(stream).print_table(table)
    return stream.getvalue().splitlines()


def test_numbers_are_aligned_to_the_right() -> None:
    table = Table("name", Column("count", right=True))
    table.add("a", "1")
    table.add("bcdefg", "1,000")
    assert printed(table, io.StringIO()) == ["name    count", "a           1", "bcdefg  1,000"]


def test_the_widest_column_gives_way() -> None:
    table = Table(Column(wraps=False), "")
    table.add("x" * 10, "word " * 60)
    lines = printed(table, io.StringIO())
    assert len(lines) > 1 and max(map(len, lines)) <= WIDTH_UNSEEN
    assert all(line.startswith(" " * 12 + "word") for line in lines[1:])


def test_styles_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    seen, unseen = Terminal(), io.StringIO()
    for stream in (seen, unseen):
        Console(stream).print("careful", style="red")
    assert seen.getvalue() == "\x1b[31mcareful\x1b[0m\n" and unseen.getvalue() == "careful\n"


def test_no_color_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    Console(stream).print("careful", style="red")
    assert stream.getvalue() == "careful\n"
