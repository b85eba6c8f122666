"""Hints as conditions of PodGroups: what would help, for users who look at the object and not at a log.

The condition ``PumiceHint`` is added to those of Volcano. Its numbers change with the cluster, so it is written at most
once in a while for each group, for some groups per cycle, and never if the cycle itself writes the status. How many
groups these are follows from what hints cost, so that they take a small part of a core, however many gangs wait. It
ends when the gang runs.
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
#: Groups that are examined per cycle, and the part of the time that this may take, of one core.
GROUPS_MAX, SHARE = 64, 0.02
_BEGUN = ("Running", "Completed")


class HintConditions:
    """``is_busy``: returns whether something else is being written to a group. ``clock`` and ``cpu``: seconds that have
    passed, and that this thread has worked."""

    def __init__(
        self,
        is_busy: Callable[[str], bool],
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        self._is_busy, self._clock, self._cpu = is_busy, clock, cpu
        self._looked_at: dict[str, float] = {}
        self._last, self._cost = 0.0, 0.0  # when groups were examined last, and what one of them took

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
        due = [key for key in due[: self._count(now)] if not self._is_busy(key)]
        if not due:
            return []
        began = self._cpu()
        self._looked_at.update(dict.fromkeys(due, now))
        only = np.zeros(jobs.capacity, dtype=bool)
        only[[keys[key] for key in due]] = True
        found = hints(outcome, only)
        self._last, self._cost = now, (self._cpu() - began) / len(due)
        return [
            PodGroupUpdate(key, status)
            for key, text in found.items()
            if (status := with_hint(jobs.groups[keys[key]], text, outcome)) is not None
        ]

    def _count(self, now: float) -> int:
        """Return how many groups may be examined, at least one."""
        most = SHARE * (now - self._last)
        return max(1, int(most / self._cost)) if self._cost * GROUPS_MAX > most else GROUPS_MAX


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
