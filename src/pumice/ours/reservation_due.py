"""Since when jobs have found no place although the room that is kept for them is free.

Room is kept by counts of places, and the action places the gang: pod by pod it may miss the only placement, and ports,
a spread or a limit of the queue may refuse it. So the room is kept for as long as the job was to run there, because the
starts of other jobs rest on that, and no longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import nan

_DUE = "reserve.due/"


def due_since(notes: Mapping[str, float]) -> dict[str, float]:
    """Return since when each job is due, by its key, in seconds since the epoch."""
    return {name.removeprefix(_DUE): since for name, since in notes.items() if name.startswith(_DUE)}


def notes_of_due(due: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    """Return the notes to write when ``due`` takes the place of ``before``: only differences, NaN ends a note."""
    ended = {f"{_DUE}{job}": nan for job in before if job not in due}
    return ended | {f"{_DUE}{job}": since for job, since in due.items() if before.get(job) != since}
