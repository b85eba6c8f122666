"""Results as HTML for notebooks. Every text is escaped, since names come from the input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from pumice.library.text import Cell, cell_text


def html_table(
    title: str, names: Sequence[str], units: Sequence[str], rows: Sequence[Sequence[Cell]], more: str = ""
) -> str:
    """Return a table with a caption, units below the names of columns, and a line for what is not shown."""
    heads = "".join(
        f"<th>{escape(name)}{f'<br><small>{escape(unit)}</small>' if unit else ''}</th>"
        for name, unit in zip(names, units, strict=True)
    )
    body = "".join("<tr>" + "".join(f"<td>{escape(cell_text(value))}</td>" for value in row) + "</tr>" for row in rows)
    foot = f"<p><small>{escape(more)}</small></p>" if more else ""
    return (
        f"<table><caption>{escape(title)}</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{foot}"
    )


def html_facts(title: str, facts: Mapping[str, str]) -> str:
    """Return a table of two columns: what, and its value."""
    body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts.items())
    return f"<table><caption>{escape(title)}</caption><tbody>{body}</tbody></table>"
