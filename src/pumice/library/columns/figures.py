"""Figures of a run, and of two policies beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pumice.library.column import number, text
from pumice.report.comparison import Figure, FigureDifference, FigureKind

FIGURE_COLUMNS = (
    text("figure", "name, as pumice compare --json has it"),
    text("label", "name in words"),
    text("unit", "s, share (0 to 1), index (0 to 1), or a plain number"),
    number("value", "see unit", "missing where the run cannot say it"),
)
COMPARISON_COLUMNS = (
    text("figure", "name, as pumice compare --json has it"),
    text("label", "name in words"),
    text("unit", "s, share (0 to 1), index (0 to 1), or a plain number"),
    number("a", "see unit", "mean of policy A over universes; missing where some run cannot say it"),
    number("b", "see unit", "mean of policy B"),
    number("difference", "see unit", "mean of B - A within universes"),
    number("low", "see unit", "lower end of the 95 % interval of the difference; missing for one universe"),
    number("high", "see unit", "upper end of the interval"),
    text("better", "a or b where the difference is significant and has a better side; else missing"),
)
_UNITS = {FigureKind.SECONDS: "s", FigureKind.SHARE: "share", FigureKind.INDEX: "index", FigureKind.NUMBER: ""}


def figure_rows(values: Mapping[Figure, float | None]) -> list[tuple[object, ...]]:
    return [(each.name, each.label, _UNITS[each.kind], value) for each, value in values.items()]


def comparison_rows(rows: Iterable[FigureDifference]) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for row in rows:
        difference = row.difference
        found.append(
            (
                row.figure.name,
                row.figure.label,
                _UNITS[row.figure.kind],
                row.a,
                row.b,
                None if difference is None else difference.mean,
                *row.ends,
                row.better or None,
            )
        )
    return found
