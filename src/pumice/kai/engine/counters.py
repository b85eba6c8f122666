"""What actions count about their work, for metrics."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from pumice.framework.cycle.session import Session


class Tally(StrEnum):
    """Jobs that had a turn, and those of them that were placed; scenarios that were simulated, and those that bounds
    ruled out before."""

    TRIED = "jobs tried"
    PLACED = "jobs placed"
    SIMULATED = "scenarios simulated"
    RULED_OUT = "scenarios ruled out"


def tally(ssn: Session, what: Tally, times: int = 1) -> None:
    """Count for the action that runs."""
    ssn.trace.counts[f"{what} {ssn.trace.action}"] += times


def tallies(counts: Counter[str], what: Tally) -> dict[str, int]:
    """What each action counted, by its name."""
    head = f"{what} "
    return {name.removeprefix(head): count for name, count in counts.items() if name.startswith(head)}
