"""The report of fills: one HTML file with a table and a picture, and no script."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

from pumice import __version__
from pumice.report.fill import FillSummary, curves_of

COLOURS = ("#8c8c8c", "#3b7dd8", "#c2571a", "#7b4fb5", "#2a8f5c", "#c22f4e", "#111111")
_WIDTH, _HEIGHT, _MARGIN = 860, 420, 44
_FROM = 60  # per cent: below it every policy places everything
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem; text-align: right; } th { font-weight: 600; }
td:first-child, th:first-child { text-align: left; } tr + tr td { border-top: 1px solid #ddd; }
svg { width: 100%; height: auto; } footer { color: #666; margin-top: 2rem; }
"""


def page(summary: FillSummary, rows: Sequence[Sequence[str]], heads: Sequence[str]) -> str:
    """Return the whole page. ``rows``: the table as it is printed."""
    title = html.escape(f"Pumice fill: {summary.trace}")
    head = "".join(f"<th>{html.escape(each)}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    about = (
        f"{summary.nodes:,} nodes with {summary.gpus:,} GPUs, filled until {summary.until:.0%} of them had been asked"
        f" for; seeds {summary.seeds[0]} to {summary.seeds[-1]}. Solid: this run. Dashed: as published."
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1><p>{html.escape(about)}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{_picture(summary)}"
        f"<footer>Pumice {html.escape(__version__)}</footer></body></html>\n"
    )


def _picture(summary: FillSummary) -> str:
    """Return a picture of the allocated GPUs by the requested ones, both in per cent."""
    curves = curves_of(summary)
    last = max((len(ours) for ours, _ in curves.values()), default=0) - 1
    if last <= _FROM:
        return ""
    found = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="GPU allocation by GPUs asked for">']
    for level in range(_FROM, last + 1, 10):
        x = _x(level, last)
        found.append(f'<text x="{x:.1f}" y="{_HEIGHT - 12}" font-size="12" text-anchor="middle">{level}%</text>')
    for level in range(_FROM, 101, 10):
        y = _y(level)
        found.append(f'<line x1="{_MARGIN}" x2="{_WIDTH - 8}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        found.append(f'<text x="{_MARGIN - 6}" y="{y + 4:.1f}" font-size="12" text-anchor="end">{level}%</text>')
    for number, (name, (ours, theirs)) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        for curve, dash in ((ours, ""), (theirs, ' stroke-dasharray="3 4"')):
            points = " ".join(_points(curve, last))
            found.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>')
        y = 24 + 18 * number
        found.append(f'<text x="{_MARGIN + 16}" y="{y}" font-size="13" fill="{colour}">{html.escape(name)}</text>')
    return "".join([*found, "</svg>"])


def _points(curve: Sequence[float | None], last: int) -> Iterator[str]:
    for level, value in enumerate(curve[: last + 1]):
        if level >= _FROM and value is not None:
            yield f"{_x(level, last):.1f},{_y(max(value, _FROM)):.1f}"


def _x(level: float, last: int) -> float:
    return _MARGIN + (_WIDTH - _MARGIN - 8) * (level - _FROM) / (last - _FROM)


def _y(level: float) -> float:
    return 12 + (_HEIGHT - 48) * (100 - level) / (100 - _FROM)
