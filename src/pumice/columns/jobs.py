"""Jobs (PodGroups) and their sub-jobs as columns."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from pumice.columns.dtypes import F64, I8, I32, I64, AnyArray, Bool, ResourceAxis, read_only
from pumice.columns.growth import Growing
from pumice.model.podgroup import NetworkTopology, PodGroup
from pumice.model.status import STATUS_COUNT, PodGroupPhase, TaskStatus

PHASES = list(PodGroupPhase)
PHASE_CODE = {phase: code for code, phase in enumerate(PHASES)}
PENDING_PHASE, INQUEUE_PHASE, RUNNING_PHASE = (
    PHASE_CODE[p] for p in (PodGroupPhase.PENDING, PodGroupPhase.INQUEUE, PodGroupPhase.RUNNING)
)
_PENDING = int(TaskStatus.PENDING)


@lru_cache(maxsize=16)
def _ones(count: int) -> F64:
    return read_only(np.ones(count))


class JobTable(Growing):
    """J rows.

    ``counts`` (J, statuses) tasks by state; ``best_effort`` pending tasks without request; ``allocated`` (J, R) what
    its tasks hold. ``role_min`` maps a role number to its minimum. ``waits`` counts pending tasks that allocate may
    place (not gated, not best effort), ``gated`` tasks with gates of others. ``settled``: status writing found nothing
    to do for the job as it stands, so an untouched job need not be looked at again, as long as it goes on to fail in
    the way that is numbered ``settled_as`` (0: it did not). ``sla_wait`` is the job's own waiting time in seconds, 0
    for none.

    Jobs with equal ``ask`` have equal minResources. Jobs with equal ``shape`` (-1: none) have equal tasks in equal
    order, equal minima and no topology or sub-groups: while nothing of them is placed, what happens to one happens to
    the other.
    """

    NUMBERS: ClassVar[dict[str, tuple[Any, Any]]] = {
        "queue": (np.int32, -1),
        "min_available": (np.int32, 0),
        "priority": (np.int64, 0),
        "creation": (np.float64, 0.0),
        "role_total": (np.int32, 0),
        "has_min": (np.bool_, False),
        "has_policy": (np.bool_, False),
        "has_topology": (np.bool_, False),
        "size": (np.int32, 0),
        "phase": (np.int8, 0),
        "best_effort": (np.int32, 0),
        "waits": (np.int32, 0),
        "gated": (np.int32, 0),
        "hypernode": (np.int32, -1),
        "settled": (np.bool_, False),
        "settled_as": (np.int64, 0),
        "sla_wait": (np.float64, 0.0),
        "ask": (np.int32, -1),
        "shape": (np.int32, -1),
    }
    WIDE: ClassVar[dict[str, Any]] = {"counts": np.int32, "allocated": np.float64, "min_resources": np.float64}
    MOVING = ("phase", "best_effort", "waits", "hypernode", "counts", "allocated")
    OBJECTS = ("uids", "groups", "tasks", "subs", "role_min")

    queue: I32
    min_available: I32
    priority: I64
    creation: F64
    role_total: I32
    has_min: Bool
    has_policy: Bool
    has_topology: Bool
    size: I32
    phase: I8
    best_effort: I32
    waits: I32
    gated: I32
    hypernode: I32
    settled: Bool
    settled_as: I64
    sla_wait: F64
    ask: I32
    shape: I32
    counts: I32
    allocated: F64
    min_resources: F64
    uids: list[str]
    groups: list[PodGroup]
    tasks: list[AnyArray]
    subs: list[tuple[int, ...]]
    role_min: list[dict[int, int]]

    def __init__(self, axis: ResourceAxis) -> None:
        width = len(axis)
        super().__init__({"counts": STATUS_COUNT, "allocated": width, "min_resources": width})

    @property
    def nothing_waits(self) -> bool:
        """Whether no job waits for anything: no pending task, no PodGroup to admit; and none is bound to a topology,
        whose place is found out at the beginning of a session."""
        waits = (self.counts[:, _PENDING] > 0) | (self.phase == PENDING_PHASE) | self.has_topology
        return not (waits & self.alive).any()

    def holding(self) -> Bool:
        """Jobs with a queue whose tasks hold resources. Shape (J,). A product is several times faster than ``any``."""
        held: Bool = self.allocated @ _ones(self.allocated.shape[1]) > 0
        return held & self.alive & (self.queue >= 0)


class SubJobTable(Growing):
    """S rows; every job has at least its default sub-job as soon as it has a task outside all policies.

    ``hypernode`` and ``nominated`` are rows of the hypernode tree, -1 none. ``match_index`` orders sub-jobs of one
    policy.
    """

    NUMBERS: ClassVar[dict[str, tuple[Any, Any]]] = {
        "job": (np.int32, -1),
        "min_available": (np.int32, 0),
        "match_index": (np.int64, 0),
        "priority": (np.int64, 0),
        "best_effort": (np.int32, 0),
        "hypernode": (np.int32, -1),
        "nominated": (np.int32, -1),
        "group": (np.int32, -1),
    }
    WIDE: ClassVar[dict[str, Any]] = {"counts": np.int32}
    MOVING = ("best_effort", "hypernode", "nominated", "counts")
    OBJECTS = ("uids", "gids", "topologies", "tasks")

    job: I32
    min_available: I32
    match_index: I64
    priority: I64
    best_effort: I32
    hypernode: I32
    nominated: I32
    group: I32
    counts: I32
    uids: list[str]
    gids: list[str]
    topologies: list[NetworkTopology | None]
    tasks: list[AnyArray]

    def __init__(self) -> None:
        super().__init__({"counts": STATUS_COUNT})
