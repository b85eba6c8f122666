"""Groups that were admitted and have no pods: how long, and which of them hold their queue no more.

What an admitted group asks for counts against its queue until its pods hold it. If the pods never come, because their
controller is gone or a user made the group alone, it counts for ever (volcano#2143, volcano#2633). Volcano has no rule
against that.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import nan

from pumice.columns.jobs import INQUEUE_PHASE
from pumice.framework.cycle.session import Session
from pumice.model.quantity import duration_or

_EMPTY = "group.empty "  # prefix of notes: since when an admitted group has no pods


def seconds_until_given_back(ssn: Session) -> float | None:
    """Return after how many seconds without pods an admitted group holds its queue no more; None if never. It is an
    argument of ``gang``."""
    for option in ssn.policy.options:
        if option.spec.name == "gang" and (text := option.arguments.get("emptyGroupsHoldFor")):
            return duration_or(text, 0.0) or None
    return None


def empty_since(ssn: Session) -> dict[int, float]:
    """Return since when admitted groups have no pods, by row; the notes of the session keep it."""
    jobs, notes, found = ssn.tables.jobs, ssn.snapshot.notes, dict[int, float]()
    empty = jobs.alive & (jobs.queue >= 0) & (jobs.phase == INQUEUE_PHASE) & (jobs.size == 0)
    for job in empty.nonzero()[0].tolist():
        key = _EMPTY + jobs.groups[job].uid
        # The group does not say since when it is admitted, and its pods may have come and gone.
        found[job] = notes.get(key, ssn.now)
        if key not in notes:
            ssn.notes[key] = ssn.now
    # NaN deletes a note. Without that, notes of groups that are gone would stay for ever.
    still = {_EMPTY + jobs.groups[job].uid for job in found}
    ssn.notes.update({key: nan for key in notes if key.startswith(_EMPTY) and key not in still})
    return found


def given_back(ssn: Session) -> list[int]:
    """Return the rows of admitted groups that hold their queue no more, because they had no pods for too long."""
    after = seconds_until_given_back(ssn)
    if after is None:
        return []
    return [job for job, since in empty_since(ssn).items() if since + after <= ssn.now]


def next_given_back(ssn: Session) -> Iterator[float]:
    """Yield when groups will hold their queue no more."""
    after = seconds_until_given_back(ssn)
    if after is not None:
        yield from (since + after for since in empty_since(ssn).values())
