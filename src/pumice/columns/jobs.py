"""Jobs (PodGroups) as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from pumice.columns.column import Versions
from pumice.columns.dtypes import F64, I8, I32, I64, AnyArray, Bool, ResourceAxis
from pumice.columns.table import Table, number, objects
from pumice.model.resources import Resource
from pumice.model.status import STATUS_COUNT, PodGroupPhase
from pumice.model.workloads.podgroup import PodGroup

PHASES = list(PodGroupPhase)
PHASE_CODE = {phase: code for code, phase in enumerate(PHASES)}
PENDING_PHASE, INQUEUE_PHASE, RUNNING_PHASE = (
    PHASE_CODE[p] for p in (PodGroupPhase.PENDING, PodGroupPhase.INQUEUE, PodGroupPhase.RUNNING)
)


class JobTable(Table):
    """J rows.

    ``counts`` (J, statuses) tasks by state; ``best_effort`` pending tasks without request; ``allocated`` (J, R) what
    its tasks hold. ``role_min`` maps a role number to its minimum. ``waits`` counts pending tasks that ask for
    something and are not gated, ``gated`` tasks with gates of others. ``tasks`` are rows in fallback order, ``subs``
    rows of sub-jobs. ``preemptible``: others may take its place, as a language says it of jobs.

    Jobs with equal ``ask`` (-1: none) have equal minResources. Jobs with equal ``signature`` (-1: none) have equal
    tasks in equal order, equal minima and no topology or sub-groups: while nothing of them is placed, what happens to
    one happens to the other. Of a ``barred`` one the PodGroup could not be read: nothing of it is admitted, placed or
    evicted, and its status stays as it is.
    """

    uids: Sequence[str] = objects()
    groups: Sequence[PodGroup] = objects()
    tasks: Sequence[AnyArray] = objects()
    subs: Sequence[tuple[int, ...]] = objects()
    role_min: Sequence[Mapping[int, int]] = objects()
    queue: I32 = number(np.int32, -1, rows_of="queues")
    min_available: I32 = number(np.int32)
    priority: I64 = number(np.int64)
    creation: F64 = number(np.float64)
    role_total: I32 = number(np.int32)
    has_min: Bool = number(np.bool_)
    has_policy: Bool = number(np.bool_)
    has_topology: Bool = number(np.bool_)
    barred: Bool = number(np.bool_)
    preemptible: Bool = number(np.bool_)
    size: I32 = number(np.int32)
    gated: I32 = number(np.int32)
    ask: I32 = number(np.int32, -1)
    signature: I32 = number(np.int32, -1)
    min_resources: F64 = number(np.float64)
    phase: I8 = number(np.int8, moves=True, below=len(PHASES))
    best_effort: I32 = number(np.int32, moves=True)
    waits: I32 = number(np.int32, moves=True)
    hypernode: I32 = number(np.int32, -1, moves=True, rows_of="tree")
    counts: I32 = number(np.int32, moves=True)
    allocated: F64 = number(np.float64, moves=True)

    @classmethod
    def empty(cls, versions: Versions, axis: ResourceAxis) -> Self:
        return cls(versions, axis)

    def __init__(self, versions: Versions, axis: ResourceAxis) -> None:
        super().__init__(versions, {"counts": (STATUS_COUNT,), **_lengths(axis)})

    def asks(self) -> list[Resource]:
        """The minResources there are."""
        return [found for row in self.alive.nonzero()[0].tolist() if (found := self._min_resources(row)) is not None]

    def measure(self, axis: ResourceAxis) -> None:
        """Count minResources along another axis; ``allocated`` is left empty."""
        self._remake(_lengths(axis))
        for row in self.alive.nonzero()[0].tolist():
            if (asked := self._min_resources(row)) is not None:
                self.write(row, min_resources=axis.vector(asked))

    def _min_resources(self, row: int) -> Resource | None:
        group: PodGroup | None = self.groups[row]
        return None if group is None else group.min_resources

    @property
    def live(self) -> AnyArray:
        """Rows of jobs with a PodGroup and a queue that exists."""
        return (self.alive & (self.queue >= 0)).nonzero()[0]


def _lengths(axis: ResourceAxis) -> dict[str, tuple[int, ...]]:
    return {"allocated": (len(axis),), "min_resources": (len(axis),)}
