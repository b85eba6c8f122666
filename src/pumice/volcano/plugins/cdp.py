"""cdp: protect pods from eviction for a while after they were placed (cooldown protection). Source: Volcano cdp
plugin.
"""

from __future__ import annotations

import numpy as np

from pumice.api import (
    F64,
    NOW,
    ROWS,
    Bool,
    Candidates,
    Pod,
    Session,
    Task,
    TaskStatus,
    duration_or,
    plugin,
    points,
)

COOLDOWN_KEY = "volcano.sh/cooldown-time"
_RUNNING = int(TaskStatus.RUNNING)


@plugin("cdp")
class Cooldown:
    """Protect pods for the time in their label ``volcano.sh/cooldown-time``, or else in the annotation of that name
    (``600s``).

    ``until`` (T,): end of each task's protection in seconds since the epoch, -inf for none.
    """

    spares = "placed so short a time ago that their cooldown lasts"

    def __init__(self, ssn: Session) -> None:
        self.ssn, tasks = ssn, ssn.tables.tasks
        # Labels, annotations and conditions are parts of pods, and nothing else is read; so the times survive every
        # cycle in which no pod changes.
        rests_on = (tasks["pods"].version,)
        self.until: F64 = ssn.memo.get("cdp.until", rests_on, lambda: np.array([_end(pod) for pod in tasks.pods]))

    def wakes_at(self) -> float | None:
        """Return when the next protection of a running pod ends, if any job is waiting."""
        if self.ssn.is_idle:
            return None
        # If no job is waiting, none asks for evictions, and the end of a protection changes no answer.
        ends = self.until[(self.until > self.ssn.now) & (self.ssn.tables.tasks.status == _RUNNING)]
        return float(ends.min()) if len(ends) else None

    @points.preemptable(reads=(ROWS, NOW))
    @points.reclaimable(reads=(ROWS, NOW))
    def evictable(self, evictor: Task, candidates: Candidates) -> Bool:
        """Return all candidates but running tasks under protection. Shape (rows,)."""
        rows = candidates.rows
        # Only running tasks: one that is still to start has done no work that an eviction would lose.
        spared = (candidates.tables.tasks.status[rows] == _RUNNING) & (self.until[rows] > self.ssn.now)
        return np.asarray(~spared)


def cooldown(pod: Pod) -> float:
    """Return for how many seconds a pod is protected after it was placed, 0 if there is no valid time."""
    text = pod.labels.get(COOLDOWN_KEY)
    # The label goes first, as in Volcano, and an invalid label is not replaced by the annotation.
    text = pod.annotations.get(COOLDOWN_KEY) if text is None else text
    return max(0.0, duration_or(text, 0.0))


def _end(pod: Pod | None) -> float:
    """Return when the protection of a pod ends, -inf for none and for a row without a pod."""
    if pod is None or (COOLDOWN_KEY not in pod.labels and COOLDOWN_KEY not in pod.annotations):
        return float("-inf")
    placed = (each.last_transition for each in pod.conditions if each.type == "PodScheduled" and each.status == "True")
    seconds, since = cooldown(pod), next(placed, None)
    return since + seconds if seconds and since is not None else float("-inf")
