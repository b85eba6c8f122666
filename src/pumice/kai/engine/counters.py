"""Count the work of actions for metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from enum import StrEnum

from msgspec import Struct

from pumice.framework.cycle.session import Session


class Tally(StrEnum):
    """What is counted: jobs tried, jobs placed, scenarios simulated, and scenarios rejected by bounds."""

    TRIED = "jobs tried"
    PLACED = "jobs placed"
    SIMULATED = "scenarios simulated"
    RULED_OUT = "scenarios ruled out"


class SearchResult(StrEnum):
    """How a set of victims, a generator or the search for a job ended, in KAI's words.

    Source: KAI solvers (search_result, scenario_generator).
    """

    SOLVED = "solved"
    UNSOLVED = "unsolved"
    VALIDATOR_REJECTED = "validator_rejected"
    DUPLICATE = "duplicate"
    GENERATORS_EXHAUSTED = "generators_exhausted"
    DEADLINE_EXHAUSTED = "deadline_exhausted"
    NOT_ATTEMPTED = "not_attempted"


# Keys of a counter, and Structs: two named tuples of different types with equal fields would be one key.


class ActionCount(Struct, frozen=True):
    """Counts what an action did."""

    what: Tally
    action: str


class SearchedJobs(Struct, frozen=True):
    """Counts the jobs for which an action searched victims, or had no step left to do so."""

    action: str
    result: SearchResult


class TriedSets(Struct, frozen=True):
    """Counts the sets of victims of a generator, and its ends (``GENERATORS_EXHAUSTED``), that took so many steps."""

    action: str
    generator: str
    result: SearchResult
    # Few numbers occur, so that a counter by number holds a distribution without a list of all sets.
    steps: int


class ActionBudget(Struct, frozen=True):
    """Has the ``maxSearchSteps`` of an action that searches victims; 0 is no limit."""

    action: str


class ExhaustedBudgets(Struct, frozen=True):
    """Counts the runs of an action in which a job had no step left."""

    action: str


def tally(ssn: Session, what: Tally, times: int = 1) -> None:
    """Add to a counter of the current action."""
    ssn.trace.counts[ActionCount(what, ssn.trace.action)] += times


def tallies(counts: Counter[Hashable], what: Tally) -> dict[str, int]:
    """Return a counter's value per action name."""
    return {key.action: count for key, count in counts.items() if isinstance(key, ActionCount) and key.what is what}
