"""What a sweep came to, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pumice.cli.console import Column, Table
from pumice.cli.output import console
from pumice.report.units import amount, counted, duration, percent
from pumice.runtime.printing import escaped

if TYPE_CHECKING:
    from pumice.algorithms.intervals import Interval
    from pumice.sweeps.results import Setting
    from pumice.sweeps.running import Failure

SCHEMA = "pumice.sweep/1"
_SHOWN_MAX = 30


def print_settings(settings: Sequence[Setting], figure: str, universes: int) -> None:
    """Print all settings, the best first, with the differences to it."""
    out = console()
    out.print(f"{counted(universes, 'universe')}, {counted(len(settings), 'setting')}, by {figure}, best first\n")
    table = Table(
        Column("setting"),
        Column(figure, right=True),
        Column("95 % interval", right=True),
        Column("behind the best", right=True),
        Column("interval, corrected", right=True),
        Column(""),
    )
    for each in settings[:_SHOWN_MAX]:
        behind = each.behind
        table.add(
            escaped(setting_text(each)),
            _value(each.value.mean, figure),
            _interval(each.value, figure),
            "best" if behind is None else _value(behind.mean, figure),
            "" if behind is None else _interval(behind, figure),
            ("worse", "red") if each.is_worse else "",
        )
    out.print_table(table)
    if len(settings) > _SHOWN_MAX:
        out.print(f"and {counted(len(settings) - _SHOWN_MAX, 'more setting')}; --json lists all")
    if settings and settings[0].value.size == 1:
        out.print("\nOne seed does not show whether a difference is chance. Use --seeds 0..4 and --shake.")


def setting_text(setting: Setting) -> str:
    """Return a setting in words."""
    arguments = "".join(f" {name}={value}" for name, value in setting.arguments)
    return f"{Path(setting.policy).name}{arguments}{f' on {setting.nodes}' if setting.nodes else ''}"


def cell_text(value: float, figure: str) -> str:
    """Return a mean as the table shows it."""
    return _value(value, figure)


def _interval(found: Interval, figure: str) -> str:
    return f"{_value(found.low, figure)} to {_value(found.high, figure)}" if found.size > 1 else "–"


def _value(value: float, figure: str) -> str:
    if figure.startswith(("wait", "completion", "lost")):
        return f"{'-' if value < 0 else ''}{duration(abs(value))}"
    return percent(value) if figure.startswith("use") else amount(value)


def described(
    settings: Sequence[Setting], figure: str, counts: dict[str, int], failures: Sequence[Failure]
) -> dict[str, Any]:
    """Return the stable shape of ``pumice sweep --json``."""
    return {
        "schema": SCHEMA,
        **counts,
        "figure": figure,
        "settings": [
            {
                "policy": each.policy,
                "nodes": each.nodes or None,
                "arguments": dict(each.arguments),
                "mean": each.value.mean,
                "interval": _bounds(each.value),
                "seeds": each.value.size,
                "behind": None if each.behind is None else each.behind.mean,
                "behind_interval": None if each.behind is None else _bounds(each.behind),
                "worse": each.is_worse,
            }
            for each in settings
        ],
        "failures": [{"universe": str(each.universe), "why": each.why} for each in failures],
    }


def _bounds(found: Interval) -> list[float] | None:
    return [found.low, found.high] if found.size > 1 else None
