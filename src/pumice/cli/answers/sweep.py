"""Print the result of a sweep, and describe it as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pumice.cli.console import Column, Table
from pumice.cli.output import console
from pumice.reasons.words import counted
from pumice.report.units import amount, duration, percent
from pumice.runtime.printing import escaped
from pumice.sweeps.results import caution_about

if TYPE_CHECKING:
    from pumice.algorithms.intervals import Interval
    from pumice.sweeps.results import Setting
    from pumice.sweeps.running import Failure

SCHEMA = "pumice.sweep/1"
_SHOWN_MAX = 30


def print_settings(settings: Sequence[Setting], figure: str, universes: int) -> None:
    """Print all settings, the best first, with the differences to it."""
    out = console()
    out.print(f"{counted(universes, 'universe')}, {counted(len(settings), 'setting')}, by {figure}, best first")
    arguments = [name for name, _ in settings[0].arguments] if settings else []
    heads = _short_names(arguments)
    for head, name in zip(heads, arguments, strict=True):
        if head != name:
            out.print(escaped(f"{head} is {name}"))
    out.print()
    called, sizes = _policy_names([each.policy for each in settings]), any(each.nodes for each in settings)
    table = Table(
        Column("policy"),
        *(Column(escaped(head), right=True) for head in heads),
        *([Column("nodes", right=True)] if sizes else []),
        Column(figure, right=True),
        Column("95 % interval", right=True),
        Column("behind\nthe best", right=True),
        Column("interval,\ncorrected", right=True),
        Column(""),
    )
    for each in settings[:_SHOWN_MAX]:
        behind = each.behind
        table.add(
            escaped(called[each.policy]),
            *(escaped(str(value)) for _, value in each.arguments),
            *([each.nodes] if sizes else []),
            _value(each.value.mean, figure),
            _interval(each.value, figure),
            "best" if behind is None else _value(behind.mean, figure),
            "" if behind is None else _interval(behind, figure),
            ("worse", "red") if each.is_worse else "",
        )
    out.print_table(table)
    if len(settings) > _SHOWN_MAX:
        out.print(f"and {counted(len(settings) - _SHOWN_MAX, 'more setting')}; --json lists all")
    if caution := caution_about(settings):
        out.print(f"\n{caution}")
    if settings and settings[0].value.size == 1:
        out.print("\nOne seed does not show whether a difference is chance. Use --seeds 0..4 and --shake.")


def _short_names(names: Sequence[str]) -> list[str]:
    """Return the last part of each dotted name, or the names as they are if two have equal ends."""
    last = [name.rpartition(".")[2] for name in names]
    return last if len(set(last)) == len(last) else list(names)


def _policy_names(policies: Sequence[str]) -> dict[str, str]:
    """Return what to call each policy: its file without folder and ending, or its path if two have equal names."""
    short = {each: Path(each).stem for each in policies}
    return short if len(set(short.values())) == len(short) else {each: each for each in policies}


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
                "done": each.done,
            }
            for each in settings
        ],
        "caution": caution_about(settings) or None,
        "failures": [{"universe": str(each.universe), "why": each.why} for each in failures],
    }


def _bounds(found: Interval) -> list[float] | None:
    return [found.low, found.high] if found.size > 1 else None
