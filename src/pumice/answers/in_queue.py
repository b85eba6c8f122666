"""What is around a waiting job in its queue: its place in the order, and the jobs that hold what the queue may have."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from pumice.answers.steps.step import main_resource, sum_of
from pumice.answers.world import Trials, World
from pumice.columns.counting import PENDING
from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.closing import looking
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.framework.plugin.errors import PluginFault
from pumice.model.blockers import CLOSED, Blocker, QueueLimit

#: Jobs that are named.
_NAMED_MAX = 3
#: What decides where no plugin does.
AGE, NAME = "age", "name"


class Place(Struct, frozen=True):
    """The ``number``-th of ``count`` jobs of the queue that wait. ``ahead``: the nearest before it. ``by``: the plugin
    whose order puts the nearest one first, ``age`` or ``name`` if plugins hold them equal, "" where that is not known
    or it is the first."""

    number: int
    count: int
    ahead: tuple[str, ...] = ()
    by: str = ""


class Holder(Struct, frozen=True):
    """A job, and what its pods with a node hold of a resource, in the units of the core."""

    job: str
    resource: str
    amount: float


def place_of(trials: Trials, job: str) -> Place | None:
    """Return the place of a job among those of its queue that wait, None where it does not wait or a plugin fails."""
    ssn = looking(trials.snapshot(), trials.world.policy, trials.world.now)
    try:
        ssn.open()
        return _place(ssn, job)
    except PluginFault:
        return None
    finally:
        ssn.close()


def _place(ssn: Session, job: str) -> Place | None:
    jobs = ssn.tables.jobs
    waits = jobs.alive & (jobs.counts[:, PENDING] > 0)
    own = next((row for row in waits.nonzero()[0].tolist() if jobs.uids[row] == job), None)
    if own is None:
        return None
    ordered = ssn.order.jobs_in_order((waits & (jobs.queue == jobs.queue[own])).nonzero()[0])
    at = ordered.index(own)
    before = ordered[max(at - _NAMED_MAX, 0) : at][::-1]
    by = _decided_by(ssn, np.array([before[0], own])) if before else ""
    return Place(at + 1, len(ordered), tuple(jobs.uids[row] for row in before), by)


def _decided_by(ssn: Session, two: AnyArray) -> str:
    """Return the plugin by whose order the first of two jobs goes first."""
    jobs, hooks = ssn.tables.jobs, ssn.hooks.at(points.job_order)
    columns = ssn.order.job_columns(two)
    if columns is None:
        return ""
    for hook, column in zip(hooks, columns, strict=False):
        if column[0] != column[1]:
            return hook.plugin
    return AGE if jobs.creation[two[0]] != jobs.creation[two[1]] else NAME


def holders_of(world: World, job: str, blocker: Blocker | None) -> tuple[Holder, ...]:
    """Return the jobs that hold most of what a limit of a queue is about, the largest first. A limit without amounts is
    taken to be about what the job is counted in."""
    if not isinstance(blocker, QueueLimit) or blocker.queue not in world.queues or blocker.kind == CLOSED:
        return ()
    over = blocker.exceeded or blocker.resources
    name = over[0].resource if over else main_resource([pod.spec for pod in world.pods_of.get(job, ())])
    below = _at_or_below(world, blocker.queue)
    found = []
    for key, pods in world.pods_of.items():
        group = world.groups.get(key)
        if group is not None and group.queue in below:
            held = sum_of(pod.spec.request for pod in pods if pod.node_name).get(name)
            if held:
                found.append(Holder(key, name, held))
    return tuple(sorted(found, key=lambda holder: (-holder.amount, holder.job))[:_NAMED_MAX])


def _at_or_below(world: World, queue: str) -> set[str]:
    """Return the names of a queue and of all below it."""
    found = {queue}
    for _ in world.queues:
        more = {each.name for each in world.queues.values() if each.parent in found} - found
        if not more:
            break
        found |= more
    return found
