"""Tasks (pods) as columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pumice.columns.column import Versions
from pumice.columns.dtypes import F64, I8, I32, I64, AnyArray, Bool, some
from pumice.columns.table import Table, number, objects
from pumice.model.pod import Pod
from pumice.model.status import COMPLETED_STATUSES, STATUS_COUNT, TaskStatus

#: Values of ``TaskTable.gate``.
NO_GATE, QUEUE_GATE_ONLY, GATED = 0, 1, 2
_ENDED = [int(status) for status in COMPLETED_STATUSES]


class TaskTable(Table):
    """T rows; a row stays where it is for the life of its pod.

    ``role`` is a number per role name. ``node``: -1 none. ``view_node``: the node in kube-scheduler's view.
    ``nominated``: the node it waits for, -1 none. ``evicted_for``: its pipelining evicted somebody. ``was``: the state
    from which it was evicted, -1 for none. ``leaving``: the node that it leaves for the one it was promised, where
    evicted tasks may be promised another; -1 none. ``asks_queue``: its queue decides when its gate comes off, as its
    annotation says; ``gate_off``: it is taken off now, and the pod is placed in a later cycle.
    """

    pods: Sequence[Pod] = objects()
    job: I32 = number(np.int32, -1, rows_of="jobs")
    sub: I32 = number(np.int32, -1, rows_of="subs")
    cls: I32 = number(np.int32, -1, rows_of="classes")
    role: I32 = number(np.int32)
    priority: I64 = number(np.int64)
    creation: F64 = number(np.float64)
    gate: I8 = number(np.int8, NO_GATE, below=GATED + 1)
    asks_queue: Bool = number(np.bool_)
    best_effort: Bool = number(np.bool_)
    preemptable: Bool = number(np.bool_, True)
    status: I8 = number(np.int8, -1, moves=True, below=STATUS_COUNT)
    node: I32 = number(np.int32, -1, moves=True, rows_of="nodes")
    view_node: I32 = number(np.int32, -1, moves=True, rows_of="nodes")
    nominated: I32 = number(np.int32, -1, moves=True, rows_of="nodes")
    evicted_for: Bool = number(np.bool_, moves=True)
    was: I8 = number(np.int8, -1, moves=True, below=STATUS_COUNT)
    gate_off: Bool = number(np.bool_, moves=True)
    leaving: I32 = number(np.int32, -1, moves=True, rows_of="nodes")
    job_hypernode: I32 = number(np.int32, -1, moves=True, rows_of="tree")

    def __init__(self, versions: Versions) -> None:
        super().__init__(versions, stamped=False)

    def awaiting(self) -> AnyArray:
        """Rows of the tasks of jobs that wait and are nominated to a node."""
        nominated: AnyArray = (self.nominated >= 0).nonzero()[0]
        if not len(nominated):  # most of the time
            return nominated
        waits = self.alive[nominated] & (self.status[nominated] == TaskStatus.PENDING) & (self.job[nominated] >= 0)
        found: AnyArray = nominated[waits]
        return found

    def nominated_jobs(self) -> AnyArray:
        """Jobs with a waiting task that is nominated to a node, by row."""
        return np.array(sorted(set(self.job[self.awaiting()].tolist())), dtype=np.int64)

    def not_ended_of(self, classes: Bool) -> list[int]:
        """Rows of the tasks of some classes (C,) that have not ended."""
        if not some(classes):  # most of the time
            return []
        rows = (self.alive & (self.cls >= 0) & ~np.isin(self.status, _ENDED)).nonzero()[0]
        found: list[int] = rows[classes[self.cls[rows]]].tolist()
        return found
