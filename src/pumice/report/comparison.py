"""Two policies on the same inputs: figures of each, and how sure their differences are.

Runs come in pairs: both policies see the same universe, which is the input shaken by a seed, or a block of it. What is
compared is the difference within each pair, so that what is hard about an input is hard for both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from pumice.algorithms.intervals import F64, Interval, holm, mean_interval
from pumice.reasons.words import short_name
from pumice.report.curves import QUEUES_CHARTED, largest_queues, means, queue_curves, resource_curves
from pumice.report.spread import Spread, outlasting
from pumice.report.summary import Summary, wait_lengths
from pumice.report.units import duration

#: Figures that are 0 for most policies.
_RARE = ("never_run", "evictions", "restarts", "lost")


class FigureKind(StrEnum):
    """How a value is written."""

    SECONDS = "seconds"
    SHARE = "share"  # 0 to 1, written as a percentage
    INDEX = "index"  # 0 to 1, written as it is
    NUMBER = "number"


class Figure(Struct, frozen=True):
    """One row of the comparison. ``less_is_better`` None: a smaller value is neither better nor worse."""

    name: str
    label: str
    kind: FigureKind
    less_is_better: bool | None


class RunOutcome(Struct, frozen=True):
    """The result of one run: its seed, its digest, how it ended, and its values by figure, None for what is unknown.
    ``curves``: what the report draws, of the first universe only."""

    seed: int
    digest: str
    ending: str
    values: Mapping[Figure, float | None]
    curves: Mapping[str, Any] | None = None


class FigureDifference(Struct, frozen=True):
    """A figure of both policies: means over pairs, and the interval of the differences B - A. All are None if a run
    could not compute the figure."""

    figure: Figure
    a: float | None
    b: float | None
    difference: Interval | None
    pairs: tuple[tuple[float | None, float | None], ...]
    is_primary: bool = False
    is_significant: bool = False

    @property
    def is_shown(self) -> bool:
        """Return True if the row is worth a line. Figures in ``_RARE`` do not if they are 0 in all runs."""
        return self.figure.name not in _RARE or any(value for pair in self.pairs for value in pair)

    @property
    def better(self) -> str:
        """Return ``a`` or ``b``, "" if the difference is not significant or neither side is better."""
        if self.difference is None or not self.is_significant or self.figure.less_is_better is None:
            return ""
        return "b" if (self.difference.mean < 0) == self.figure.less_is_better else "a"

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """Return the ends of the interval of the differences, None for each if there are no two of them."""
        found = self.difference
        return (found.low, found.high) if found is not None and found.size > 1 else (None, None)

    def to_json(self) -> dict[str, Any]:
        found, (low, high) = self.difference, self.ends
        return {
            "name": self.figure.name,
            "label": self.figure.label,
            "kind": self.figure.kind.value,
            "a": self.a,
            "b": self.b,
            "difference": None if found is None else found.mean,
            "low": low,
            "high": high,
            "better": self.better or None,
            "primary": self.is_primary,
            "pairs": [list(pair) for pair in self.pairs],
        }


def less_is_better(name: str) -> bool | None:
    """Return True if a smaller value of a figure is better, by its name; None if neither is."""
    if name == "simulated":
        return None
    return not name.startswith(("use_", "fairness", "completed"))


def figures_of(summary: Summary) -> dict[Figure, float | None]:
    """Return the values that are compared, by figure, in the order in which they are shown."""
    found: dict[Figure, float | None] = {}
    spreads = (
        ("wait", "wait", FigureKind.SECONDS, summary.wait),
        ("completion", "completion", FigureKind.SECONDS, summary.completion),
        ("slowdown", "slowdown", FigureKind.NUMBER, summary.slowdown),
    )
    for name, label, kind, spread in spreads:
        for part, text, value in _parts(spread):
            found[Figure(f"{name}_{part}", f"{label}, {text}", kind, True)] = value
    for i, use in enumerate(summary.utilisation):
        label = short_name(use.resource)
        found[Figure(f"use_{use.resource}", f"{label} use", FigureKind.SHARE, False)] = use.mean
        if i == 0:
            found[Figure("use_while_waiting", f"{label} use while jobs waited", FigureKind.SHARE, False)] = use.loaded
    fairness, result = summary.fairness, summary.run.result
    found[Figure("fairness", "fairness", FigureKind.INDEX, False)] = fairness.jain
    found[Figure("fairness_contended", "fairness while contended", FigureKind.INDEX, False)] = fairness.contended
    found[Figure("completed", "jobs done", FigureKind.NUMBER, False)] = result.completed
    never = sum(each.impossible is not None for each in summary.run.stuck)
    found[Figure("never_run", "jobs that can never run", FigureKind.NUMBER, True)] = never
    found[Figure("evictions", "pods evicted", FigureKind.NUMBER, True)] = result.evictions
    found[Figure("restarts", "gangs started over", FigureKind.NUMBER, True)] = summary.lost.restarts
    found[Figure("lost", "work lost", FigureKind.SECONDS, True)] = summary.lost.job_s
    found[Figure("simulated", "time until the end", FigureKind.SECONDS, None)] = result.simulated_s
    return found


def _parts(spread: Spread | None) -> Iterable[tuple[str, str, float | None]]:
    names = (("mean", "mean"), ("p50", "median"), ("p90", "90 %"), ("p99", "99 %"), ("max", "longest"))
    for part, text in names:
        yield part, text, None if spread is None else getattr(spread, part)


def outcome_of(summary: Summary, seed: int, *, with_curves: bool = False) -> RunOutcome:
    """Return what is kept of a run."""
    run = summary.run
    curves = curves_of(summary) if with_curves else None
    return RunOutcome(seed, run.digest, run.result.ending.value, figures_of(summary), curves)


def curves_of(summary: Summary) -> dict[str, Any]:
    """Return what is drawn of one run: use by resource, waiting jobs, how long they waited, shares of the largest
    queues."""
    history, window = summary.run.history, summary.run.history.figures.window
    counted = [record for record in history.jobs if record.submitted in window]
    over, so_far = wait_lengths(counted, history.now)
    return {
        "end_s": summary.run.result.simulated_s,
        "resources": resource_curves(history, summary),
        "waiting": means(history.waiting, history.now),
        "waited": outlasting(over, so_far),
        "queues": queue_curves(history, summary, largest_queues(summary, QUEUES_CHARTED)),
    }


#: The figure that is decided first unless another one is named.
PRIMARY = "wait_mean"


class NoSuchFigure(ValueError):
    """A figure is not compared. The text says what was found and what was wanted."""


def figure_named(text: str, known: Collection[str]) -> str:
    """Return the name of the figure that a user names as it is (``use_nvidia.com/gpu``) or with a dot
    (``wait.mean``)."""
    return text if text in known else text.replace(".", "_")


def primary_of(figure: str, outcome: RunOutcome) -> str:
    """Return the name of the figure that a user names (``wait.mean``), "" for ``none``. Raises: NoSuchFigure."""
    known = [each.name for each in outcome.values]
    name = "" if figure == "none" else figure_named(figure, known)
    if name and name not in known:
        raise NoSuchFigure(f"{figure[:80]}: wanted none or one of {', '.join(known)}")
    return name


class PairedRuns(Struct, frozen=True, dict=True):
    """The runs of two policies in the same universes, in pairs. ``confs``: names of the policies, A and B.

    ``primary``: the name of the figure on which the comparison is decided, "" for none. It is tested alone. The others
    are tested together, by Holm's correction, and only if it differs: so all tests together are wrong in at most 5 of
    100 comparisons of equal policies (a fixed sequence of hypotheses; Maurer, Hothorn, Lehmacher, 1995).

    ``block_s``: each universe is a block of the input of that length; 0 if each is the whole input.
    """

    confs: tuple[str, str]
    sources: tuple[str, ...]
    nodes: int
    shake_s: float
    pairs: tuple[tuple[RunOutcome, RunOutcome], ...]
    primary: str = PRIMARY
    block_s: float = 0.0

    @property
    def scope(self) -> str:
        """Return what the intervals are about, and what they are not about, as a sentence."""
        if self.block_s:
            blocks = f"blocks of {duration(self.block_s)} of this input, each from an empty cluster on"
            return f"Intervals are about {blocks}, and not about other clusters."
        return "Intervals are about this input with moved arrivals, and not about other months or clusters."

    @property
    def caution(self) -> str:
        """Return which policy leaves more jobs undone, and what that does to its times, as a sentence; "" for neither.

        Without it, a policy that runs nothing has the shortest of all longest times.
        """
        done = next((row.difference for row in self.rows if row.figure.name == "completed"), None)
        if done is None or not done.excludes_zero:
            return ""
        policy = "A" if done.mean > 0 else "B"
        return f"{policy} leaves more jobs undone: they count with their times so far, so its times may look too short."

    @cached_property
    def rows(self) -> list[FigureDifference]:
        """Return one row for each figure."""
        figures = self.pairs[0][0].values
        return _with_significance(
            [_row(figure, [(a.values.get(figure), b.values.get(figure)) for a, b in self.pairs]) for figure in figures],
            self.primary,
        )

    @property
    def same(self) -> bool:
        """Return True if both policies took the same decisions in every universe."""
        return all(a.digest == b.digest for a, b in self.pairs)

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``pumice compare --json``, but for the problems."""
        return {
            "a": self.confs[0],
            "b": self.confs[1],
            "sources": list(self.sources),
            "nodes": self.nodes,
            "universes": len(self.pairs),
            "shake_s": self.shake_s,
            "block_s": self.block_s,
            "primary": self.primary or None,
            "same": self.same,
            "caution": self.caution or None,
            "figures": [row.to_json() for row in self.rows],
            "runs": [
                {
                    "seed": a.seed,
                    "a": {"digest": a.digest, "ending": a.ending},
                    "b": {"digest": b.digest, "ending": b.ending},
                }
                for a, b in self.pairs
            ],
        }


def _with_significance(rows: list[FigureDifference], primary: str) -> list[FigureDifference]:
    """Return the rows, marked where the difference is significant."""
    first = next((row for row in rows if row.figure.name == primary), None)
    others = [row for row in rows if row is not first and row.figure.less_is_better is not None]
    goes_on = first is None or (first.difference is not None and first.difference.excludes_zero)
    found = holm([_differences(row) for row in others]) if goes_on else []
    sure = {row.figure.name for row, is_sure in zip(others, found, strict=False) if is_sure}
    if first is not None and goes_on:
        sure.add(primary)
    return [replace(row, is_primary=row is first, is_significant=row.figure.name in sure) for row in rows]


def _differences(row: FigureDifference) -> F64 | None:
    if row.difference is None:
        return None
    return np.array([b - a for a, b in row.pairs if a is not None and b is not None])


def _row(figure: Figure, pairs: Sequence[tuple[float | None, float | None]]) -> FigureDifference:
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not known or len(known) < len(pairs):
        return FigureDifference(figure, None, None, None, tuple(pairs))
    a, b = np.array(known).T
    return FigureDifference(figure, float(a.mean()), float(b.mean()), mean_interval(b - a), tuple(pairs))
