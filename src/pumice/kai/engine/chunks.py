"""Choose which tasks of a job to place next: all missing tasks of a gang, and then one more task at a time.

Source: KAI GetTasksToAllocate, GetTasksToEvict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import pairwise

import numpy as np

from pumice.columns.counting import PENDING
from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.session import Session
from pumice.kai.engine.parts import ACTIVE_STATUSES, Part, active_of, gated_tasks
from pumice.kai.engine.points import pod_set_order

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
    """Compute and cache the task order of several pod sets at once."""
    tables, orders = ssn.tables, _task_orders(ssn)
    several: list[AnyArray] = []
    for sub in subs:
        rows = tables.subs.tasks[sub]
        if len(rows) > 1:
            several.append(rows)
        orders[sub] = rows.tolist()
    if not several:
        return
    # One sort and one call per plugin serve all pod sets; most jobs have few tasks, so a call for each would dominate.
    together = np.concatenate(several)
    columns, pods = ssn.order.task_columns(together) or [], tables.tasks.pods
    uids = np.array([pods[row].uid for row in together.tolist()])
    by = (uids, tables.tasks.creation[together], *columns[::-1], tables.tasks.sub[together])
    ordered = together[np.lexsort(by)]
    subs_in_order = tables.tasks.sub[ordered]
    bounds = [0, *((subs_in_order[1:] != subs_in_order[:-1]).nonzero()[0] + 1).tolist(), len(ordered)]
    for start, end in pairwise(bounds):
        orders[int(subs_in_order[start])] = ordered[start:end].tolist()


def _task_orders(ssn: Session) -> dict[int, list[int]]:
    """Return the cached task orders of the session, by pod set."""
    found: dict[int, list[int]] = ssn.shared(tasks_in_order, dict)
    return found


def chunk_of(ssn: Session, job: int, evicted: Collection[int] = _NONE) -> Part | None:
    """Return the tasks of a job to place next, or None if there are none.

    ``evicted``: tasks that the current simulation evicted, which may be placed again like pending ones.
    """
    tables = ssn.tables
    subs, tasks, jobs = tables.subs, tables.tasks, tables.jobs
    # Two columns settle this for jobs without pending tasks.
    if not evicted and not jobs.waits[job] and not jobs.best_effort[job]:
        return None

    # The usual pod set is pending as a whole; its tasks need no look at each status.
    def available(sub: int) -> list[int]:
        rows = tasks_in_order(ssn, sub)
        if not evicted and len(rows) == int(subs.counts[sub, PENDING]) and not gated_tasks(ssn)[job]:
            return rows
        status, gate = tasks.status, tasks.gate
        return [row for row in rows if (status[row] == PENDING and not gate[row]) or row in evicted]

    each = [(sub, active_of(tables, sub), int(subs.min_available[sub])) for sub in tables.jobs.subs[job]]
    below = {sub: rows[: least - active] for sub, active, least in each if active < least and (rows := available(sub))}
    # While a pod set is below its minimum, only such pod sets are placed, and together, since a gang binds as a whole.
    if any(active < least for _, active, least in each):
        # Below the minimum and without tasks for it: the job cannot become whole, so nothing is placed.
        return Part(job, below) if below else None
    growing = [(_fullness(ssn, active, least, len(each)), i, sub) for i, (sub, active, least) in enumerate(each)]
    for _, _, sub in sorted(growing):
        rows = available(sub)
        if rows:
            return Part(job, {sub: rows[:1]})
    return None


def _fullness(ssn: Session, active: int, least: int, pod_sets: int) -> list[float]:
    """Return the keys by which pod sets are compared."""
    # A job with one pod set needs no comparison.
    return ssn.ask(pod_set_order, active, least) if pod_sets > 1 else []


def victims_of(ssn: Session, job: int, left: dict[int, list[int]]) -> list[int]:
    """Return the tasks of a job that are evicted next: one task of a pod set above its minimum, or else all.

    ``left`` holds the tasks that remain by pod set, in order.
    """
    subs = ssn.tables.subs
    above = [
        (_fullness(ssn, len(rows), int(subs.min_available[sub]), len(left)), i, sub)
        for i, (sub, rows) in enumerate(left.items())
        if len(rows) > subs.min_available[sub]
    ]
    # The reverse of placing: the last task of the fullest pod set leaves first.
    if above:
        return [left[max(above)[2]][-1]]
    return [row for rows in reversed(left.values()) for row in reversed(rows)]


def active_tasks(ssn: Session, job: int) -> dict[int, list[int]]:
    """Return the tasks of a job that hold resources of a node or are pipelined, by pod set, in order."""
    # A pod may name a node that does not exist. Its eviction would free no resources, and Kubernetes deletes such pods.
    status, node = ssn.tables.tasks.status, ssn.tables.tasks.node
    return {
        sub: [row for row in tasks_in_order(ssn, sub) if int(status[row]) in ACTIVE_STATUSES and node[row] >= 0]
        for sub in ssn.tables.jobs.subs[job]
    }
