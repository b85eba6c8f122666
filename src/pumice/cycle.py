"""The line: one scheduling cycle. This is the first file to read.

    snapshot -> session -> actions -> statements -> decisions

A cycle is a function: it reads no clock, rolls no dice and talks to nobody but the planner. ``(snapshot, policy, now)``
saved is the bug report, and running it again gives the same decisions to the byte.
"""

from __future__ import annotations

from collections.abc import Callable

from pumice.columns.snapshot import Snapshot
from pumice.framework.outcome import Outcome
from pumice.framework.policy import Policy
from pumice.framework.session import Planner, Session
from pumice.framework.status import close_session

Observer = Callable[[str], None]


def _nobody(phase: str) -> None:
    """The observer of a cycle that nobody watches."""


def run_cycle(snapshot: Snapshot, policy: Policy, now: float, planner: Planner, observe: Observer = _nobody) -> Outcome:
    """Decide what to bind and evict, and what users should be told.

    ``now``: seconds since the epoch. ``observe`` is told the name of each phase as it begins, so that the shell can
    time it.
    """
    observe("open")
    idle = policy.only_for_waiting and snapshot.tables.jobs.nothing_waits
    ssn = Session(snapshot, policy, now, planner, to_write=not idle)
    for action in policy.actions:
        observe(action.name)
        ssn.action = action.name
        action.run(ssn, **action.arguments)
    observe("close")
    return close_session(ssn)
