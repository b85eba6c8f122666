"""Results as HTML for notebooks. Every text is escaped, since names come from the input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from pumice.library.text import LINES_MAX, Cell, cell_text, one_line

#: Characters of a value in a table of facts: sentences are wrapped, so several lines.
FACT_MAX = 300
_LEFT = ' style="text-align: left"'


def html_table(
    title: str, names: Sequence[str], units: Sequence[str], rows: Sequence[Sequence[Cell]], more: str = ""
) -> str:
    """Return a table with a caption, units below the names of columns, and a line for what is not shown.

    Texts are on the left, since notebooks put all cells on the right. There are no colours: those of a page, light or
    dark, are used.
    """
    heads = "".join(
        f"<th>{escape(name)}{f'<br><small>{escape(unit)}</small>' if unit else ''}</th>"
        for name, unit in zip(names, units, strict=True)
    )
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    head = f"<table><caption>{escape(title)}</caption><thead><tr>{heads}</tr></thead>"
    return f"{head}<tbody>{body}</tbody></table>{_foot(more)}"


def html_facts(title: str, facts: Mapping[str, str]) -> str:
    """Return a table of two columns: what, and its value; no longer than a screen."""
    shown = list(facts.items())[:LINES_MAX]
    body = "".join(
        f"<tr><th>{escape(one_line(name, FACT_MAX))}</th><td{_LEFT}>{escape(one_line(value, FACT_MAX))}</td></tr>"
        for name, value in shown
    )
    left = len(facts) - len(shown)
    more = f"and {left:,} more" if left else ""
    return f"<table><caption>{escape(title)}</caption><tbody>{body}</tbody></table>{_foot(more)}"


def _cell(value: Cell) -> str:
    return f"<td{_LEFT if isinstance(value, str) else ''}>{escape(cell_text(value))}</td>"


def _foot(more: str) -> str:
    return f"<p><small>{escape(more)}</small></p>" if more else ""
