"""The rows of a sweep as a table, and which setting is best by one figure."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from pumice.algorithms.intervals import Interval, mean_interval
from pumice.library.column import Column, Kind, count, number, text
from pumice.library.table import Table
from pumice.report.comparison import figure_named, less_is_better
from pumice.report.units import amount
from pumice.sweeps.folder import SweepFolder
from pumice.sweeps.plan import Plan
from pumice.sweeps.universe import Universe, UniverseResult, Value

#: The figure that says how many jobs were done, and by how much its mean may differ.
_DONE, _SAME_DONE = "completed", 1e-6
FinishedUniverses = Sequence[tuple[Universe, UniverseResult]]


def rows_of(plan: Plan, folder: SweepFolder) -> list[tuple[Universe, UniverseResult]]:
    """Return the universes that are finished, in the order of the plan."""
    found = ((universe, folder.row(universe.digest)) for universe in plan.universes)
    return [(universe, row) for universe, row in found if row is not None]


def table_of(plan: Plan, found: FinishedUniverses) -> Table:
    """Return a row for each universe: what it was, and its figures."""
    names = list(dict.fromkeys(name for _, row in found for name in row.figures))
    arguments = [_argument(name, [dict(each.arguments)[name] for each, _ in found]) for name in plan.arguments]
    columns = (
        text("universe", "digest of its inputs"),
        text("policy", "as the sweep names it"),
        text("nodes", "size of the cluster; empty: that of the input"),
        count("seed", "seeds", "seed of the arrivals that were moved"),
        *arguments,
        text("digest", "digest of all decisions"),
        text("ending", "done, stuck, until or circles"),
        *(number(name, "as in pumice compare", "figure of the run; missing where it is unknown") for name in names),
    )
    rows = [
        (
            universe.digest,
            universe.policy,
            universe.nodes,
            universe.seed,
            *(_cell(column, dict(universe.arguments)[column.name]) for column in arguments),
            row.digest,
            row.ending,
            *(row.figures.get(name) for name in names),
        )
        for universe, row in found
    ]
    return Table("universes", columns, lambda: rows)


def _argument(name: str, values: Sequence[Value]) -> Column:
    is_number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    return Column(name, Kind.NUMBER if is_number else Kind.TEXT, "", "argument of a plugin")


def _cell(column: Column, value: Value) -> object:
    return float(value) if column.kind is Kind.NUMBER else str(value)


def arrow_bytes(table: Table) -> bytes:
    """Return a table as an Arrow IPC stream: equal bytes for equal rows."""
    from nanoarrow.ipc import StreamWriter

    buffer = io.BytesIO()
    with StreamWriter.from_writable(buffer) as writer:
        writer.write_stream(table)
    return buffer.getvalue()


class Setting(Struct, frozen=True):
    """What universes that differ in the seed alone have in common. ``value``: mean of the figure, with the interval of
    the mean. ``behind``: mean difference to the best setting within seeds, None for the best one itself. ``done``: mean
    number of jobs that were done."""

    policy: str
    nodes: str
    arguments: tuple[tuple[str, Value], ...]
    value: Interval
    behind: Interval | None
    done: float = 0.0

    @property
    def is_worse(self) -> bool:
        """True if it is significantly worse than the best setting, all settings taken together."""
        return self.behind is not None and self.behind.size > 1 and self.behind.excludes_zero


def settings_by(found: FinishedUniverses, figure: str) -> list[Setting]:
    """Return all settings, the best first, by the mean of a figure. Settings in which some run cannot tell it are left
    out. Raises: ValueError for a figure that does not exist, or that has no better side."""
    known = list(dict.fromkeys(name for _, row in found for name in row.figures))
    figure = figure_named(figure, known)
    if figure not in known or less_is_better(figure) is None:
        wanted = ", ".join(name for name in known if less_is_better(name) is not None)
        raise ValueError(f"found {figure[:60]!r}, wanted one of {wanted}")
    groups: dict[tuple[str, str, tuple[tuple[str, Value], ...]], dict[int, float | None]] = {}
    done_of: dict[tuple[tuple[str, str, tuple[tuple[str, Value], ...]], int], float] = {}
    for universe, row in found:
        key = (universe.policy, universe.nodes, universe.arguments)
        done_of[key, universe.seed] = row.figures.get(_DONE) or 0.0
        groups.setdefault(key, {})[universe.seed] = row.figures.get(figure)
    values = {
        key: {seed: value for seed, value in by_seed.items() if value is not None}
        for key, by_seed in groups.items()
        if None not in by_seed.values()
    }
    if not values:
        return []
    sign = 1.0 if less_is_better(figure) else -1.0
    means = {key: float(np.mean(list(by_seed.values()))) for key, by_seed in values.items()}
    done = {key: float(np.mean([done_of[key, seed] for seed in values[key]])) for key in means}
    order = sorted(means, key=lambda key: sign * means[key])
    best, others = values[order[0]], len(order) - 1
    return [
        Setting(
            *key,
            mean_interval(np.array(list(values[key].values()))),
            None if place == 0 else _behind(values[key], best, others),
            done[key],
        )
        for place, key in enumerate(order)
    ]


def caution_about(settings: Sequence[Setting]) -> str:
    """Return that the best setting leaves more jobs undone than another one, as a sentence; "" if it does not.

    Without it, a policy that runs nothing is the best, by times that are all 0.
    """
    most = max((each.done for each in settings), default=0.0)
    if not settings or most - settings[0].done < _SAME_DONE:
        return ""
    counts = f"{amount(settings[0].done)} are done, and up to {amount(most)} under another one"
    return (
        f"The best setting leaves more jobs undone: {counts}. They count with their times so far, so its times may look"
        " too short."
    )


def _behind(values: Mapping[int, float], best: Mapping[int, float], comparisons: int) -> Interval | None:
    """Return the difference to the best within seeds that both have, corrected for the number of settings."""
    both = [seed for seed in values if seed in best]
    if not both:
        return None
    return mean_interval(np.array([values[seed] - best[seed] for seed in both]), comparisons)
