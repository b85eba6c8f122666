"""Whole cycles: with and without a memo, and while nothing happens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from pumice.columns.snapshot import Snapshot
from pumice.cycle import run_cycle
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.memo import Memo
from pumice.framework.plugin.policy_file import Policy
from pumice.model.decisions import Decision
from pumice.runtime.files.snapshot_file import Cycle as SavedCycle
from pumice.runtime.files.snapshot_file import from_bytes, to_bytes
from pumice.runtime.loop import ListPlanner
from pumice.testing.checks.breach import Breach
from pumice.volcano.status import rejections


class Cycle(NamedTuple):
    """A cycle and its decisions. ``admitted``: jobs whose phase it changed."""

    outcome: Outcome
    decisions: tuple[Decision, ...]
    admitted: tuple[str, ...]

    @property
    def decided(self) -> tuple[Any, ...]:
        """What was decided, admitted or reserved."""
        return (*self.decisions, *self.admitted, *self.outcome.pipelined.items())


def cycle(snapshot: Snapshot, policy: Policy, now: float, memo: Memo) -> Cycle:
    planner = ListPlanner()
    outcome = run_cycle(snapshot, policy, now, planner, memo=memo, publishes=True)
    jobs = outcome.tables.jobs
    changed = (jobs.phase != snapshot.tables.jobs.phase).nonzero()[0].tolist()
    return Cycle(outcome, tuple(planner.taken), tuple(jobs.uids[row] for row in changed))


def through_a_file(snapshot: Snapshot, now: float) -> Snapshot:
    """Return what ``pumice schedule`` reads if this snapshot is saved."""
    return from_bytes(to_bytes(SavedCycle(snapshot, now, ""))).snapshot


def nothing_failed(found: Cycle, plugins: Sequence[str]) -> None:
    """Raise Breach if a plugin failed."""
    for fault in found.outcome.faults:
        if fault.plugin in plugins:
            facts = [("about", fault.subject), ("at", fault.where)]
            raise Breach("raises", fault.plugin, f"{fault.hook} at {fault.point}", fault.problem, facts, _FAULT)


_FAULT = "In a cycle, the job that was asked about is skipped for this."


def facts_of(found: Cycle) -> dict[str, Any]:
    """Return all results of a cycle, by name."""
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
        "trace": outcome.entries,
        "events": rejections.events(outcome),
        "figures": {name: value.tobytes() for name, value in outcome.figures.items()},
        "wakes at": outcome.wakes_at,
        **moving,
    }


def memo_changes_nothing(remembering: Cycle, forgetful: Cycle, plugins: Sequence[str]) -> None:
    """Raise Breach if a cycle with a memo differs from one without."""
    _are_one(remembering, forgetful, plugins, "memo", ("with a memo", "without"), _MEMO)


def a_file_changes_nothing(read: Cycle, seen: Cycle, plugins: Sequence[str]) -> None:
    """Raise Breach if a cycle on a snapshot from a file differs from one on the snapshot itself."""
    _are_one(read, seen, plugins, "file", ("after the snapshot was saved and read", "before"), _FILE)


def _are_one(ours: Cycle, wanted: Cycle, plugins: Sequence[str], rule: str, when: tuple[str, str], advice: str) -> None:
    found = facts_of(ours)
    for name, value in facts_of(wanted).items():
        if found[name] != value:
            first, second = _first_difference(found[name], value)
            problem = f"{name} are not the same {when[0]} and {when[1]}"
            raise Breach(
                rule, " or ".join(plugins), "a whole cycle", problem, [(when[1], second), (when[0], first)], advice
            )


_MEMO = (
    "Some answer was kept although it would be another one by now: what it is read from is not in reads=, is kept in"
    " plain Python, or is written beside the journal."
)

_FILE = (
    "A snapshot is all that a cycle is decided from: what is in no column and in no object of it is not there when"
    " pumice schedule runs the cycle again."
)


def _first_difference(ours: Any, wanted: Any) -> tuple[Any, Any]:
    if isinstance(ours, list | tuple) and isinstance(wanted, list | tuple):
        for left, right in zip(ours, wanted, strict=False):
            if left != right:
                return left, right
        rest = len(min(ours, wanted, key=len))
        return ours[rest : rest + 1], wanted[rest : rest + 1]
    return ours, wanted


class Quiet(Struct, frozen=True):
    """A cycle that decided nothing, its time, and until when it said that it would not."""

    now: float
    wakes_at: float


def quiet_until(found: Cycle, now: float) -> Quiet | None:
    """Return it, or None for a cycle that decided something."""
    if found.decided:
        return None
    wakes = found.outcome.wakes_at
    return Quiet(now, float("inf") if wakes is None else wakes)


def sleeps_until_it_wakes(last: Quiet | None, found: Cycle, now: float, plugins: Sequence[str]) -> None:
    """Check that nothing is decided before the time of wakes_at() while only time passes. Raises: Breach."""
    if last is None or not found.decided or now >= last.wakes_at:
        return
    facts = [("quiet at", last.now), ("until", last.wakes_at), ("decided at", now), ("decision", found.decided[0])]
    problem = "decides by the clock, and wakes_at() does not say when"
    raise Breach("wakes", " or ".join(plugins), "wakes_at", problem, facts, _WAKES)


_WAKES = (
    "A plugin that answers differently as time passes, although nothing happens, returns the next such moment from"
    " wakes_at(): a simulation asks nothing before it."
)
