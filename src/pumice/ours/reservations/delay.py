"""Starts that a reservation said, from cycle to cycle, what made one later, and since when jobs are due.

A start is said once the room that it needs depends on running jobs alone. It is kept in the notes of the snapshot, so
the next cycle knows it. If the start is later then, there is a cause, which is looked for among what has changed since:
the jobs without which the job would fit at the moment that was said.

Room is kept by counts of places, and the action places the gang: pod by pod it may miss the only placement, and ports,
a spread or a limit of the queue may refuse it. Such a job is due, and its room is kept for as long as it was to run
there, because the starts of other jobs rest on that, and no longer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isnan, nan

from msgspec import Struct

from pumice.model.blockers import MovedBy

#: Jobs whose starts are remembered: as many as may have a reservation at a time.
JOBS_MAX = 64
#: Candidates for causes that are tried at most. Each costs a search for places.
_CANDIDATES_MAX = 32
#: A start is later if it is so by more than this, in seconds: events of one moment come one after the other.
LATER_S = 1.0
_SAID, _AT, _FIRST, _PLACES = "reserve.said/", "reserve.at/", "reserve.first/", "reserve.places/"
_DUE = "reserve.due/"


class SaidStart(Struct, frozen=True):
    """``start`` was said at ``at`` and ``first`` when the job was first given a reservation, in seconds since the
    epoch. ``places``: for pods of the job on empty nodes at that time."""

    start: float
    at: float
    first: float
    places: float


def said_starts(notes: Mapping[str, float]) -> dict[str, SaidStart]:
    """Return what earlier cycles said, by job."""
    found = {}
    for name in notes:
        if name.startswith(_SAID):
            job = name.removeprefix(_SAID)
            values = [notes.get(f"{key}{job}", nan) for key in (_SAID, _AT, _FIRST, _PLACES)]
            if not any(map(isnan, values)):
                found[job] = SaidStart(*values)
    return found


def notes_of(said: Mapping[str, SaidStart], before: Mapping[str, SaidStart]) -> dict[str, float]:
    """Return the notes to write when ``said`` takes the place of ``before``: only differences, NaN ends a note."""
    kept = dict(list(said.items())[:JOBS_MAX])
    notes: dict[str, float] = {}
    for job in dict.fromkeys((*before, *kept)):
        now, then = kept.get(job), before.get(job)
        if now != then:
            values = (nan,) * 4 if now is None else (now.start, now.at, now.first, now.places)
            notes |= {f"{key}{job}": value for key, value in zip((_SAID, _AT, _FIRST, _PLACES), values, strict=True)}
    return notes


def due_since(notes: Mapping[str, float]) -> dict[str, float]:
    """Return since when each due job has found no place although its room is free, by its key."""
    return {name.removeprefix(_DUE): since for name, since in notes.items() if name.startswith(_DUE)}


def notes_of_due(due: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    """Return the notes to write when ``due`` takes the place of ``before``: only differences, NaN ends a note."""
    ended = {f"{_DUE}{job}": nan for job in before if job not in due}
    return ended | {f"{_DUE}{job}": since for job, since in due.items() if before.get(job) != since}


def needed_of(candidates: Sequence[MovedBy], fits_without: Callable[[Sequence[MovedBy]], bool]) -> list[MovedBy]:
    """Return those candidates without which the job would fit, none more than are needed; [] if it would not fit
    without all of them.

    ``fits_without``: whether the job would fit at the moment that was said, if these did not hold nodes then.
    """
    left: list[MovedBy] = []
    for each in candidates[:_CANDIDATES_MAX]:
        left.append(each)
        if fits_without(left):
            break
    else:
        return []
    # The last one is needed. Those before it may have been tried in vain.
    for each in left[:-1]:
        fewer = [other for other in left if other is not each]
        if fits_without(fewer):
            left = fewer
    return left
