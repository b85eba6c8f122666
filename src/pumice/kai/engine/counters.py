"""Count the work of actions for metrics."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from pumice.framework.cycle.session import Session


class Tally(StrEnum):
    """What is counted: jobs tried, jobs placed, scenarios simulated, and scenarios rejected by bounds."""

    TRIED = "jobs tried"
    PLACED = "jobs placed"
    SIMULATED = "scenarios simulated"
    RULED_OUT = "scenarios ruled out"


def tally(ssn: Session, what: Tally, times: int = 1) -> None:
    """Add to a counter of the current action."""
    ssn.trace.counts[f"{what} {ssn.trace.action}"] += times


def tallies(counts: Counter[str], what: Tally) -> dict[str, int]:
    """Return a counter's value per action name."""
    head = f"{what} "
    return {name.removeprefix(head): count for name, count in counts.items() if name.startswith(head)}
