"""Settings that differ in two things as a map: a row for each value of one, a column for each value of the other."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from msgspec import Struct

from pumice.sweeps.results import Setting

AXES = 2


class HeatMap(Struct, frozen=True):
    """``cells``: mean of the figure by row and column, None where it is not known. ``heat``: 0 for the best cell, 1
    for the worst."""

    figure: str
    row_name: str
    column_name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[float | None, ...], ...]
    less_is_better: bool

    def heat(self, value: float) -> float:
        known = [each for row in self.cells for each in row if each is not None]
        low, high = min(known), max(known)
        share = (value - low) / (high - low) if high > low else 0.0
        return share if self.less_is_better else 1.0 - share


def heat_map(settings: Sequence[Setting], figure: str, *, less_is_better: bool) -> HeatMap | None:
    """Return the map of settings that differ in exactly two things, None for more and for fewer."""
    axes: dict[str, list[str]] = {
        "policy": [Path(each.policy).name for each in settings],
        "nodes": [each.nodes or "input" for each in settings],
    }
    for name, _ in settings[0].arguments if settings else ():
        axes[name] = [f"{dict(each.arguments)[name]}" for each in settings]
    varied = [name for name, values in axes.items() if len(set(values)) > 1]
    if len(varied) != AXES:
        return None
    down, across = varied
    rows, columns = _ordered(axes[down]), _ordered(axes[across])
    means = [each.value.mean for each in settings]
    cells = dict(zip(zip(axes[down], axes[across], strict=True), means, strict=True))
    found = tuple(tuple(cells.get((row, column)) for column in columns) for row in rows)
    return HeatMap(figure, down, across, rows, columns, found, less_is_better)


def _ordered(values: Sequence[str]) -> tuple[str, ...]:
    """Return each value once: numbers by size, else in the order of names."""
    listed = sorted(set(values))
    try:
        return tuple(sorted(listed, key=float))
    except ValueError:
        return tuple(listed)


def html_of(found: HeatMap, shown: Sequence[Sequence[str]]) -> str:
    """Return a page with the map. ``shown``: the text of each cell."""
    heads = "".join(f"<th>{escape(column)}</th>" for column in found.columns)
    body = ""
    for row, values, texts in zip(found.rows, found.cells, shown, strict=True):
        cells = "".join(
            "<td></td>" if value is None else f'<td style="background:{_colour(found.heat(value))}">{escape(text)}</td>'
            for value, text in zip(values, texts, strict=True)
        )
        body += f"<tr><th>{escape(row)}</th>{cells}</tr>"
    title = escape(f"{found.figure}: {found.row_name} by {found.column_name}")
    style = "body{font:14px system-ui;margin:24px}td,th{padding:6px 10px;text-align:right}td{color:#111}"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{style}</style>'
        f"<h1>{title}</h1><p>Means over seeds; the lightest cell is the best.</p><table><thead><tr>"
        f"<th>{escape(found.row_name)}</th>{heads}</tr></thead><tbody>{body}</tbody></table></html>\n"
    )


def _colour(heat: float) -> str:
    # From light to dark in one hue, so that it reads without colours too; the text stays dark on each.
    return f"hsl(210 70% {96 - 46 * heat:.0f}%)"
