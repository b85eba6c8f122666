"""Hints as conditions of PodGroups: what would help, for users who look at the object and not at a log.

The condition ``PumiceHint`` is added to those of Volcano. Its numbers change with the cluster, so it is written at most
once in a while for each group, for some groups per cycle, and never if the cycle itself writes the status. It ends when
the gang runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from msgspec.structs import replace

from pumice.columns.jobs import INQUEUE_PHASE, PENDING_PHASE
from pumice.framework.cycle.outcome import Outcome
from pumice.model.decisions import PodGroupUpdate
from pumice.model.workloads.podgroup import PodGroup, PodGroupCondition, PodGroupStatus
from pumice.reasons.hints import hints

HINT = "PumiceHint"
#: Seconds between two hints on one group.
AGAIN_S = 30.0
#: Groups that are examined per cycle.
GROUPS_MAX = 64
_BEGUN = ("Running", "Completed")


class HintConditions:
    """``is_busy``: returns whether something else is being written to a group."""

    def __init__(self, is_busy: Callable[[str], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._is_busy, self._clock = is_busy, clock
        self._looked_at: dict[str, float] = {}

    def updates(self, outcome: Outcome) -> list[PodGroupUpdate]:
        """Return what to write after a cycle, based on the statuses at its start. Groups that have not been examined
        for the longest time come first."""
        jobs, now = outcome.tables.jobs, self._clock()
        live = outcome.live_jobs
        waits = live[np.isin(jobs.phase[live], (PENDING_PHASE, INQUEUE_PHASE))]
        # KAI's gangs have no such conditions: their own say why they wait
        keys = {jobs.uids[row]: row for row in waits.tolist() if jobs.groups[row].gang is None}
        self._looked_at = {key: at for key, at in self._looked_at.items() if key in keys}
        written = {update.job for update in outcome.groups}
        due = [key for key in keys if now - self._looked_at.get(key, -AGAIN_S) >= AGAIN_S and key not in written]
        due.sort(key=lambda key: (self._looked_at.get(key, -AGAIN_S), key))
        due = [key for key in due[:GROUPS_MAX] if not self._is_busy(key)]
        if not due:
            return []
        self._looked_at.update(dict.fromkeys(due, now))
        only = np.zeros(jobs.capacity, dtype=bool)
        only[[keys[key] for key in due]] = True
        return [
            PodGroupUpdate(key, status)
            for key, text in hints(outcome, only).items()
            if (status := with_hint(jobs.groups[keys[key]], text, outcome)) is not None
        ]


def with_hint(group: PodGroup, text: str, outcome: Outcome) -> PodGroupStatus | None:
    """Return the status with the hint, or None if it has it already."""
    status = group.status
    before = next((each for each in status.conditions if each.type == HINT), None)
    if before is not None and (before.status, before.message) == ("True", text):
        return None
    hint = PodGroupCondition(HINT, "True", "Waiting", text, outcome.uid, outcome.now)
    if before is None:
        return replace(status, conditions=(*status.conditions, hint))
    return replace(status, conditions=tuple(hint if each is before else each for each in status.conditions))


def without_hint(update: PodGroupUpdate) -> PodGroupUpdate:
    """Remove the hint if the gang has begun to run."""
    conditions = update.status.conditions
    if update.status.phase not in _BEGUN or not any(each.type == HINT and each.status == "True" for each in conditions):
        return update
    over = tuple(
        replace(each, status="False", reason="Scheduled", message="") if each.type == HINT else each
        for each in conditions
    )
    return replace(update, status=replace(update.status, conditions=over))
