"""Results as text for a console: bounded in width and height, so that no repr is longer than a screen."""

from __future__ import annotations

from collections.abc import Sequence

from pumice.runtime.printing import escaped

Cell = str | int | float | bool | None

WIDTH_MAX = 100
CELL_MAX = 32
LINES_MAX = 24


def cell_text(value: Cell, length: int = CELL_MAX) -> str:
    """Return a value on one line, cut to a bounded length; nothing for a missing one."""
    if value is None:
        return ""
    if isinstance(value, float) and not isinstance(value, bool):
        return f"{value:.6g}"
    return one_line(str(value), length)


def one_line(text: str, length: int) -> str:
    """Return a text on one line, cut to a length."""
    shown = escaped(text).replace("\n", " ")
    return shown if len(shown) <= length else shown[: length - 1] + "…"


def text_table(names: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[str]:
    """Return the lines of a table, with as many columns as fit and the number of those that do not."""
    cells = [[cell_text(value) for value in row] for row in rows]
    widths = [max([len(name), *(len(row[i]) for row in cells)]) for i, name in enumerate(names)]
    fit, used = 0, 0
    for width in widths:
        used += width + 2
        if used > WIDTH_MAX and fit:
            break
        fit += 1
    right = [any(isinstance(row[i], int | float) for row in rows) for i in range(len(names))]
    lines = []
    for row in [list(names), *cells]:
        padded = [row[i].rjust(widths[i]) if right[i] else row[i].ljust(widths[i]) for i in range(fit)]
        lines.append("  ".join(padded).rstrip())
    if fit < len(names):
        lines.append(f"and {len(names) - fit} more columns: {', '.join(names[fit:])}"[:WIDTH_MAX])
    return lines


def screen(lines: Sequence[str]) -> str:
    """Return the lines that fit on a screen, each cut to its width."""
    cut = [line if len(line) <= WIDTH_MAX else line[: WIDTH_MAX - 1] + "…" for line in lines]
    if len(cut) > LINES_MAX:
        cut = [*cut[: LINES_MAX - 1], f"and {len(cut) - LINES_MAX + 1} more lines"]
    return "\n".join(cut)
