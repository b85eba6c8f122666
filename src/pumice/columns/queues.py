"""Queues as columns. There are few of them: what a policy computes from a queue lives in the policy's own columns."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pumice.columns.dtypes import CPU, F64, MEMORY, Bool, ResourceAxis
from pumice.model.queue import Queue
from pumice.model.resources import Resource


class QueueTable:
    """Q rows in (creation, name) order. ``open`` is spec.state == Open.

    All (Q, R): ``guarantee`` is 0 where none is given, ``capability`` inf where unlimited, ``stated`` the status that
    was last seen (nan: none).
    """

    __slots__ = (
        "_axis",
        "capability",
        "creation",
        "guarantee",
        "names",
        "objs",
        "open",
        "parent",
        "priority",
        "row_of",
        "stated",
        "weight",
    )

    def __init__(self, queues: Iterable[Queue], axis: ResourceAxis) -> None:
        self._axis = axis
        self.objs = sorted(queues, key=lambda q: (q.creation, q.name))
        self.names = [q.name for q in self.objs]
        self.row_of = {name: row for row, name in enumerate(self.names)}
        self.creation: F64 = np.array([q.creation for q in self.objs], dtype=np.float64)
        self.weight: F64 = np.array([q.weight for q in self.objs], dtype=np.float64)
        self.priority: F64 = np.array([q.priority for q in self.objs], dtype=np.float64)
        self.open: Bool = np.array([q.state == "Open" for q in self.objs], dtype=bool)
        self.guarantee: F64 = np.zeros((len(self.objs), len(axis)))
        self.capability: F64 = np.full_like(self.guarantee, np.inf)
        self.stated: F64 = np.empty_like(self.guarantee)
        for row, queue in enumerate(self.objs):
            if queue.guarantee is not None:
                self.guarantee[row] = axis.vector(queue.guarantee)
            if queue.capability is not None:
                self.capability[row] = self._limit(queue.capability)
            self.restate(row, queue)
        self.parent = [self.row_of.get(q.parent or "root", -1) if q.name != "root" else -1 for q in self.objs]

    def __len__(self) -> int:
        return len(self.names)

    def restate(self, row: int, queue: Queue) -> None:
        """Take in a queue of which nothing but the status is new."""
        self.objs[row] = queue
        self.stated[row] = np.nan if queue.allocated is None else self._axis.vector(queue.allocated)

    def _limit(self, capability: Resource) -> F64:
        """Scalars that are not named are unlimited, cpu and memory when they are 0. Shape (R,)."""
        limit = self._axis.vector(capability)
        named = capability.scalars or {}
        unlimited = np.array([name not in named for name in self._axis.names])
        unlimited[[CPU, MEMORY]] = limit[[CPU, MEMORY]] <= 0
        limit[unlimited] = np.inf
        return limit
