"""The figures as a Markdown table, and its place in a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from statistics import median

from msgspec import Struct

from bench.figures import CYCLE_CPU, FIGURES, PEAK, PROCESS_CPU, Figure, Measure
from bench.processes import Run

BEGIN = "<!-- figures: written by make bench -->"
END = "<!-- end of figures -->"
#: Measures with a column of their own; the others share one.
COLUMNS = (CYCLE_CPU, PEAK, PROCESS_CPU)
HEAD = (
    f"| figure | what | command | {' | '.join(COLUMNS)} | other | its Go original (of its median) |",
    "|---|---|---|--:|--:|--:|---|---|",
)


class Result(Struct, frozen=True):
    """A figure and its runs, at least one."""

    figure: Figure
    runs: Sequence[Run]

    def values(self, measure: Measure) -> list[float]:
        return [run.values[measure.name] for run in self.runs]

    @property
    def digests(self) -> list[str]:
        return sorted({run.digest for run in self.runs})

    @property
    def missed(self) -> list[str]:
        """What the figure must reach and its median does not, and a digest that is not one."""
        found = [
            f"{self.figure.name}: {measure.name} {number(median(self.values(measure)))}, must reach {measure.limit:g}"
            for measure in self.figure.measures
            if measure.limit is not None and median(self.values(measure)) > measure.limit
        ]
        if len(self.digests) > 1:
            found.append(f"{self.figure.name}: {len(self.digests)} digests in {len(self.runs)} runs")
        return found

    def line(self) -> str:
        """The row of the figure: of each measure the best run, the median, and what the median must reach."""
        measures = {measure.name: measure for measure in self.figure.measures}
        own = [self._cell(measures[name]) if name in measures else "" for name in COLUMNS]
        other = ", ".join(f"{name} {self._cell(each)}" for name, each in measures.items() if name not in COLUMNS)
        peer = ", ".join(self._beside(each) for each in measures.values() if each.original is not None)
        return f"{begin_of(self.figure)} {' | '.join((*own, other, peer))} |"

    def _cell(self, measure: Measure) -> str:
        values = self.values(measure)
        limit = "" if measure.limit is None else f" ≤ {measure.limit:g}"
        return f"{number(min(values))} / {number(median(values))}{limit}"

    def _beside(self, measure: Measure) -> str:
        assert measure.original is not None
        return f"{measure.name} {measure.original:,g} ({number(measure.original / median(self.values(measure)))}×)"

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.figure.name,
            "command": self.figure.command,
            "runs": len(self.runs),
            "digests": self.digests,
            "measures": {
                m.name: {"best": min(self.values(m)), "median": median(self.values(m)), "limit": m.limit}
                for m in self.figure.measures
            },
            "missed": self.missed,
        }


def number(value: float) -> str:
    """Three digits are more than a shared machine tells apart."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def begin_of(figure: Figure) -> str:
    """What the row of a figure begins with: its name, what it is, and the command that gives it."""
    return f"| `{figure.name}` | {figure.what} | `{figure.command}` |"


def table(lines: Iterable[str]) -> str:
    return "\n".join((*HEAD, *lines))


def written(page: str, results: Sequence[Result]) -> str:
    """The page with the figures between its two markers; figures that were not measured now stay as they are.

    Raises: ValueError for a page without the markers.
    """
    parts = re.fullmatch(f"(.*{re.escape(BEGIN)}\n)(.*)({re.escape(END)}.*)", page, re.DOTALL)
    if parts is None:
        raise ValueError(f"found no markers, wanted a line {BEGIN} and below it a line {END}")
    before, old, after = parts.groups()
    rows = {line.split("`")[1]: line for line in old.splitlines() if line.startswith("| `")}
    rows |= {result.figure.name: result.line() for result in results}
    lines = (rows[figure.name] for figure in FIGURES if figure.name in rows)
    return f"{before}\n{table(lines)}\n\n{after}"
