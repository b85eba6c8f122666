"""Find starving jobs, for which other jobs may be evicted, by queue. Source: Volcano preempt and reclaim actions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.counting import PENDING
from pumice.columns.dtypes import AnyArray, Bool
from pumice.columns.jobs import PENDING_PHASE
from pumice.columns.views import Job, Queue
from pumice.framework.cycle.ordering import Heap
from pumice.framework.cycle.session import Session
from pumice.model.blockers import DESERVED, QueueLimit
from pumice.volcano import points
from pumice.volcano.topology.label_domains import held_domain
from pumice.volcano.topology.rules import common_label, domains_of_groups, in_label_domain


def starving_jobs(ssn: Session, *, with_topology: bool, in_domains: bool = False) -> dict[int, list[int]]:
    """Return the rows of admitted, valid and starving jobs with a task to place, by queue, in row order.

    ``with_topology`` False: leave out jobs with a network topology anywhere. ``in_domains``: with jobs of which all
    pods, or those of each PodGroup in the tree, must be in one domain of a node label; trees in which groups of groups
    have domains are left out. Without it such a job counts only if pods of it are in its domain already.
    """
    jobs = ssn.tables.jobs
    which = jobs.alive & (jobs.queue >= 0) & ~jobs.quarantined
    # As Volcano: a job that is not admitted has no claim to the nodes of others, and one without pending tasks could
    # use no room.
    which &= (jobs.phase != PENDING_PHASE) & (jobs.counts[:, PENDING] > 0)
    # Evictions that know no domains of node labels would vacate nodes in several.
    for row in (which & jobs.has_topology).nonzero()[0].tolist():
        if in_label_domain(ssn.tables, row):
            which[row] = _knows_domains(ssn, row) if in_domains else held_domain(ssn, row) is not None
        else:
            which[row] = with_topology
    # A job that had a place and whose bind was refused has room without victims, and its next attempt comes later.
    rows = ssn.world.without_refused(which.nonzero()[0])
    if not len(rows):
        return {}
    starve = _that_starve(ssn, rows)
    found: dict[int, list[int]] = {}
    for job, queue in zip(rows[starve].tolist(), jobs.queue[rows[starve]].tolist(), strict=True):
        found.setdefault(queue, []).append(job)
    return found


def _knows_domains(ssn: Session, job: int) -> bool:
    """Return True if evictions for a gang can be kept to the domains in which its pods must be."""
    return bool(common_label(ssn.tables, job) or domains_of_groups(ssn.tables, job))


def all_of(starving: dict[int, list[int]]) -> AnyArray:
    """Return the rows of starving jobs of all queues."""
    return np.array([job for jobs in starving.values() for job in jobs], dtype=np.int64)


def queues_in_order(ssn: Session, starving: dict[int, list[int]], *, but_overused: bool) -> Iterator[int]:
    """Yield the queues of starving jobs in queue order, as it is once the queues before are done. ``but_overused``:
    leave out queues that hold more than they deserve."""
    queues = Heap(ssn.order.queue_keys(), list(starving))
    while queues:
        queue = queues.pop()
        if but_overused and ssn.ask(points.overused, Queue(ssn.tables, queue)):
            name = ssn.tables.queues.names[queue]
            ssn.trace.tell(name, QueueLimit(name, DESERVED))
            continue
        yield queue


def _that_starve(ssn: Session, rows: AnyArray) -> Bool:
    """Return which of these jobs are valid and starving. Shape (rows,)."""
    jobs, found = ssn.tables.jobs, np.zeros(len(rows), dtype=bool)
    signature = jobs.signature[rows]
    hooks = ssn.hooks.at(points.job_valid, points.job_starving)
    # If all hooks answer equally for equal jobs, they are asked about one of the jobs of which nothing is placed yet.
    if not all(hook.for_equals for hook in hooks):
        equal = np.zeros(len(rows), dtype=bool)
    else:
        equal = (signature >= 0) & (jobs.counts[rows, PENDING] == jobs.size[rows])
    asked_for = {at: np.array([at]) for at in (~equal).nonzero()[0].tolist()}
    fresh = equal.nonzero()[0]
    for kind in distinct(signature[fresh]).tolist():
        like_it = fresh[signature[fresh] == kind]
        asked_for[int(like_it[0])] = like_it
    for at, like_it in sorted(asked_for.items()):
        with ssn.fault_scope(jobs.uids[rows[at]]):
            found[like_it] = _starves(ssn, int(rows[at]))
    return found


def is_starving(ssn: Session, job: int) -> bool:
    """Return True if more tasks may be evicted for the job."""
    return ssn.ask(points.job_starving, Job(ssn.tables, job))


def _starves(ssn: Session, job: int) -> bool:
    """Return True if a job is valid and starving."""
    return ssn.ask(points.job_valid, Job(ssn.tables, job)) is None and is_starving(ssn, job)
