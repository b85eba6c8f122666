"""Queues as columns. There are few of them: what a policy computes from a queue lives in the policy's own columns."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pumice.columns.dtypes import F64, Bool, ResourceAxis
from pumice.model.queue import Queue


class QueueTable:
    """Q rows in (creation, name) order. ``guarantee`` (Q, R) is 0 where none is given; ``open`` is spec.state ==
    Open."""

    __slots__ = ("creation", "guarantee", "names", "objs", "open", "parent", "priority", "row_of", "weight")

    def __init__(self, queues: Iterable[Queue], axis: ResourceAxis) -> None:
        self.objs = sorted(queues, key=lambda q: (q.creation, q.name))
        self.names = [q.name for q in self.objs]
        self.row_of = {name: row for row, name in enumerate(self.names)}
        self.creation: F64 = np.array([q.creation for q in self.objs], dtype=np.float64)
        self.weight: F64 = np.array([q.weight for q in self.objs], dtype=np.float64)
        self.priority: F64 = np.array([q.priority for q in self.objs], dtype=np.float64)
        self.open: Bool = np.array([q.state == "Open" for q in self.objs], dtype=bool)
        self.guarantee: F64 = np.zeros((len(self.objs), len(axis)))
        for row, queue in enumerate(self.objs):
            if queue.guarantee is not None:
                self.guarantee[row] = axis.vector(queue.guarantee)
        self.parent = [self.row_of.get(q.parent or "root", -1) if q.name != "root" else -1 for q in self.objs]

    def __len__(self) -> int:
        return len(self.names)
