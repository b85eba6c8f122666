"""Translate between blockers and the reasons in KAI's scheduling conditions."""

from __future__ import annotations

from pumice.model.blockers import ADMISSION, LIMIT, QUOTA, BadQueue, Blocker, Delayed, QueueLimit, Refused

OVER_LIMIT = "OverLimit"
NON_PREEMPTIBLE_OVER_QUOTA = "NonPreemptibleOverQuota"
POD_SCHEDULING_ERRORS = "PodSchedulingErrors"
QUEUE_DOES_NOT_EXIST = "QueueDoesNotExist"
PREEMPTION_DELAY = "PreemptionDelayNotElapsed"

_KIND_OF = {OVER_LIMIT: LIMIT, NON_PREEMPTIBLE_OVER_QUOTA: QUOTA}
_REASON_OF = {kind: reason for reason, kind in _KIND_OF.items()}


def over_limit(queue: str, reason: str) -> Blocker:
    """Return the blocker for a reason that a plugin gave at ``may_take``."""
    kind = _KIND_OF.get(reason)
    # A plugin of an author may return a reason that is not KAI's.
    return Refused(ADMISSION, reason) if kind is None else QueueLimit(queue, kind)


def reason_of(why: Blocker) -> str:
    """Return KAI's reason code for a blocker."""
    if isinstance(why, BadQueue):
        return QUEUE_DOES_NOT_EXIST
    if isinstance(why, Delayed):
        return PREEMPTION_DELAY
    return _REASON_OF.get(why.kind, POD_SCHEDULING_ERRORS) if isinstance(why, QueueLimit) else POD_SCHEDULING_ERRORS
