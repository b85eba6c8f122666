"""The texts of jobs that are not admitted, rendered from what rejects them.

Source: Volcano job_enqueueable of overcommit, proportion, capacity and resourcequota (texts kept byte for byte).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pumice.framework.cycle.outcome import Outcome
from pumice.model import blockers
from pumice.model.quantity import format_quantity


class GroupEvent(NamedTuple):
    """A message that the users of a pod group should see."""

    job: str
    type: str  # Normal | Warning
    reason: str
    message: str


def events(outcome: Outcome) -> list[GroupEvent]:
    """Why jobs are not admitted, in the order of jobs and then of texts."""
    uids = outcome.tables.jobs.uids
    # Sorted, because rejections are noted by amount, in an order that says nothing to a user.
    texts = sorted((uids[row], text_of(why)) for rows, why in outcome.trace.rejected for row in rows.tolist())
    return [GroupEvent(uid, "Normal", "Unschedulable", text) for uid, text in texts]


def text_of(why: blockers.Blocker) -> str:
    """The text of a rejection."""
    if isinstance(why, blockers.Refused):
        return why.detail
    assert isinstance(why, blockers.QueueLimit)
    # In the order in which they were found, that of the resource axis: CPU, memory, then by name.
    names = [each.resource for each in why.resources]
    match why.kind:
        case blockers.OVERCOMMIT:
            return "resource in cluster is overused: " + ", ".join(f"overused {name}" for name in names)
        # Volcano names no class here, only this placeholder for all of them. Source: Volcano capacity.go,
        # jobEnqueueable.
        case blockers.DEVICES:
            return "queue resource quota insufficient: insufficient dra-resource-exceeded"
        case blockers.RESOURCE_QUOTA:
            asked, used, limit = (
                _amounts((each.resource, getattr(each, field)) for each in why.resources)
                for field in ("asked", "used", "limit")
            )
            # Of every name that the quota limits, also of those with room, as Volcano prints the whole lists.
            return f"resource quota insufficient, requested: {asked}, used: {used}, limited: {limit}"
    return "queue resource quota insufficient: " + ", ".join(f"insufficient {name}" for name in names)


def _amounts(each: Iterable[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {format_quantity(name, amount)}" for name, amount in each)


def text_of_invalid(why: blockers.Blocker) -> str:
    """Return Volcano's text for a job that cannot start as it is, "" for a blocker that has none."""
    return why.detail if isinstance(why, blockers.GangIncomplete | blockers.Refused) else ""
