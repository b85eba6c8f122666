"""Sum up what queues hold and request, of CPU, memory and GPUs, for fair shares and statuses. Source: KAI proportion
plugin, resources of queues.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pumice.columns.counting import HELD, PENDING
from pumice.columns.dtypes import F64, AnyArray
from pumice.columns.gpus.claimed import claimed_gpus
from pumice.columns.tables import Tables
from pumice.kai.amounts import shared
from pumice.kai.engine.parts import amount_of
from pumice.kai.engine.tree_order import QueueTree
from pumice.model.devices.gpu import GPU_RESOURCE

#: Demand of 1 MiB of GPU memory in milli-devices. Quirk of KAI, kept on purpose: it takes each GPU for one of 100 MiB.
_DEMAND = 10.0


class Amounts(NamedTuple):
    """Amounts that jobs hold and that waiting tasks request.

    ``rows`` are jobs and ``held`` (rows, 3) their amounts; ``waits`` are tasks and ``asked`` (waits, 3) their
    requests. Units: milli-cores, bytes, milli-devices.
    """

    rows: AnyArray
    held: F64
    waits: AnyArray
    asked: F64


def amounts_of(tables: Tables) -> Amounts:
    """Return the amounts of all jobs whose queue exists."""
    jobs, tasks, rows = tables.jobs, tables.tasks, tables.jobs.live
    held = shared(tables, jobs.allocated[rows] + _of_shared_gpus(tables)[rows])
    # Gated tasks cannot be placed yet, so they are no demand.
    waits = (tasks.alive & (tasks.status == PENDING) & (tasks.gate == 0) & (tasks.job >= 0)).nonzero()[0]
    waits = waits[jobs.queue[tasks.job[waits]] >= 0]
    asked = shared(tables, tables.classes.charge[tasks.cls[waits]])
    asked[:, 2] += claimed_gpus(tables, waits.tolist()) if len(tables.claims) else 0.0
    asked[:, 2] += _DEMAND * _device_counts(tables, waits) * tables.classes.share_mib[tasks.cls[waits]]
    return Amounts(rows, held, waits, asked)


def amounts_by_queue(tables: Tables, amounts: Amounts | None = None) -> tuple[F64, F64, F64]:
    """Return per queue, without the queues below it, what is held, the non-preemptible part of it, and held plus
    requested.

    Shapes (Q, 3). Units: milli-cores, bytes, milli-devices.
    """
    jobs, tasks = tables.jobs, tables.tasks
    rows, held, waits, asked = amounts_of(tables) if amounts is None else amounts
    found = [np.zeros((len(tables.queues), 3)) for _ in range(3)]
    # ``add.at`` adds for every job; ``+=`` on an index with repetitions would keep one job of each queue.
    np.add.at(found[0], jobs.queue[rows], held)
    np.add.at(found[1], jobs.queue[rows], held * ~jobs.preemptible[rows, None])
    np.add.at(found[2], jobs.queue[tasks.job[waits]], asked)
    found[2] += found[0]
    return found[0], found[1], found[2]


def amounts_by_job(tables: Tables, amounts: Amounts) -> tuple[F64, F64]:
    """Return per job what it holds, and what it holds plus requests. Shapes (J, 3). Units: milli-cores, bytes,
    milli-devices."""
    held = np.zeros((tables.jobs.capacity, 3))
    held[amounts.rows] = amounts.held
    requested = held.copy()
    np.add.at(requested, tables.tasks.job[amounts.waits], amounts.asked)
    return held, requested


def summed_up(tree: QueueTree, own: F64) -> F64:
    """Return amounts of queues including all queues below them. Shape (Q, 3)."""
    found = np.zeros_like(own)
    # A queue whose ancestors are missing or form a circle has only itself on its path, and adds to no other queue.
    for queue, path in enumerate(tree.path):
        found[path] += own[queue]
    return found


def past_shares(tables: Tables) -> F64:
    """Return which share of the cluster each queue used in the past, 0 if unknown. Shape (Q, 3)."""
    found, histories = np.zeros((len(tables.queues), 3)), tables.histories
    row_of = {name: row for row, name in enumerate(tables.queues.names)}
    # By name, since the history may know queues that have been deleted, and does not know new ones.
    for row, name in enumerate(histories.names):
        if name in row_of:
            found[row_of[name]] = histories.cpu[row], histories.memory[row], histories.gpu[row]
    return found


def _of_shared_gpus(tables: Tables) -> F64:
    """Return what jobs hold besides their node requests: parts of GPUs and claimed GPUs. Shape (J, R)."""
    tasks, classes, found = tables.tasks, tables.classes, np.zeros_like(tables.jobs.allocated)
    # Row by row is slow, so it is limited to tasks of classes whose charge can differ from the request.
    others = (classes.charge != classes.req).any(axis=1) | (classes.share_mib > 0)
    if len(tables.claims):
        others |= classes.claims
    if others.any():
        held = (tasks.alive & (tasks.job >= 0) & (HELD[tasks.status] > 0)).nonzero()[0]
        held = held[others[tasks.cls[held]]]
        # A share of GPU memory is charged by the node that it is on; all other charges follow from class and claims.
        of_memory = classes.share_mib[tasks.cls[held]] > 0
        for row in held[of_memory].tolist():
            found[tasks.job[row]] += amount_of(tables, (row,)) - classes.req[tasks.cls[row]]
        rest = held[~of_memory]
        more = classes.charge[tasks.cls[rest]] - classes.req[tasks.cls[rest]]
        if len(tables.claims) and GPU_RESOURCE in tables.axis.column:
            more[:, tables.axis.column[GPU_RESOURCE]] += claimed_gpus(tables, rest.tolist())
        np.add.at(found, tasks.job[rest], more)
    return found


def _device_counts(tables: Tables, rows: AnyArray) -> F64:
    """Return the number of devices of which each task wants a part. Shape (rows,)."""
    specs = tables.classes.specs
    shares = [specs[cls].gpu_share for cls in tables.tasks.cls[rows].tolist()]
    return np.array([share.devices if share is not None else 0 for share in shares], dtype=np.float64)
