"""Blockers of queues and of admission: the amounts of the decision, and the jobs and queues that hold the rest."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

import numpy as np
from msgspec.structs import replace

from pumice.columns.counting import HELD
from pumice.columns.dtypes import EPS, F64, AnyArray
from pumice.kai.amounts import shared
from pumice.model.blockers import (
    CAPABILITY,
    CAPACITY,
    CLOSED,
    DESERVED,
    GUARANTEE,
    LIMIT,
    OVERCOMMIT,
    QUOTA,
    RECLAIM,
    Blocker,
    CannotEvict,
    QueueLimit,
    ResourceLimit,
)
from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.model.resources import CPU, MEMORY
from pumice.reasons.view import View

#: Limits of which some may be promised to jobs that are known by name.
_SHARED = (CPU, MEMORY, GPU_RESOURCE)  # what queues of KAI share, in the order of their amounts
_PROMISED = (CAPABILITY, GUARANTEE, OVERCOMMIT)


def with_holders(view: View, limit: Blocker) -> Blocker:
    """Return a limit with the jobs to which the promised amounts are promised."""
    if not isinstance(limit, QueueLimit) or limit.kind not in _PROMISED or not limit.exceeded:
        return limit
    jobs, (rows, wanted) = view.tables.jobs, view.promised
    if limit.kind == OVERCOMMIT:
        waits = jobs.counts[rows] @ HELD < jobs.min_available[rows]
        wanted = np.where(waits[:, None], jobs.min_resources[rows], wanted)
        inside = np.ones(len(rows), dtype=bool)
    else:
        inside = np.isin(jobs.queue[rows], _below(view, view.tables.queues.row_of[limit.queue]))
    dims = [view.axis.column[each.resource] for each in limit.exceeded if each.promised >= EPS]
    holds = inside & (wanted[:, dims] >= EPS).any(axis=1)
    who = rows[holds].tolist()
    promised = np.array([each.promised for each in limit.exceeded if each.promised >= EPS])
    # To jobs that were placed since, nothing is promised any more; the others do not account for all of it.
    if (promised - wanted[holds][:, dims].sum(axis=0) >= EPS).any():
        who = []
    holders = tuple(view.tables.jobs.uids[job] for job in who)
    in_vain = bool(who) and not any(view.can_ever_run(job) for job in who)
    without_pods = bool(who) and not jobs.size[who].any()
    return replace(limit, holders=holders, in_vain=in_vain, without_pods=without_pods)


def with_amounts(view: View, job: int, limit: Blocker) -> Blocker:
    """Return a limit or quota of KAI with its amounts, of the first queue at which it is exceeded, the job's own or one
    above it; KAI gives none."""
    if not isinstance(limit, QueueLimit) or limit.kind not in (LIMIT, QUOTA) or limit.resources:
        return limit
    tables, (tree, held, fast) = view.tables, view.held_in_tree
    rows = view.waiting_rows(job)[: view.needed(job)]
    asked = shared(tables, tables.classes.charge[tables.tasks.cls[rows]]).sum(axis=0)
    for queue in tree.path[int(tables.jobs.queue[job])]:
        share = tables.queues.objs[queue].sharing
        if share is None:
            continue
        used = (fast if limit.kind == QUOTA else held)[queue]
        over = []
        for d, (name, part) in enumerate(zip(_SHARED, (share.cpu, share.memory, share.gpu), strict=True)):
            most = part.quota if limit.kind == QUOTA else part.limit
            if most is not None and asked[d] > 0 and used[d] + asked[d] - most >= EPS:
                over.append(ResourceLimit(name, most, float(used[d]), 0.0, float(asked[d])))
        if over:
            return replace(limit, queue=tables.queues.names[queue], resources=tuple(over))
    return limit


def with_own_amounts(view: View, job: int, limit: Blocker) -> Blocker:
    """Return a limit that a plugin of Volcano gave without amounts with those of the end of the cycle: of the first
    queue at which it would be exceeded, the job's own or one above it, else of its own."""
    if isinstance(limit, CannotEvict) and limit.because is not None:
        return replace(limit, because=with_own_amounts(view, job, limit.because))
    queue = int(view.tables.jobs.queue[job])
    if not isinstance(limit, QueueLimit) or limit.kind not in _LIMIT_OF or limit.resources or queue < 0:
        return limit
    which = "queue.deserved" if view.has_plugin("proportion") else _LIMIT_OF[limit.kind]
    if which not in view.outcome.figures:
        return limit
    for each in _line(view, queue):
        amounts = _amounts_of(view, each, which, view.asks(job))
        if over := tuple(amount for amount in amounts if amount.excess):
            return replace(limit, queue=view.tables.queues.names[each], resources=over)
    limited = tuple(each for each in _amounts_of(view, queue, which, view.asks(job)) if not each.total)
    return replace(limit, resources=limited)


