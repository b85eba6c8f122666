"""Expected starts as annotations of PodGroups, for users who look at the object.

They say when a job that waits is expected to start, between which times with 80 and with 95 %, and how often earlier
predictions were right; or why nothing can be said. Nothing else writes them. They are removed when the job has started.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from pumice.model.instants import epoch_of, stamp
from pumice.model.workloads.podgroup import PodGroup
from pumice.ours.start_scores import Record

START = "pumice.dev/expected-start"
BETWEEN_80, BETWEEN_95 = f"{START}-80", f"{START}-95"  # ISO 8601 intervals; an end that is not known is ".."
UNKNOWN, RECORD = f"{START}-unknown", f"{START}-record"
KEYS = (START, BETWEEN_80, BETWEEN_95, UNKNOWN, RECORD)

#: Times are written again if one has moved by this part of the wait, and by so many seconds at least.
_PART, _LEAST_S = 0.1, 60.0
_TEXT_MAX = 500


class WrittenStart(Struct, frozen=True):
    """What is written of one job. ``quantiles``: seconds since the epoch (LEVELS), inf for not known. ``why_not``: why
    nothing can be said, "" if something can."""

    quantiles: Sequence[float]
    why_not: str = ""


def start_annotations(start: WrittenStart, record: Record) -> dict[str, str | None]:
    """Return annotations to merge into the PodGroup; None removes one."""
    low_95, low_80, middle, high_80, high_95 = start.quantiles
    is_known = math.isfinite(middle)
    return {
        START: stamp(middle) if is_known else None,
        BETWEEN_80: _interval(low_80, high_80),
        BETWEEN_95: _interval(low_95, high_95),
        UNKNOWN: None if is_known else start.why_not[:_TEXT_MAX] or "not within the time that is simulated",
        RECORD: _said_of(record),
    }


def start_difference(group: PodGroup, wanted: Mapping[str, str | None], now: float) -> dict[str, str | None]:
    """Return what to merge into the annotations of a PodGroup, empty if nothing has changed that matters to users."""
    middle = epoch_of(wanted[START] or "")
    most = _LEAST_S if middle is None else max(_PART * (middle - now), _LEAST_S)
    # All of them together: an old interval beside a new time would contradict it.
    keys = (START, BETWEEN_80, BETWEEN_95, UNKNOWN)
    has_changed = any(_has_moved(group.annotations.get(key), wanted[key], most) for key in keys)
    return {key: text for key, text in wanted.items() if group.annotations.get(key) != text} if has_changed else {}


def removal(group: PodGroup) -> dict[str, str | None]:
    """Return what removes the annotations, empty if there are none."""
    return {key: None for key in KEYS if key in group.annotations}


def _interval(low: float, high: float) -> str | None:
    if not math.isfinite(low):
        return None
    return f"{stamp(low)}/{stamp(high) if math.isfinite(high) else '..'}"


def _said_of(record: Record) -> str | None:
    if not record.known:
        return None
    return f"of {record.known} earlier predictions {record.within_80} within 80 %, {record.within_95} within 95 %"


def _has_moved(before: str | None, after: str | None, most: float) -> bool:
    """Return True if a time is another one by more than ``most`` seconds, or is no longer known."""
    if before is None or after is None or before == after:
        return before != after
    # Texts that are no times are equal here: why nothing is known has numbers that differ each time.
    earlier, later = ([epoch_of(part) for part in text.split("/")] for text in (before, after))
    if len(earlier) != len(later):
        return True
    for was, will_be in zip(earlier, later, strict=True):
        if (was is None) != (will_be is None):
            return True
        if was is not None and will_be is not None and abs(will_be - was) > most:
            return True
    return False
