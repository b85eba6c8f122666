"""Starts that were expected at some cycles of a record, against the starts that the record then has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from msgspec import Struct

from pumice.runtime.job_times import JobTimes

#: Rows of one answer, those with the largest error first.
ROWS_MAX = 100
#: Starts are seen by cycles, which are about a second apart.
_EXACT_S = 1.0


class StartCheck(Struct, frozen=True):
    """What was expected of a job at a moment, and when it started. Seconds since the epoch; ``low`` to ``high`` has the
    start with a probability of 80 %, None for not within the time that was simulated. ``started``: None if it had not
    when the record ended."""

    job: str
    at: float
    middle: float
    low: float
    high: float | None
    started: float | None

    @property
    def is_within(self) -> bool:
        """Whether it started within the interval, as exactly as that is known."""
        high = float("inf") if self.high is None else self.high
        return self.started is not None and self.low - _EXACT_S <= self.started <= high + _EXACT_S


def compared(expected: Sequence[Mapping[str, Any]], times: JobTimes) -> dict[str, Any]:
    """Return what was expected, each with what happened. ``expected``: as ``ExpectedStarts`` asks for them."""
    rows = [row for document in expected for row in _of_one(document, times)]
    known = [row for row in rows if row.started is not None]
    errors = [abs(row.middle - row.started) for row in known if row.started is not None]
    rows.sort(key=lambda row: (row.started is None, -abs(row.middle - (row.started or 0.0)), row.job, row.at))
    return {
        "moments": sorted({document["at"] for document in expected}),
        "expected": len(rows),
        "started": len(known),
        "within": sum(row.is_within for row in known),
        "median_error_s": median(errors) if errors else None,
        "rows": rows[:ROWS_MAX],
        "left_out": max(len(rows) - ROWS_MAX, 0),
    }


def _of_one(document: Mapping[str, Any], times: JobTimes) -> list[StartCheck]:
    at, found = document["at"], list[StartCheck]()
    for job, start in document["jobs"].items():
        time = times.of(job)
        low, high = start["interval_80_s"]
        if start["why_not"] or start["middle_s"] is None or low is None or time is None:
            continue
        started = time.started_after(at)
        ends = None if high is None else at + high
        found.append(StartCheck(job, at, at + start["middle_s"], at + low, ends, started))
    return found
