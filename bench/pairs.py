"""Runs of a figure beside those of another installed Pumice, so that the machine's speed cancels out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from msgspec import Struct

from bench.figures import CYCLE_CPU, PROCESS_CPU, Figure
from bench.processes import Run
from bench.table import number

HEAD = ("| figure | measure | this / other | ratio | digest |", "|---|---|--:|--:|---|")


class Pairs(Struct, frozen=True):
    """Runs of one figure: ``(this, other)``, one right after the other, at least one pair.

    Both runs of a pair have an equal seed for Python's hashes.
    """

    figure: Figure
    runs: Sequence[tuple[Run, Run]]

    @property
    def measure(self) -> str:
        """The CPU seconds that are compared: of the cycle where the command says them, else of the process."""
        return CYCLE_CPU if all(CYCLE_CPU in run.values for pair in self.runs for run in pair) else PROCESS_CPU

    @property
    def ratio(self) -> float:
        """The median over all pairs of this Pumice's CPU seconds divided by the other's."""
        return median(this.values[self.measure] / other.values[self.measure] for this, other in self.runs)

    @property
    def is_equal(self) -> bool:
        """Return True if all runs of both decided the same."""
        return len({run.digest for pair in self.runs for run in pair}) == 1

    def line(self) -> str:
        this, other = (median(pair[i].values[self.measure] for pair in self.runs) for i in (0, 1))
        digest = "equal" if self.is_equal else "differs"
        values = f"{number(this)} / {number(other)} | {number(self.ratio)} | {digest}"
        return f"| `{self.figure.name}` | {self.measure} | {values} |"

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.figure.name,
            "measure": self.measure,
            "pairs": [[run.values[self.measure] for run in pair] for pair in self.runs],
            "ratio": self.ratio,
            "digest": "equal" if self.is_equal else "differs",
        }


def pairs_table(found: Iterable[Pairs]) -> str:
    return "\n".join((*HEAD, *(each.line() for each in found)))


def missed_pairs(found: Iterable[Pairs], limit: float | None) -> list[str]:
    """Return a sentence for each figure whose ratio is above ``limit``; none without a limit."""
    return [
        f"{each.figure.name}: ratio {number(each.ratio)}, must reach {limit:g}"
        for each in found
        if limit is not None and each.ratio > limit
    ]
