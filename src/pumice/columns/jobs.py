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
    """J rows. A job with pods but without a PodGroup has a row too; its queue is -1, and it is not ``live``."""

    uids: Sequence[str] = objects()
    groups: Sequence[PodGroup] = objects()
    #: Rows of tasks in fallback order (creation, uid).
    tasks: Sequence[AnyArray] = objects()
    #: Rows of sub-jobs.
    subs: Sequence[tuple[int, ...]] = objects()
    #: The minimum of each role, by the number of the role.
    role_min: Sequence[Mapping[int, int]] = objects()
    queue: I32 = number(np.int32, -1, rows_of="queues")
    min_available: I32 = number(np.int32)
    priority: I64 = number(np.int64)
    creation: F64 = number(np.float64)
    #: Seconds that the job is expected to run, 0 if unknown. No decision of Volcano's or KAI's reads it, so it is no
    #: part of ``signature``.
    estimate_s: F64 = number(np.float64)
    role_total: I32 = number(np.int32)
    has_min: Bool = number(np.bool_)
    has_policy: Bool = number(np.bool_)
    has_topology: Bool = number(np.bool_)
    #: The PodGroup could not be parsed: the job is not admitted, placed or evicted, and its status is not written.
    quarantined: Bool = number(np.bool_, moves=True)
    #: Its tasks may be evicted for other jobs, by the rules of the policy language.
    preemptible: Bool = number(np.bool_)
    size: I32 = number(np.int32)
    #: The number of tasks with scheduling gates other than the queue's.
    gated: I32 = number(np.int32)
    #: Equal numbers mean equal minResources; -1 for none.
    ask: I32 = number(np.int32, -1)
    #: Equal numbers mean equal tasks in equal order, equal minimums, no topology and no sub-groups. While nothing of
    #: two such jobs is placed, the same happens to both, so one failed attempt answers for all. -1: not comparable.
    signature: I32 = number(np.int32, -1)
    min_resources: F64 = number(np.float64)
    phase: I8 = number(np.int8, moves=True, below=len(PHASES))
    #: The number of pending tasks without gates that request nothing.
    best_effort: I32 = number(np.int32, moves=True)
    #: The number of pending tasks without gates that request something.
    waits: I32 = number(np.int32, moves=True)
    hypernode: I32 = number(np.int32, -1, moves=True, rows_of="tree")
    #: The number of tasks in each state (J, statuses).
    counts: I32 = number(np.int32, moves=True)
    #: What the tasks hold (J, R).
    allocated: F64 = number(np.float64, moves=True)

    @classmethod
    def empty(cls, versions: Versions, axis: ResourceAxis) -> Self:
        return cls(versions, axis)

    def __init__(self, versions: Versions, axis: ResourceAxis) -> None:
        super().__init__(versions, {"counts": (STATUS_COUNT,), **_lengths(axis)})

    def asks(self) -> list[Resource]:
        """Return the minResources of all jobs that have one."""
        return [found for row in self.alive.nonzero()[0].tolist() if (found := self._min_resources(row)) is not None]

    def measure(self, axis: ResourceAxis) -> None:
        """Change to another axis of resources. ``allocated`` is left zero."""
        # The store counts tasks again after it has measured all tables, and fills ``allocated`` then.
        self._remake(_lengths(axis))
        for row in self.alive.nonzero()[0].tolist():
            if (asked := self._min_resources(row)) is not None:
                self.write(row, min_resources=axis.vector(asked))

    def _min_resources(self, row: int) -> Resource | None:
        group: PodGroup | None = self.groups[row]
        return None if group is None else group.min_resources

    @property
    def live(self) -> AnyArray:
        """The rows of jobs that have a PodGroup and an existing queue."""
        return (self.alive & (self.queue >= 0)).nonzero()[0]


def _lengths(axis: ResourceAxis) -> dict[str, tuple[int, ...]]:
    return {"allocated": (len(axis),), "min_resources": (len(axis),)}