def _amounts_of(view: View, queue: int, which: str, asked: F64) -> list[ResourceLimit]:
    """Return what is asked for, held by a queue at the end of the cycle, and its limit, ``which`` of the figures."""
    held, most = (view.outcome.figures[name][queue] for name in ("queue.allocated", which))
    # The size of the cluster matters where it is the limit.
    total = np.where(most < view.total, 0.0, view.total)
    return [
        ResourceLimit(view.axis.names[d], float(most[d]), float(held[d]), 0.0, float(asked[d]), float(total[d]))
        for d in view.asked_in(asked)
    ]


#: By kind of limit: what plugins of Volcano compare with.
_LIMIT_OF = MappingProxyType({CAPACITY: "queue.real_capacity", RECLAIM: "queue.deserved", DESERVED: "queue.deserved"})


def _line(view: View, queue: int) -> Iterator[int]:
    """Yield the queue, and where queues are a tree those above it."""
    yield queue
    above, seen = int(view.tables.queues.parent[queue]), {queue}
    while view.argument("capacity", "hierarchy") and above >= 0 and above not in seen:
        yield above
        seen.add(above)
        above = int(view.tables.queues.parent[above])


def _below(view: View, queue: int) -> AnyArray:
    """Return the rows of the queue and all below it, where queues are a tree."""
    return np.array([row for row in range(len(view.tables.queues)) if queue in _line(view, row)])


def turned_away(view: View, job: int) -> QueueLimit | None:
    """Return the limit of its queue that keeps an admitted job waiting: what it deserves or may have, or None."""
    tables, figures = view.tables, view.outcome.figures
    queue, rows, name = int(tables.jobs.queue[job]), view.waiting_rows(job), view.queue_of(job)
    deserves = view.has_plugin("proportion") and "queue.deserved" in figures
    limits = figures.get("queue.deserved" if deserves else "queue.real_capacity")
    if limits is None or not rows:
        return None
    if not tables.queues.open[queue]:
        return QueueLimit(name, CLOSED)
    held, limit = figures["queue.allocated"][queue], limits[queue]
    asked = view.asks(job)
    # Of a queue that may have all there is, the limit is not what blocks it.
    over = [d for d in view.asked_in(asked) if view.total[d] - limit[d] >= EPS and held[d] + asked[d] - limit[d] >= EPS]
    if not over:
        return None
    amounts = tuple(
        ResourceLimit(view.axis.names[d], float(limit[d]), float(held[d]), 0.0, float(asked[d]), float(view.total[d]))
        for d in over
    )
    first = over[0]
    a_pod = len(over) == 1 and view.needed(job) == 1 and bool(limit[first] - held[first] >= EPS)
    if deserves:
        return QueueLimit(name, DESERVED, amounts, others=_others_want(view, queue, first), a_pod=a_pod)
    others = _guaranteed(view, queue, first, float(limit[first]))
    return QueueLimit(name, GUARANTEE if others else CAPACITY, amounts, others=others, a_pod=a_pod)


def _guaranteed(view: View, queue: int, d: int, limit: float) -> tuple[str, ...]:
    """Return the queues whose guarantees leave only so much to a queue; none if its own capability does."""
    queues, name = view.tables.queues, view.axis.names[d]
    own = queues.objs[queue].capability
    if own is not None and own.get(name) - limit < EPS:
        return ()
    guarantees = [(each.name, each.guarantee) for row, each in enumerate(queues.objs) if row != queue]
    return tuple(name_ for name_, amounts in guarantees if amounts is not None and amounts.get(name))


def _others_want(view: View, queue: int, d: int) -> tuple[str, ...]:
    names, request = view.tables.queues.names, view.outcome.figures["queue.request"]
    return tuple(names[row] for row in range(len(names)) if row != queue and request[row, d] >= EPS)
