"""Queues as columns. There are few of them: what a policy computes from a queue lives in the policy's own columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np

from pumice.columns.column import Versions
from pumice.columns.dtypes import CPU, F64, I32, MEMORY, Bool, ResourceAxis
from pumice.columns.table import Table, number, objects
from pumice.model.queue import Queue, QueueSharing
from pumice.model.resources import Resource

#: What queues share by quota, in the order of columns (Q, 3).
SHARED = ("cpu", "memory", "gpu")
_NOTHING = QueueSharing()


class QueueTable(Table):
    """Q rows in (creation, name) order, made anew when a queue comes, goes or changes in more than its status.

    ``open`` is spec.state == Open, where of no queue above it is unknown what it allows; ``parent`` a row, -1 none. All
    (Q, R): ``guarantee`` and ``deserved`` are 0 where none is given, ``capability`` inf where unlimited, ``stated`` the
    status that was last seen (nan: none).

    All (Q, 3), of milli-cores, bytes and milli-devices of GPUs: ``quota`` and ``limit`` (inf: unlimited) and
    ``over_weight``, of queues that share by quota.
    """

    BEARS_COLUMNS = True

    objs: Sequence[Queue] = objects()
    names: Sequence[str] = objects()
    creation: F64 = number(np.float64)
    weight: F64 = number(np.float64)
    priority: F64 = number(np.float64)
    open: Bool = number(np.bool_)
    parent: I32 = number(np.int32, -1, rows_of="queues")
    guarantee: F64 = number(np.float64)
    deserved: F64 = number(np.float64)
    capability: F64 = number(np.float64, np.inf)
    stated: F64 = number(np.float64, np.nan)
    quota: F64 = number(np.float64)
    limit: F64 = number(np.float64)
    over_weight: F64 = number(np.float64)

    @classmethod
    def empty(cls, versions: Versions, axis: ResourceAxis) -> Self:
        return cls(versions, (), axis)

    def __init__(self, versions: Versions, queues: Iterable[Queue], axis: ResourceAxis) -> None:
        amounts = dict.fromkeys(("guarantee", "deserved", "capability", "stated"), (len(axis),))
        super().__init__(versions, amounts | dict.fromkeys(("quota", "limit", "over_weight"), (len(SHARED),)))
        self._axis = axis
        objs = sorted(queues, key=lambda q: (q.creation, q.name))
        self.row_of = {queue.name: row for row, queue in enumerate(objs)}
        self._resize(len(objs))
        for row, queue in enumerate(objs):
            self._fill(row, queue)
        if any(queue.barred for queue in objs):
            self._close_below(objs)

    def _close_below(self, objs: Sequence[Queue]) -> None:
        """Close every queue with one above it of which it is not known what it allows."""
        for row in range(len(objs)):
            above, steps = int(self.parent[row]), 0
            while above >= 0 and steps < len(objs) and not objs[above].barred:
                above, steps = int(self.parent[above]), steps + 1
            if above >= 0:
                self.write(row, open=False)

    def __len__(self) -> int:
        return self.capacity

    def _fill(self, row: int, queue: Queue) -> None:
        shares = [getattr(queue.sharing or _NOTHING, name) for name in SHARED]
        self.write(
            row,
            alive=True,
            objs=queue,
            names=queue.name,
            creation=queue.creation,
            weight=queue.weight,
            priority=queue.priority,
            open=queue.state == "Open",
            parent=self.row_of.get(queue.parent or "root", -1) if queue.name != "root" else -1,
            guarantee=self._axis.offer(queue.guarantee),
            deserved=self._axis.offer(queue.deserved),
            capability=np.inf if queue.capability is None else self._limit(queue.capability),
            stated=self._stated(queue),
            quota=[np.inf if share.quota is None else share.quota for share in shares],
            limit=[np.inf if share.limit is None else share.limit for share in shares],
            over_weight=[share.over_quota_weight for share in shares],
        )

    def take_status(self, row: int, queue: Queue) -> None:
        """Take in a queue of which nothing but the status is new."""
        self.write(row, objs=queue, stated=self._stated(queue))

    def _stated(self, queue: Queue) -> F64 | float:
        return np.nan if queue.allocated is None else self._axis.offer(queue.allocated)

    def _limit(self, capability: Resource) -> F64:
        """Scalars that are not named are unlimited, cpu and memory when they are 0. Shape (R,)."""
        limit, named = self._axis.offer(capability), self._axis.named(capability)
        named[[CPU, MEMORY]] = limit[[CPU, MEMORY]] > 0
        limit[~named] = np.inf
        return limit
