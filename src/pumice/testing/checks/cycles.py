"""Whole cycles: with a memo and without, and while nothing happens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pumice.columns.snapshot import Snapshot
from pumice.cycle import run_cycle
from pumice.framework.memo import Memo
from pumice.framework.outcome import Outcome
from pumice.framework.policy import Policy
from pumice.model.decisions import Decision
from pumice.runtime.loop import ListPlanner
from pumice.testing.checks.breach import Breach


class Cycle(NamedTuple):
    """One cycle, and what it decided. ``admitted``: jobs whose phase it changed."""

    outcome: Outcome
    decisions: tuple[Decision, ...]
    admitted: tuple[str, ...]

    @property
    def decided(self) -> tuple[Any, ...]:
        """What was decided, admitted or promised."""
        return (*self.decisions, *self.admitted, *self.outcome.pipelined.items())


def cycle(snapshot: Snapshot, policy: Policy, now: float, memo: Memo) -> Cycle:
    planner = ListPlanner()
    outcome = run_cycle(snapshot, policy, now, planner, memo=memo)
    jobs = outcome.tables.jobs
    changed = (jobs.phase != snapshot.tables.jobs.phase).nonzero()[0].tolist()
    return Cycle(outcome, tuple(planner.taken), tuple(jobs.uids[row] for row in changed))


def nothing_failed(found: Cycle, plugins: Sequence[str]) -> None:
    """Raises: Breach where a plugin failed."""
    for fault in found.outcome.faults:
        if fault.plugin in plugins:
            facts = [("about", fault.subject), ("at", fault.where)]
            raise Breach("raises", fault.plugin, f"{fault.hook} at {fault.point}", fault.problem, facts, _FAULT)


_FAULT = "In a cycle this costs whoever was asked about its turn."


def told(found: Cycle) -> dict[str, Any]:
    """All that comes of a cycle, by name."""
    outcome, tables = found.outcome, found.outcome.tables
    moving = {
        f"{name}.{column}": getattr(of, column).tobytes()
        for name in ("tasks", "jobs", "subs", "nodes")
        for of in (getattr(tables, name),)
        for column in of.MOVING
    }
    return {
        "decisions": found.decisions,
        "promises": outcome.pipelined,
        "statuses": outcome.groups,
        "queues": outcome.queues,
        "notices": tuple(outcome.notices()),
        "story": outcome.entries,
        "events": outcome.events,
        "figures": {name: value.tobytes() for name, value in outcome.figures.items()},
        "wakes at": outcome.wakes_at,
        **moving,
    }


def memo_changes_nothing(remembering: Cycle, forgetful: Cycle, plugins: Sequence[str]) -> None:
    """Raises: Breach where a cycle with a memo is not the one without."""
    ours, plain = told(remembering), told(forgetful)
    for name, wanted in plain.items():
        if ours[name] != wanted:
            with_memo, without = _first_difference(ours[name], wanted)
            facts = [("without a memo", without), ("with one", with_memo)]
            problem = f"{name} are not the same with a memo and without"
            raise Breach("memo", " or ".join(plugins), "a whole cycle", problem, facts, _MEMO)


_MEMO = (
    "Some answer was kept although it would be another one by now: what it is read from is not in reads=, is kept in"
    " plain Python, or is written beside the journal."
)


def _first_difference(ours: Any, wanted: Any) -> tuple[Any, Any]:
    if isinstance(ours, list | tuple) and isinstance(wanted, list | tuple):
        for left, right in zip(ours, wanted, strict=False):
            if left != right:
                return left, right
        rest = len(min(ours, wanted, key=len))
        return ours[rest : rest + 1], wanted[rest : rest + 1]
    return ours, wanted


@dataclass(frozen=True, slots=True)
class Quiet:
    """A cycle that decided nothing, when it was, and until when it said that it would not."""

    now: float
    wakes_at: float


def quiet_until(found: Cycle, now: float) -> Quiet | None:
    """None for a cycle that decided something."""
    if found.decided:
        return None
    wakes = found.outcome.wakes_at
    return Quiet(now, float("inf") if wakes is None else wakes)


def sleeps_until_it_wakes(last: Quiet | None, found: Cycle, now: float, plugins: Sequence[str]) -> None:
    """While nothing happens to the cluster but that time goes by, nothing is decided before the moment that wakes_at()
    names. Raises: Breach."""
    if last is None or not found.decided or now >= last.wakes_at:
        return
    facts = [("quiet at", last.now), ("until", last.wakes_at), ("decided at", now), ("decision", found.decided[0])]
    problem = "decides by the clock, and wakes_at() does not say when"
    raise Breach("wakes", " or ".join(plugins), "wakes_at", problem, facts, _WAKES)


_WAKES = (
    "Who answers otherwise as time goes by, though nothing happens, gives the next such moment in wakes_at(): nobody"
    " asks before it in a simulation."
)
