"""Choose which tasks of a job to place next: all missing tasks of a gang, and then one more task at a time.

Source: KAI GetTasksToAllocate, GetTasksToEvict.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import groupby, pairwise

import numpy as np

from pumice.columns.counting import PENDING
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.errors import PluginFault
from pumice.kai.engine.members import members
from pumice.kai.engine.parts import ACTIVE_STATUSES, Part, active_of, gated_tasks
from pumice.kai.engine.points import pod_set_order
from pumice.placing.gang_tree import Active, Member, is_tree

_Tasks = dict[int, list[int]]
#: The tasks of a pod set that may be placed, given its row.
Available = Callable[[int], list[int]]
_NONE: frozenset[int] = frozenset()


def tasks_in_order(ssn: Session, sub: int) -> list[int]:
    """Return the tasks of a pod set in order: by plugins, then by age, then by UID."""
    orders = _task_orders(ssn)
    if sub not in orders:
        order_tasks(ssn, (sub,))
    return orders[sub]


def are_ordered(ssn: Session, subs: Iterable[int]) -> bool:
    """Return True if the task order of all these pod sets is cached."""
    return _task_orders(ssn).keys() >= set(subs)


def order_tasks(ssn: Session, subs: Iterable[int]) -> None:
    """Compute and cache the task order of several pod sets at once.

    A job whose tasks a plugin fails to order has none in this session: it is neither placed nor evicted, and the fault
    is recorded for it.
    """
    wanted = list(subs)
    try:
        found = _orders_of(ssn, wanted)
    except PluginFault:
        # Which job the plugin failed at is not known yet; the others must not wait because of it.
        found = {sub: [] for sub in wanted}
        job_of, uids = ssn.tables.subs.job, ssn.tables.jobs.uids
        for job, own in groupby(sorted(wanted, key=job_of.item), job_of.item):
            with ssn.fault_scope(uids[job]):
                found |= _orders_of(ssn, list(own))
    _task_orders(ssn).update(found)


def _orders_of(ssn: Session, subs: list[int]) -> _Tasks:
    """Return the task order of several pod sets. Raises: PluginFault."""
    tables = ssn.tables
    orders: _Tasks = {sub: tables.subs.tasks[sub].tolist() for sub in subs}
    several = [tables.subs.tasks[sub] for sub in subs if len(orders[sub]) > 1]
    if not several:
        return orders
    # One sort and one call per plugin serve all pod sets; most jobs have few tasks, so a call for each would dominate.
    together = np.concatenate(several)
    columns, pods = ssn.order.task_columns(together), tables.tasks.pods
    uids = np.array([pods[row].uid for row in together.tolist()])
    by = (uids, tables.tasks.creation[together], *(columns or ())[::-1], tables.tasks.sub[together])
    ordered = together[np.lexsort(by)]
    subs_in_order = tables.tasks.sub[ordered]
    bounds = [0, *((subs_in_order[1:] != subs_in_order[:-1]).nonzero()[0] + 1).tolist(), len(ordered)]
    for start, end in pairwise(bounds):
        rows = ordered[start:end]
        # Without columns a plugin compares pairs, which it is asked about in the order by age and UID.
        in_order = rows if columns is not None else ssn.order.sorted_tasks(rows)
        orders[int(subs_in_order[start])] = in_order.tolist()
    return orders


def _task_orders(ssn: Session) -> dict[int, list[int]]:
    """Return the cached task orders of the session, by pod set."""
    found: dict[int, list[int]] = ssn.shared(tasks_in_order, dict)
    return found


def chunk_of(ssn: Session, job: int, evicted: Collection[int] = _NONE, without: Collection[int] = _NONE) -> Part | None:
    """Return the tasks of a job to place next, or None if there are none.

    What a set lacks of its minimum comes first and together, since a gang binds as a whole; then the first member that
    has tasks grows. ``evicted``: tasks that the current simulation evicted, which may be placed again like pending
    ones. ``without``: pod sets that are passed over, which only the tree of a CompositePodGroup allows.
    """
    tables = ssn.tables
    tasks, jobs = tables.tasks, tables.jobs
    # Two columns settle this for jobs without pending tasks.
    if not evicted and not jobs.waits[job] and not jobs.best_effort[job]:
        return None

    # The usual pod set is pending as a whole; its tasks need no look at each status.
    def available(sub: int) -> list[int]:
        rows = tasks_in_order(ssn, sub)
        if not evicted and len(rows) == int(tables.subs.counts[sub, PENDING]) and not gated_tasks(ssn)[job]:
            return rows
        status, gate = tasks.status, tasks.gate
        return [row for row in rows if (status[row] == PENDING and not gate[row]) or row in evicted]

    def active(sub: int) -> int:
        return active_of(tables, sub)

    def left(sub: int) -> list[int]:
        return [] if sub in without else available(sub)

    if is_tree(ssn.tables, job):
        found = _grow_tree(ssn, members(ssn, job), active, left)
    else:
        found = _grow(ssn, members(ssn, job), active, available)
    return Part(job, found) if found else None


def _grow(ssn: Session, member: Member, active: Active, available: Available) -> _Tasks:
    """Return the tasks that a member takes next, by pod set, in the order of placement."""
    if not member.is_set:
        if member.sub < 0:
            return {}
        missing = member.least - active(member.sub)
        # One task beyond the minimum at a time, so that elastic jobs of several queues alternate by their shares.
        taken = available(member.sub)[: missing if missing > 0 else 1]
        return {member.sub: taken} if taken else {}
    ordered = in_order(ssn, member, active)
    if member.reached(active) >= member.least:
        return next((rows for each in ordered if (rows := _grow(ssn, each, active, available))), {})
    found: _Tasks = {}
    # Quirk of KAI, kept on purpose: ``least`` members are looked at, not those that are missing. Members that are not
    # satisfied come first, so more may be asked for than the set lacks.
    for each in ordered[: member.least]:
        if not each.is_satisfied(active):
            found |= _grow(ssn, each, active, available)
    return found


def _grow_tree(ssn: Session, member: Member, active: Active, available: Available) -> _Tasks:
    """Return the tasks that a member of the tree of a CompositePodGroup takes next. Any of its groups may make up its
    minimum, each with its own minimum or not at all. Source: KEP-6012."""
    if not member.is_set:
        return _grow(ssn, member, active, available) if _is_open(member, active, available) else {}
    ordered = [each for each in in_order(ssn, member, active) if _is_open(each, active, available)]
    lacks = member.least - member.reached(active)
    if lacks <= 0:
        return next((rows for each in ordered if (rows := _grow_tree(ssn, each, active, available))), {})
    missing = [each for each in ordered if not each.is_satisfied(active)][:lacks]
    if len(missing) < lacks:
        return {}
    return {sub: rows for each in missing for sub, rows in _grow_tree(ssn, each, active, available).items()}


def _is_open(member: Member, active: Active, available: Available) -> bool:
    """Return True if a member has its minimum, or may get it."""
    if member.is_set:
        return sum(_is_open(each, active, available) for each in member.inside) >= member.least
    return member.sub >= 0 and active(member.sub) + len(available(member.sub)) >= member.least


def in_order(ssn: Session, member: Member, active: Active) -> tuple[Member, ...]:
    """Return the members of a set in the order in which they grow, by plugins, then by name. They shrink in the reverse
    order."""
    # Most gangs have one pod set, and need no comparison.
    if len(member.inside) < 2:
        return member.inside
    keys = [ssn.ask(pod_set_order, each.reached(active), each.least) for each in member.inside]
    order = sorted(range(len(keys)), key=lambda i: (keys[i], i))
    return tuple(member.inside[i] for i in order)


def victims_of(ssn: Session, job: int, left: _Tasks) -> list[int]:
    """Return the tasks of a job that are evicted next: what exceeds its minimums, last first, or else all.

    ``left`` holds the tasks that remain by pod set, in order.
    """

    def active(sub: int) -> int:
        return len(left.get(sub, ()))

    # The reverse of growing: the last task of the fullest member leaves first.
    whole = ssn.tables.jobs.groups[job].leaves_whole
    found = [] if whole else _shrink(ssn, members(ssn, job), active, left)
    return found or [row for rows in reversed(left.values()) for row in reversed(rows)]


def _shrink(ssn: Session, member: Member, active: Active, left: _Tasks) -> list[int]:
    """Return the tasks of a member that leave first without a loss to any minimum, empty if there are none."""
    if not member.is_set:
        spare = member.reached(active) > member.least
        return [left[member.sub][-1]] if spare else []
    satisfied = member.reached(active)
    # Below its minimum everywhere, the set has nothing to spare, and leaves with the whole job.
    if not satisfied:
        return []
    reverse = in_order(ssn, member, active)[::-1]
    found = next((rows for each in reverse if (rows := _shrink(ssn, each, active, left))), [])
    # A whole member may leave only while more members than needed are satisfied.
    if found or satisfied <= member.least:
        return found
    return next((rows for each in reverse if (rows := _all_of(each, left))), [])


def _all_of(member: Member, left: _Tasks) -> list[int]:
    """Return all tasks of a member that remain, the last first."""
    if member.is_set:
        return [row for each in reversed(member.inside) for row in _all_of(each, left)]
    return left.get(member.sub, [])[::-1]


def active_tasks(ssn: Session, job: int) -> dict[int, list[int]]:
    """Return the tasks of a job that hold resources of a node or are pipelined, by pod set, in order."""
    # A pod may name a node that does not exist. Its eviction would free no resources, and Kubernetes deletes such pods.
    status, node = ssn.tables.tasks.status, ssn.tables.tasks.node
    return {
        sub: [row for row in tasks_in_order(ssn, sub) if int(status[row]) in ACTIVE_STATUSES and node[row] >= 0]
        for sub in ssn.tables.jobs.subs[job]
    }
