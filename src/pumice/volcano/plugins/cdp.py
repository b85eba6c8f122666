"""cdp: protect pods from eviction for a while after they were placed (cooldown protection). Source: Volcano cdp
plugin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pumice.api import (
    F64,
    I64,
    NOW,
    ROWS,
    Bool,
    Candidates,
    DurationError,
    Pod,
    Session,
    Task,
    TaskStatus,
    parse_duration,
    plugin,
    points,
)
from pumice.framework.memo import Memo

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
        rests_on = (tasks["pods"].version,)
        self.until: F64 = ssn.memo.get("cdp.until", rests_on, lambda: _until(ssn.memo, tasks.pods))

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
        spared = (candidates.tables.tasks.status[rows] == _RUNNING) & (self.until[rows] > self.ssn.now)
        return np.asarray(~spared)


def cooldown(pod: Pod) -> float:
    """Return for how many seconds a pod is protected after it was placed, 0 if there is no valid time."""
    text = pod.labels.get(COOLDOWN_KEY)
    text = pod.annotations.get(COOLDOWN_KEY) if text is None else text
    try:
        return max(0.0, parse_duration(text)) if text else 0.0
    except DurationError:
        return 0.0


class _Known(NamedTuple):
    """Pods, who they are by identity, and until when each is spared."""

    pods: Sequence[Pod]
    ids: I64
    until: F64


def _until(memo: Memo, pods: Sequence[Pod]) -> F64:
    """Return until when each pod is protected; only pods that changed are read. Shape (T,)."""
    known: _Known | None = memo.recall(_Known, ())
    # A pod object is replaced when the pod changes, so the same object still says what was read before. ``known.pods``
    # keeps the old objects alive. Otherwise a new object could get the address of an old one.
    ids = np.fromiter(map(id, pods), dtype=np.int64, count=len(pods))
    found = np.full(len(pods), -np.inf)
    changed = np.ones(len(pods), dtype=bool)
    if known is not None:
        same = min(len(pods), len(known.pods))
        changed[:same] = ids[:same] != known.ids[:same]
        found[:same] = known.until[:same]
    for row in np.flatnonzero(changed).tolist():
        found[row] = _end(pods[row]) if pods[row] is not None else -np.inf
    memo.keep(_Known, (), _Known(pods, ids, found))
    return found


def _end(pod: Pod) -> float:
    """Return when the protection of a pod ends, -inf for none."""
    if COOLDOWN_KEY not in pod.labels and COOLDOWN_KEY not in pod.annotations:
        return float("-inf")
    placed = (each.last_transition for each in pod.conditions if each.type == "PodScheduled" and each.status == "True")
    seconds, since = cooldown(pod), next(placed, None)
    return since + seconds if seconds and since is not None else float("-inf")
