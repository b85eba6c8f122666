"""Print the comparison of two policies as one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pumice.cli.console import Styled, Table, columns
from pumice.cli.output import console
from pumice.reasons.words import counted
from pumice.report.comparison import FigureKind
from pumice.report.units import amount, duration, percent

if TYPE_CHECKING:
    from pumice.report.comparison import FigureDifference, PairedRuns

_TEXTS: Mapping[FigureKind, Callable[[float], str]] = {
    FigureKind.SECONDS: duration,
    FigureKind.SHARE: percent,
    FigureKind.INDEX: lambda value: f"{value:.3f}",
    FigureKind.NUMBER: amount,
}
_DIFFERENCES = {**_TEXTS, FigureKind.SHARE: lambda value: f"{100 * value:.1f} pp"}  # of percentages: in points


def print_comparison(compared: PairedRuns) -> None:
    """Print a row for each figure: both means, the difference B - A, its interval, and which policy is better if the
    difference is significant."""
    out = console()
    a, b = compared.confs
    out.print(f"A          {a}")
    out.print(f"B          {b}")
    out.print(f"input      {', '.join(compared.sources)}, {counted(compared.nodes, 'node')}")
    moved = f", arrivals moved by up to {duration(compared.shake_s)}" if compared.shake_s else ""
    seeds = [pair[0].seed for pair in compared.pairs]
    named = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    cut = f"blocks of {duration(compared.block_s)} of arrivals" if compared.block_s else named
    out.print(f"universes  {len(seeds)}, {cut}{moved}")
    if compared.same:
        out.print("\nBoth policies took the same decisions in every universe.")
    numbers = ("A", "B", "B - A", "95 % interval")
    table = Table(*columns(("", *numbers, "better"), right=numbers))
    for row in compared.rows:
        if row.is_shown:
            table.add(*_cells(row))
    out.print()
    out.print_table(table)
    if len(seeds) > 1:
        rest = "The others are corrected for their number (Holm) and tested only if it differs."
        first = next((row.figure.label for row in compared.rows if row.is_primary), "")
        alone = "All figures are corrected for their number (Holm)."
        out.print(f"\nDecided on: {first}. {rest}" if first else f"\n{alone}")
        out.print(compared.scope)
        if compared.caution:
            out.print(compared.caution)
    if len(seeds) == 1:
        out.print("\nOne universe does not show whether a difference is chance. Use --repeats.")


def _cells(row: FigureDifference) -> tuple[Styled | str, ...]:
    text, by = _TEXTS[row.figure.kind], _DIFFERENCES[row.figure.kind]
    if row.difference is None or row.a is None or row.b is None:
        return (row.figure.label, "–", "–", "–", "not known in every run", "")
    found = row.difference
    interval = f"{_signed(found.low, by)} to {_signed(found.high, by)}" if found.size > 1 else "–"
    better = (row.better.upper(), "green" if row.better == "b" else "red")
    return (row.figure.label, text(row.a), text(row.b), _signed(found.mean, by), interval, better)


def _signed(value: float, text: Callable[[float], str]) -> str:
    """Return the text with its sign, such as ``+12 min``, and 0 without one."""
    size = text(abs(value))
    return size if size == text(0.0) else f"{'-' if value < 0 else '+'}{size}"
