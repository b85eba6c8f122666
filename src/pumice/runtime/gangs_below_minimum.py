"""Gangs that hold nodes and are below their minimum, and for how long. What they hold is held for nothing."""

from __future__ import annotations

from typing import NamedTuple

from pumice.columns.counting import HELD
from pumice.framework.cycle.outcome import Outcome
from pumice.model.workloads.podgroup import PodGroup
from pumice.volcano.gangs.partially_bound import gangs_below_minimum

#: The first time that is worth a warning: binds of a gang are not confirmed at one instant. Each further warning comes
#: after twice the time.
FIRST_S = 30.0


class BelowMinimum(NamedTuple):
    """A gang below its minimum: how many of its pods hold nodes, and since when by the clock of the caller."""

    group: PodGroup
    holds: int
    since: float


class GangsBelowMinimum:
    """Note each cycle with ``note``. ``gangs``: those of the last one, by key."""

    def __init__(self) -> None:
        self.gangs: dict[str, BelowMinimum] = {}
        self._next: dict[str, float] = {}  # by gang: the age at which the next warning is due

    def note(self, outcome: Outcome, now: float) -> list[tuple[PodGroup, str]]:
        """Return gangs of which to warn, and what to say. ``now``: seconds of a clock that only increases."""
        jobs, found, due = outcome.tables.jobs, dict[str, BelowMinimum](), list[tuple[PodGroup, str]]()
        for row in gangs_below_minimum(jobs).tolist():
            group = jobs.groups[row]
            if group is None:
                continue
            before = self.gangs.get(group.key)
            since = before.since if before is not None and before.group.uid == group.uid else now
            found[group.key] = BelowMinimum(group, int(jobs.counts[row] @ HELD), since)
        self._next = {key: at for key, at in self._next.items() if key in found}
        for key, gang in found.items():
            if now - gang.since >= self._next.get(key, FIRST_S):
                self._next[key] = 2.0 * (now - gang.since)
                due.append((gang.group, _text(gang, now)))
        self.gangs = found
        return due

    def longest_s(self, now: float) -> float:
        """Return for how many seconds a gang has been below its minimum at most, 0 if there is none."""
        return max((now - gang.since for gang in list(self.gangs.values())), default=0.0)


def _text(gang: BelowMinimum, now: float) -> str:
    holds = f"{gang.holds} of its {gang.group.min_member} pods hold nodes"
    return f"below its minimum for {now - gang.since:.0f} s: {holds}"
