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
    """T rows. A pod keeps its row for its whole life. Rows of other tables are -1 for none."""

    pods: Sequence[Pod] = objects()
    job: I32 = number(np.int32, -1, rows_of="jobs")
    sub: I32 = number(np.int32, -1, rows_of="subs")
    cls: I32 = number(np.int32, -1, rows_of="classes")
    #: A number for each name of a role.
    role: I32 = number(np.int32)
    priority: I64 = number(np.int64)
    creation: F64 = number(np.float64)
    gate: I8 = number(np.int8, NO_GATE, below=GATED + 1)
    #: By its annotation, the queue decides when its scheduling gate is removed.
    asks_queue: Bool = number(np.bool_)
    best_effort: Bool = number(np.bool_)
    preemptable: Bool = number(np.bool_, True)
    status: I8 = number(np.int8, -1, moves=True, below=STATUS_COUNT)
    node: I32 = number(np.int32, -1, moves=True, rows_of="nodes")
    #: The node in the view of kube-scheduler's plugins, see ``NodeTable.view``.
    view_node: I32 = number(np.int32, -1, moves=True, rows_of="nodes")
    #: The node that it waits for (status.nominatedNodeName).
    nominated: I32 = number(np.int32, -1, moves=True, rows_of="nodes")
    #: Other tasks were evicted so that it could be pipelined.
    evicted_for: Bool = number(np.bool_, moves=True)
    #: The state from which it was evicted, -1 for none.
    was: I8 = number(np.int8, -1, moves=True, below=STATUS_COUNT)
    #: Its scheduling gate is removed in this cycle; the pod is placed in a later one.
    gate_off: Bool = number(np.bool_, moves=True)
    #: The node that an evicted task leaves while ``node`` is the one that it was promised instead.
    leaving: I32 = number(np.int32, -1, moves=True, rows_of="nodes")
    #: The hypernode that its job holds while the task is being placed.
    job_hypernode: I32 = number(np.int32, -1, moves=True, rows_of="tree")

    def __init__(self, versions: Versions) -> None:
        # No stamps: what is remembered about tasks rests on their jobs and nodes, which every move writes too.
        super().__init__(versions, stamped=False)

    def awaiting(self) -> AnyArray:
        """Return the rows of pending tasks of jobs that are nominated to a node."""
        nominated: AnyArray = (self.nominated >= 0).nonzero()[0]
        if not len(nominated):  # nearly always, and the masks over all tasks are skipped
            return nominated
        waits = self.alive[nominated] & (self.status[nominated] == TaskStatus.PENDING) & (self.job[nominated] >= 0)
        found: AnyArray = nominated[waits]
        return found

    def not_ended_of(self, classes: Bool) -> list[int]:
        """Return the rows of tasks of some classes, given as a mask (C,), that have not ended."""
        if not some(classes):  # usually no class has what is asked for, and the scan of all tasks is skipped
            return []
        rows = (self.alive & (self.cls >= 0) & ~np.isin(self.status, _ENDED)).nonzero()[0]
        found: list[int] = rows[classes[self.cls[rows]]].tolist()
        return found
