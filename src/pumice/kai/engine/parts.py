"""What is placed together, and what leaves together: values that the search for victims works with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import F64
from pumice.columns.gpus.claimed import claimed_gpus
from pumice.columns.gpus.devices import memory_charge
from pumice.columns.tables import Tables
from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.model.status import TaskStatus

#: Tasks by their sub-job (a pod set), in the order in which they are placed.
BySub = Mapping[int, Sequence[int]]

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
    """Tasks of one job that are placed all or not at all, by pod set and in ``rows``, in order. ``alone``: they are
    looked at as if the job had no others."""

    __slots__ = ("_amount", "alone", "job", "rows", "tasks")

    def __init__(self, job: int, tasks: BySub, *, alone: bool = False) -> None:
        self.job, self.tasks, self.alone = job, tasks, alone
        self.rows = [row for rows in tasks.values() for row in rows]
        self._amount: F64 | None = None

    def amount(self, tables: Tables) -> F64:
        """What they ask for together, as ``amount_of`` says. Shape (R,). Not to be written on."""
        if self._amount is not None:
            return self._amount
        found, of_memory = _amount_of(tables, self.rows)
        if not of_memory:  # which is counted where they are
            self._amount = found
        return found


class Chunk(NamedTuple):
    """Victims of one job that leave together, and the nodes that they are on, each once."""

    job: int
    rows: tuple[int, ...]
    nodes: tuple[int, ...]


@dataclass(slots=True)
class Scenario:
    """What if some left? ``part`` is what they would leave for; ``evicted`` are all task rows that were evicted,
    whatever became of them then."""

    part: Part
    evicted: list[int] = field(default_factory=list)

    def gone(self, tables: Tables) -> list[int]:
        """Those that found no other place."""
        status = tables.tasks.status[self.evicted].tolist()
        return [row for row, now in zip(self.evicted, status, strict=True) if now == _RELEASING]


def active_count(counts: Sequence[int]) -> int:
    """Tasks that hold a place or are promised one and are not leaving, of counts by state."""
    return sum(counts[status] for status in _ACTIVE)


def active_of(tables: Tables, sub: int) -> int:
    """The same of a sub-job."""
    return active_count(tables.subs.counts[sub].tolist())


def amount_of(tables: Tables, rows: Iterable[int]) -> F64:
    """What tasks ask for together, as quotas count it: with fractions of GPUs, and with memory of GPUs as the part that
    it is on the node that a task is on. Shape (R,). Not to be written on."""
    return _amount_of(tables, list(rows))[0]


def _amount_of(tables: Tables, rows: Sequence[int]) -> tuple[F64, bool]:
    """(the same, whether some of it is memory of GPUs)."""
    charge = tables.classes.charge
    if len(rows) == 1:
        cls = int(tables.tasks.cls[rows[0]])
        if not tables.classes.share_mib[cls] and not len(tables.claims):
            return charge[cls], False
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


def may_wait(tables: Tables, job: int) -> bool:
    """Whether a job has enough pods for all its minimums, those that no gate holds. Source: KAI
    IsReadyForScheduling."""
    jobs, subs = tables.jobs, tables.subs
    group = jobs.groups[job]
    gang = group.gang if group is not None else None
    if gang is not None and gang.sub_groups:
        there = {subs.uids[sub] for sub in jobs.subs[job]}
        key = jobs.uids[job]
        if any(f"{key}/{each.name}" not in there for each in gang.pod_sets() if each.min_member > 0):
            return False
    for sub in jobs.subs[job]:
        counts = subs.counts[sub].tolist()
        alive = active_count(counts) + counts[_PENDING]
        if jobs.gated[job]:
            alive -= int((tables.tasks.gate[subs.tasks[sub]] > 0).sum())
        if alive < subs.min_available[sub]:
            return False
    return True
