"""Queues as columns: what they state (``QueueTable``), and what was written about them (``QueueStatusTable``).

What a policy computes about queues is in columns of its plugins (``World.column``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np

from pumice.columns.column import Versions
from pumice.columns.dtypes import CPU, F64, I32, MEMORY, Bool, ResourceAxis
from pumice.columns.table import Table, number, objects
from pumice.model.queue import Queue, QueueSharing, QueueStatus, without_status
from pumice.model.resources import Resource

#: The resources that queues share by quota, in the order of the columns (Q, 3).
SHARED = ("cpu", "memory", "gpu")
_NOTHING = QueueSharing()


class QueueTable(Table):
    """Q rows in the order (creation, name), without statuses. Replaced when a queue is added, removed, or changed in
    more than its status.

    Amounts are (Q, R), or (Q, 3) for queues that share by quota: milli-cores, bytes and milli-devices of GPUs.
    """

    BEARS_COLUMNS = True

    objs: Sequence[Queue] = objects()
    names: Sequence[str] = objects()
    creation: F64 = number(np.float64)
    weight: F64 = number(np.float64)
    priority: F64 = number(np.float64)
    #: spec.state is Open, and all queues above it could be parsed.
    open: Bool = number(np.bool_)
    parent: I32 = number(np.int32, -1, rows_of="queues")
    #: 0 where none is given, as for ``deserved``.
    guarantee: F64 = number(np.float64)
    deserved: F64 = number(np.float64)
    #: inf where unlimited.
    capability: F64 = number(np.float64, np.inf)
    #: inf where unlimited, as for ``limit``.
    quota: F64 = number(np.float64)
    limit: F64 = number(np.float64)
    over_weight: F64 = number(np.float64)

    @classmethod
    def empty(cls, versions: Versions, axis: ResourceAxis) -> Self:
        return cls(versions, (), axis)

    def __init__(self, versions: Versions, queues: Iterable[Queue], axis: ResourceAxis) -> None:
        amounts = dict.fromkeys(("guarantee", "deserved", "capability"), (len(axis),))
        super().__init__(versions, amounts | dict.fromkeys(("quota", "limit", "over_weight"), (len(SHARED),)))
        self._axis = axis
        # The order of rows breaks ties, so it must not depend on the order of arrival.
        objs = sorted(map(without_status, queues), key=lambda q: (q.creation, q.name))
        self.row_of = {queue.name: row for row, queue in enumerate(objs)}
        self._resize(len(objs))
        for row, queue in enumerate(objs):
            self._fill(row, queue)
        # After all rows are filled: it follows ``parent``, and a parent may come after its child.
        if any(queue.quarantined for queue in objs):
            self._close_below(objs)

    def _close_below(self, objs: Sequence[Queue]) -> None:
        """Close every queue below one that could not be parsed."""
        # A limit of that queue may exist and not be known, so no job below it can be shown to be within the limit.
        for row in range(len(objs)):
            above, steps = int(self.parent[row]), 0
            # Parents may form a cycle: a path of more steps than there are queues has none that could not be parsed.
            while above >= 0 and steps < len(objs) and not objs[above].quarantined:
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
            # In Volcano a queue without a parent is below "root", if that queue exists.
            parent=self.row_of.get(queue.parent or "root", -1) if queue.name != "root" else -1,
            guarantee=self._axis.offer(queue.guarantee),
            deserved=self._axis.offer(queue.deserved),
            capability=np.inf if queue.capability is None else self._limit(queue.capability),
            quota=[np.inf if share.quota is None else share.quota for share in shares],
            limit=[np.inf if share.limit is None else share.limit for share in shares],
            over_weight=[share.over_quota_weight for share in shares],
        )

    def _limit(self, capability: Resource) -> F64:
        """Return a capability as a row. Shape (R,).

        Scalars that it does not name are unlimited, and so are cpu and memory if they are 0. Source: Volcano
        ``capacity``
        and ``proportion`` plugins.
        """
        limit, named = self._axis.offer(capability), self._axis.named(capability)
        named[[CPU, MEMORY]] = limit[[CPU, MEMORY]] > 0
        limit[~named] = np.inf
        return limit


# A table of its own: the scheduler writes statuses itself, and each write would otherwise make all that rests on queues
# out of date.
class QueueStatusTable(Table):
    """What was last written about queues, in the rows of ``QueueTable``. Shape of ``allocated``: (Q, R)."""

    objs: Sequence[QueueStatus] = objects()
    #: nan if the status says nothing.
    allocated: F64 = number(np.float64, np.nan)

    @classmethod
    def empty(cls, versions: Versions, axis: ResourceAxis) -> Self:
        return cls(versions, (), axis)

    def __init__(self, versions: Versions, statuses: Iterable[QueueStatus], axis: ResourceAxis) -> None:
        super().__init__(versions, {"allocated": (len(axis),)}, stamped=False)
        self._axis = axis
        found = list(statuses)
        self._resize(len(found))
        for row, status in enumerate(found):
            self.write(row, alive=True)
            self.take(row, status)

    def take(self, row: int, status: QueueStatus) -> None:
        """Replace the status of a queue."""
        allocated = np.nan if status.allocated is None else self._axis.offer(status.allocated)
        self.write(row, objs=status, allocated=allocated)
