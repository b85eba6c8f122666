"""Which steps may help against which obstacle."""

from __future__ import annotations

from collections.abc import Iterator

from pumice.answers.codes import Code
from pumice.answers.lifts import Lift
from pumice.answers.requests import room_for
from pumice.answers.steps.devices import meet_claims
from pumice.answers.steps.nodes import add_nodes, grow_nodes, remove_jobs, search_for_gang, untaint
from pumice.answers.steps.queues import raise_limits, raise_overcommit, raise_quotas, raise_share
from pumice.answers.steps.step import Step, lower_minimum, whole
from pumice.answers.world import Trials, World, row_of
from pumice.model.blockers import Blocker

#: Codes of obstacles that other nodes, or fewer pods on nodes, may lift.
_OF_NODES = {Code.ROOM, Code.DOMAIN, Code.PORT, Code.SPREAD, Code.AFFINITY, Code.TAINT, Code.SELECTOR}


def steps_for(
    trials: Trials, job: str, lifts: tuple[Lift, ...], blockers: tuple[Blocker | None, ...]
) -> tuple[list[Step], list[list[Step]]]:
    """Return steps that may do for all obstacles of a job, and steps for each obstacle; cheap ones first. ``blockers``:
    what the cycle says about each obstacle."""
    world = trials.world
    codes = {each.code for each in lifts}
    row = row_of(trials.base.outcome, job)
    room = 0 if row is None else room_for(trials.base.outcome.tables, row)
    general = list(lower_minimum(world, job, room))
    by_lift: list[list[Step]] = []
    if Code.ROOM in codes:
        general += search_for_gang(world, job)
    if codes & _OF_NODES:
        general += remove_jobs(world, job, [each.name for each in lifts if each.name])
    nodes = list(add_nodes(world, job, room)) if codes & _OF_NODES else []
    general += nodes
    if Code.ROOM in codes:
        by_lift.append([*nodes, *grow_nodes(world, job, room)])
    for each, blocker in zip(lifts, blockers, strict=True):
        if each.code is Code.ROOM:
            continue
        found = list(_steps_against(world, job, each.code, blocker))
        by_lift.append(found or [whole(world, job, each)])
    return general, by_lift


def _steps_against(world: World, job: str, code: Code, blocker: Blocker | None) -> Iterator[Step]:
    match code:
        case Code.QUEUE_LIMIT:
            yield from raise_limits(world, job, blocker)
        case Code.QUEUE_SHARE:
            yield from raise_share(world, job, blocker)
        case Code.ADMISSION:
            yield from raise_overcommit(world, blocker)
        case Code.RESOURCE_QUOTA:
            yield from raise_quotas(world, job, blocker)
        case Code.TAINT:
            yield from untaint(world, job)
        case Code.DEVICE:
            yield from meet_claims(world, job)
