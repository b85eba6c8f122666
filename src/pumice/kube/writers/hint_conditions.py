"""Hints as conditions and events of PodGroups: what would help, for users who look at the object and not at a log.

The condition ``PumiceHint`` is added to those of Volcano: its reason is the code that ``pumice explain`` has for what
is nearest in the way, its message the sentence. An event with both is emitted when the code changes; KAI's gangs,
whose own conditions say why they wait, have the event only. The numbers of a sentence change with the cluster, so it
is written at most once in a while for each group, for some groups per cycle, and never if the cycle itself writes the
status. How many groups these are follows from what hints cost, so that they take a small part of a core, however many
gangs wait. The condition ends when the gang runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice

import numpy as np
from msgspec.structs import replace

from pumice.answers.codes import Code, code_of
from pumice.columns.counting import HELD
from pumice.columns.dtypes import AnyArray
from pumice.columns.jobs import INQUEUE_PHASE, PENDING_PHASE
from pumice.framework.cycle.outcome import Outcome
from pumice.kube.writers.event_recorder import EventRecorder, about_group
from pumice.model.decisions import PodGroupUpdate
from pumice.model.workloads.podgroup import PodGroup, PodGroupCondition, PodGroupStatus
from pumice.reasons.hints import hint_of
from pumice.reasons.nearest import NearestBlockers

HINT = "PumiceHint"
#: Seconds between two hints on one group.
AGAIN_S = 30.0
#: Groups that are examined per cycle, and the part of the time that this may take, of one core.
GROUPS_MAX, SHARE = 64, 0.02
_BEGUN = ("Running", "Completed")


class HintConditions:
    """``is_busy``: returns whether something else is being written to a group. ``recorder``: of the events. ``clock``
    and ``cpu``: seconds that have passed, and that this thread has worked."""

    def __init__(
        self,
        is_busy: Callable[[str], bool],
        recorder: EventRecorder,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        self._is_busy, self._recorder, self._clock, self._cpu = is_busy, recorder, clock, cpu
        self._looked_at: dict[str, float] = {}
        self._codes: dict[str, Code] = {}  # of the newest event on each group that waits
        self._last, self._cost = 0.0, 0.0  # when groups were examined last, and what one of them took

    def updates(self, outcome: Outcome) -> list[PodGroupUpdate]:
        """Return what to write after a cycle, based on the statuses at its start. Groups that have not been examined
        for the longest time come first."""
        jobs, now = outcome.tables.jobs, self._clock()
        nearest = NearestBlockers(outcome)
        keys = {jobs.uids[row]: row for row in _not_begun(nearest).tolist()}
        self._looked_at = {key: at for key, at in self._looked_at.items() if key in keys}
        self._codes = {key: code for key, code in self._codes.items() if key in keys}
        written = {update.job for update in outcome.groups}
        due = [key for key in keys if now - self._looked_at.get(key, -AGAIN_S) >= AGAIN_S]
        due.sort(key=lambda key: (self._looked_at.get(key, -AGAIN_S), key))
        # Asked one by one: thousands of groups may be due, and few of them are examined in one cycle.
        may_be = (
            key
            for key in due
            # An event is in the way of no status, so KAI's gangs need not wait.
            if jobs.groups[keys[key]].gang is not None or not (key in written or self._is_busy(key))
        )
        due = list(islice(may_be, self._count(now)))
        if not due:
            return []
        began = self._cpu()
        self._looked_at.update(dict.fromkeys(due, now))
        found: list[PodGroupUpdate] = []
        for key in sorted(due, key=keys.__getitem__):
            blocker, group = nearest.of(keys[key]), jobs.groups[keys[key]]
            code, text = code_of(blocker), hint_of(blocker, whole=True)
            if not text:
                continue
            if self._codes.get(key) is not code:
                self._codes[key] = code
                self._recorder.record(about_group(group), "Warning", code.value, text)
            status = with_hint(group, code, text, outcome) if group.gang is None else None
            if status is not None:
                found.append(PodGroupUpdate(key, status))
        self._last, self._cost = now, (self._cpu() - began) / len(due)
        return found

    def _count(self, now: float) -> int:
        """Return how many groups may be examined, at least one."""
        most = SHARE * (now - self._last)
        return max(1, int(most / self._cost)) if self._cost * GROUPS_MAX > most else GROUPS_MAX


def _not_begun(nearest: NearestBlockers) -> AnyArray:
    """Return the rows of the jobs that wait and have not begun to run."""
    jobs, rows = nearest.outcome.tables.jobs, nearest.waiting
    rows = rows[np.isin(jobs.phase[rows], (PENDING_PHASE, INQUEUE_PHASE))]
    # The phase of a gang of KAI's says nothing.
    runs = (jobs.counts[rows] @ HELD).astype(bool)
    runs[runs] = [jobs.groups[row].gang is not None for row in rows[runs].tolist()]
    found: AnyArray = rows[~runs]
    return found


def with_hint(group: PodGroup, code: Code, text: str, outcome: Outcome) -> PodGroupStatus | None:
    """Return the status with the hint, or None if it has it already."""
    status = group.status
    before = next((each for each in status.conditions if each.type == HINT), None)
    if before is not None and (before.status, before.reason, before.message) == ("True", code.value, text):
        return None
    hint = PodGroupCondition(HINT, "True", code.value, text, outcome.uid, outcome.now)
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
