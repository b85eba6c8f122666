"""Define what is placed together and what is evicted together, as values of the victim search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import F64, I64
from pumice.columns.gpus.claimed import claimed_gpus
from pumice.columns.gpus.devices import memory_charge
from pumice.columns.tables import Tables
from pumice.framework.cycle.session import Session
from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.model.status import TaskStatus

#: Tasks by sub-job (a pod set), in the order of placement.
BySub = Mapping[int, Sequence[int]]

#: Allocated and pipelined tasks count although no event of the cluster shows them yet: they will hold resources once
#: this cycle is over.
_ACTIVE = tuple(
    int(status)
    for status in (
        TaskStatus.ALLOCATED,
        TaskStatus.PIPELINED,
        TaskStatus.BINDING,
        TaskStatus.BOUND,
        TaskStatus.RUNNING,
    )
)
ACTIVE_STATUSES = frozenset(_ACTIVE)
_RELEASING, _PENDING = int(TaskStatus.RELEASING), int(TaskStatus.PENDING)


class Part:
    """Tasks of one job that are placed all or not at all.

    ``tasks`` holds them by pod set and ``rows`` as one list, in order.
    """

    __slots__ = ("_amount", "job", "rows", "tasks")

    def __init__(self, job: int, tasks: BySub) -> None:
        self.job, self.tasks = job, tasks
        self.rows = [row for rows in tasks.values() for row in rows]
        self._amount: F64 | None = None

    def amount(self, tables: Tables) -> F64:
        """Return the total request, as ``amount_of`` defines it. Shape (R,). Read-only."""
        if self._amount is not None:
            return self._amount
        found, of_memory = _amount_of(tables, self.rows)
        # The charge of GPU memory depends on the node, and so changes when tasks move. Other amounts are cached.
        if not of_memory:
            self._amount = found
        return found


class Chunk(NamedTuple):
    """Victims of one job that are evicted together, and their nodes without duplicates."""

    job: int
    rows: tuple[int, ...]
    nodes: tuple[int, ...]


@dataclass(slots=True)
class Scenario:
    """A simulated set of evictions. ``part``: tasks for which they happen. ``evicted``: rows of all evicted tasks,
    including those that were placed again."""

    part: Part
    evicted: list[int] = field(default_factory=list)

    def gone(self, tables: Tables) -> list[int]:
        """Return the evicted tasks that were not placed again."""
        status = tables.tasks.status[self.evicted].tolist()
        # A victim that found a new place is pipelined, or runs on; only those that are still releasing lose something.
        return [row for row, now in zip(self.evicted, status, strict=True) if now == _RELEASING]


def needs_gpus(tables: Tables, part: Part) -> bool:
    """Return True if each task of a part takes a GPU, or a part of one, from its node."""
    gpu = tables.axis.column.get(GPU_RESOURCE, -1)
    return gpu >= 0 and bool((tables.classes.frees[tables.tasks.cls[part.rows], gpu] > 0).all())


def active_count(counts: Sequence[int]) -> int:
    """Return the number of tasks that hold resources or are pipelined and are not releasing, from counts by status."""
    return sum(counts[status] for status in _ACTIVE)


def active_of(tables: Tables, sub: int) -> int:
    """Return the number of active tasks of a sub-job: holding resources or pipelined, and not releasing."""
    return active_count(tables.subs.counts[sub].tolist())


def amount_of(tables: Tables, rows: Iterable[int]) -> F64:
    """Return the total amount of tasks that is charged to quotas. Shape (R,). Read-only.

    Fractions of GPUs are included. GPU memory is charged as a fraction of the GPUs of the node that the task is on.
    """
    return _amount_of(tables, list(rows))[0]


def _amount_of(tables: Tables, rows: Sequence[int]) -> tuple[F64, bool]:
    """Return the charged amount, and whether it includes GPU memory."""
    charge = tables.classes.charge
    # Single tasks and equal tasks are by far the most frequent; both avoid fancy indexing.
    if len(rows) == 1:
        cls = int(tables.tasks.cls[rows[0]])
        if not tables.classes.share_mib[cls] and not len(tables.claims):
            return charge[cls], False
    if not rows:
        return np.zeros(charge.shape[1]), False
    classes: list[int] = tables.tasks.cls[rows].tolist()
    first = classes[0]
    if classes.count(first) == len(classes):
        found, of_memory = np.asarray(len(classes) * charge[first]), tables.classes.share_mib[first]
    else:
        found, of_memory = np.asarray(charge[classes].sum(axis=0)), tables.classes.share_mib[classes].any()
    if of_memory:
        found[tables.axis.column[GPU_RESOURCE]] += memory_charge(tables, rows)
    if len(tables.claims) and GPU_RESOURCE in tables.axis.column:
        found[tables.axis.column[GPU_RESOURCE]] += claimed_gpus(tables, rows).sum()
    return found, bool(of_memory)


def gated_tasks(ssn: Session) -> I64:
    """Return the number of pods with scheduling gates, by job. Shape (J,)."""
    # Unlike ``jobs.gated`` with the queue gate of Volcano, which is a gate like any other here.
    return ssn.shared(gated_tasks, lambda: _gated_tasks(ssn.tables))


def _gated_tasks(tables: Tables) -> I64:
    tasks = tables.tasks
    rows = (tasks.alive & (tasks.gate > 0) & (tasks.job >= 0)).nonzero()[0]
    return np.bincount(tasks.job[rows], minlength=tables.jobs.capacity)
