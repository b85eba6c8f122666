"""The queues of a cycle as plain columns: what each holds, wants and may hold, with those below it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from pumice.algorithms.sums import sums_by
from pumice.columns.dtypes import F64, I32, Bool
from pumice.framework.cycle.outcome import Outcome
from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.model.resources import CPU, MEMORY
from pumice.web.columns.units import PageUnits


class QueueColumns(Struct, frozen=True):
    """The queues (Q), by row: ``depth`` 0 has no parent. ``limit`` is inf where there is none.

    ``deserved``: what the policy works out, or else what the spec says; the quota for queues of KAI. ``borrowed``: what
    is used beyond it, of resources of which the queue deserves some; of all for queues of KAI.
    ``used`` and ``waiting`` (Q, resources) include the queues below. ``jobs``: those that wait in it or below it.
    """

    names: Sequence[str]
    parent: I32
    depth: I32
    weight: F64
    is_open: Bool
    guarantee: F64
    deserved: F64
    limit: F64
    used: F64
    borrowed: F64
    waiting: F64
    jobs: I32


class QueuedJobs(Struct, frozen=True):
    """What queues need to know of jobs (J). ``queue``: its row. ``holds``, ``asks`` (J, resources): what pods of it
    hold, and what those that wait ask for. ``waits``: whether it is counted as one that waits."""

    queue: I32
    holds: F64
    asks: F64
    waits: Bool


def queue_columns(outcome: Outcome, units: PageUnits, jobs: QueuedJobs) -> QueueColumns:
    """Return the queues after a cycle, with sums over their jobs."""
    queues = outcome.tables.queues
    parents = queues.parent.tolist()
    order, depths = _in_tree_order(parents)
    used = _with_those_below(sums_by(jobs.queue, jobs.holds, len(queues)), order, parents)
    waiting = _with_those_below(sums_by(jobs.queue, jobs.asks, len(queues)), order, parents)
    rights = _rights(outcome)
    deserved = units(rights.deserved)
    count = np.bincount(jobs.queue[jobs.waits], minlength=len(queues)).astype(np.float64)[:, None]
    return QueueColumns(
        list(queues.names),
        queues.parent.copy(),
        depths,
        queues.weight.copy(),
        queues.open.copy(),
        units(queues.guarantee),
        deserved,
        units(rights.limit),
        used,
        np.where(units(rights.counts), np.maximum(used - deserved, 0.0), 0.0),
        waiting,
        _with_those_below(count, order, parents)[:, 0].astype(np.int32),
    )


class _Rights(Struct, frozen=True):
    """What queues may hold (Q, R). ``counts``: whether more than is deserved counts as borrowed."""

    deserved: F64
    limit: F64
    counts: F64


def _rights(outcome: Outcome) -> _Rights:
    queues, columns = outcome.tables.queues, outcome.tables.axis.column
    deserved = np.array(outcome.figures.get("queue.deserved", queues.deserved), dtype=np.float64)
    limit, counts = queues.capability.copy(), np.array(deserved > 0, dtype=np.float64)
    by_quota = [row for row, queue in enumerate(queues.objs) if queue.sharing is not None]
    for place, name in enumerate((CPU, MEMORY, GPU_RESOURCE)) if by_quota else ():
        if name in columns:
            deserved[by_quota, columns[name]] = queues.quota[by_quota, place]
            limit[by_quota, columns[name]] = queues.limit[by_quota, place]
            counts[by_quota, columns[name]] = 1.0
    return _Rights(deserved, limit, counts)


def _in_tree_order(parents: Sequence[int]) -> tuple[list[int], I32]:
    """Return queues so that each comes after its parent, and their depths. Those in a circle have no parent."""
    depths = np.full(len(parents), -1, dtype=np.int32)
    for row in range(len(parents)):
        path, above = dict[int, None](), row
        while above >= 0 and depths[above] < 0 and above not in path:
            path[above] = None
            above = parents[above]
        depth = int(depths[above]) if above >= 0 and above not in path else -1
        for each in reversed(path):
            depth += 1
            depths[each] = depth
    return np.argsort(depths, kind="stable").tolist(), depths


def _with_those_below(amounts: F64, order: Sequence[int], parents: Sequence[int]) -> F64:
    found = amounts.copy()
    for row in reversed(order):
        if parents[row] >= 0:
            found[parents[row]] += found[row]
    return found
