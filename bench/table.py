"""The figures as a Markdown table, and its place in a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from statistics import median

from msgspec import Struct

from bench.figures import FIGURES, Figure, Measure
from bench.processes import Run

BEGIN = "<!-- figures: written by make bench -->"
END = "<!-- end of figures -->"
HEAD = (
    "| figure | measure | best | median | must reach | Volcano | Volcano / median |",
    "|---|---|--:|--:|--:|--:|--:|",
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

    def lines(self) -> list[str]:
        return [self._line(measure) for measure in self.figure.measures]

    def _line(self, measure: Measure) -> str:
        values = self.values(measure)
        middle = median(values)
        limit = "" if measure.limit is None else f"≤ {measure.limit:g}"
        peer = "" if measure.volcano is None else f"{measure.volcano:,g}"
        ratio = "" if measure.volcano is None else f"{number(measure.volcano / middle)}×"
        cells = (f"`{self.figure.name}`", measure.name, number(min(values)), number(middle), limit, peer, ratio)
        return f"| {' | '.join(cells)} |"

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


def table(lines: Iterable[str]) -> str:
    return "\n".join((*HEAD, *lines))


def commands() -> str:
    """Every figure with what it is and the command that gives it."""
    rows = (f"| `{figure.name}` | {figure.what} | `{figure.command}` |" for figure in FIGURES)
    return "\n".join(("| figure | what | command |", "|---|---|---|", *rows))


def written(page: str, results: Sequence[Result]) -> str:
    """The page with the figures between its two markers; figures that were not measured now stay as they are.

    Raises: ValueError for a page without the markers.
    """
    parts = re.fullmatch(f"(.*{re.escape(BEGIN)}\n)(.*)({re.escape(END)}.*)", page, re.DOTALL)
    if parts is None:
        raise ValueError(f"found no markers, wanted a line {BEGIN} and below it a line {END}")
    before, old, after = parts.groups()
    kept = {figure.name: [line for line in old.splitlines() if _is_of(line, figure)] for figure in FIGURES}
    kept |= {result.figure.name: result.lines() for result in results}
    lines = (line for found in kept.values() for line in found)
    return f"{before}\n{commands()}\n\n{table(lines)}\n\n{after}"


def _is_of(line: str, figure: Figure) -> bool:
    """A row of the table of figures, not of that of commands."""
    return line.startswith(f"| `{figure.name}` |") and line.count(" | ") >= len(HEAD[0].split(" | ")) - 1
