"""Nodes as columns: what they have, what tasks hold of it, and the view of kube-scheduler's plugins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from pumice.columns.column import Versions
from pumice.columns.dtypes import F64, I32, I64, Bool, ResourceAxis, read_only
from pumice.columns.objects.device_amounts import NOTHING, Amounts
from pumice.columns.table import Table, number
from pumice.model.node import Node, Taint
from pumice.model.resources import Resource


class LabelColumn:
    """The values of one label over all nodes, dictionary-encoded; ``key`` None means any key that no node has.

    ``codes`` (N,) index ``values``; -1 where the label is absent. ``domain_of`` (N + 1,) gives the domain of a task by
    the row of its node, -1 included; ``len(values)`` means no domain.
    """

    __slots__ = ("code_of", "codes", "domain_of", "values")

    def __init__(self, nodes: Sequence[Node], key: str | None) -> None:
        self.code_of: dict[str, int] = {}
        codes = [-1] * len(nodes)
        for row, node in enumerate(nodes if key is not None else ()):
            value = node.labels.get(key or "")
            if value is not None:
                codes[row] = self.code_of.setdefault(value, len(self.code_of))
        self.codes: I32 = np.array(codes, dtype=np.int32)
        self.values = list(self.code_of)
        # One element more than nodes: a task without a node has row -1, which indexes the last element. So counting by
        # domain needs no mask, only one bin that is dropped.
        self.domain_of: I64 = np.array([code if code >= 0 else len(self.values) for code in (*codes, -1)])


_PODS_MAX = int(np.iinfo(np.int32).max)


class NodeFacts:
    """What depends on the node objects alone: a value, replaced under a new ``version`` when a node object changes.

    Rows are in the order (creation, name). ``by_devices`` (N, R): what of ``allocatable`` nodes offer by devices that
    can be claimed, and not by themselves; ``device_columns``: the resources of which there is any.
    """

    __slots__ = (
        "allocatable",
        "axis",
        "by_devices",
        "device_columns",
        "max_pods",
        "names",
        "objs",
        "row_of",
        "taint_code",
        "taint_sets",
        "total",
        "unschedulable",
        "version",
        "view_allocatable",
    )

    def __init__(
        self, versions: Versions, nodes: Sequence[Node], axis: ResourceAxis, by_devices: Amounts = NOTHING
    ) -> None:
        self.version = versions.next()
        self.axis = axis
        # The order of rows breaks ties between equal scores, so it must not depend on the order of arrival.
        self.objs = tuple(sorted(nodes, key=lambda n: (n.creation, n.name)))
        self.names = [n.name for n in self.objs]
        self.row_of = {name: row for row, name in enumerate(self.names)}
        count, width = len(self.objs), len(axis)
        self.by_devices: F64 = np.zeros((count, width))
        # Apart from the node objects, which keep what the API server says: that tells which pods need claims there.
        for name, amounts in by_devices.items():
            self.by_devices[self.row_of[name]] = axis.offer(Resource(scalars=amounts))
        self.device_columns: I64 = np.flatnonzero(self.by_devices.sum(axis=0))
        # Arrays are made of lists at once: one node changes, and all nodes are read again.
        # kube-scheduler's plugins do not know of oversubscription, so their view stays without it.
        self.view_allocatable: F64 = axis.offers_of([n.allocatable for n in self.objs]) + self.by_devices
        self.allocatable: F64 = self.view_allocatable.copy()
        for row, node in enumerate(self.objs):
            if node.oversubscription.milli_cpu or node.oversubscription.memory:
                self.allocatable[row] += axis.offer(node.oversubscription)
        self.max_pods: I32 = np.array([min(n.allocatable.max_task_num, _PODS_MAX) for n in self.objs], dtype=np.int32)
        self.unschedulable: Bool = np.array([n.unschedulable for n in self.objs], dtype=bool)
        # Code 0 is the empty set, since most nodes have no taints. Many nodes have few sets of taints: tolerations are
        # matched once for each set.
        taints: dict[tuple[Taint, ...], int] = {(): 0}
        self.taint_code: I32 = np.array([taints.setdefault(n.taints, len(taints)) for n in self.objs], dtype=np.int32)
        self.taint_sets = list(taints)
        self.total: F64 = self.allocatable.sum(axis=0)
        arrays = ("allocatable", "by_devices", "device_columns", "view_allocatable", "total")
        for name in (*arrays, "max_pods", "unschedulable", "taint_code"):
            setattr(self, name, read_only(getattr(self, name)))

    def __len__(self) -> int:
        return len(self.names)


#: Rows of ``NodeTable.books``.
IDLE, USED, RELEASING, PIPELINED, FUTURE = range(5)


class NodeTable(Table):
    """N rows, in the order of ``NodeFacts``. Source: Volcano ``NodeInfo``."""

    #: Amounts (N, 5, R): idle, used, releasing, pipelined, and future = idle + releasing - pipelined. One column and
    #: not five, so that a task that moves costs one write and one entry in the journal.
    books: F64 = number(np.float64, moves=True, rows_last=True)
    #: The cluster as kube-scheduler's plugins see it (N, R + 3): requests of the pods on the node, then milli-cpu and
    #: bytes with 100m and 200MB for a container without requests, then the number of pods. Within a session only the
    #: plugin that keeps it (``predicates``) changes it, as in Volcano, where these plugins have a snapshot of their
    #: own.
    view: F64 = number(np.float64, moves=True, rows_last=True)
    #: The number of objects that could not be parsed and keep the node from new tasks: the node itself, and pods on it.
    quarantined_by: I32 = number(np.int32)

    @classmethod
    def empty(cls, versions: Versions, axis: ResourceAxis) -> Self:
        return cls(versions, NodeFacts(versions, (), axis))

    def __init__(self, versions: Versions, facts: NodeFacts) -> None:
        width = len(facts.axis)
        super().__init__(versions, {"books": (5, width), "view": (width + 3,)})
        self.facts = facts
        self._resize(len(facts))
        every = slice(None)
        books = np.zeros((len(facts), 5, width))
        books[:, IDLE] = books[:, FUTURE] = facts.allocatable
        self.write(every, alive=True, books=books, quarantined_by=[node.quarantined for node in facts.objs])

    @property
    def idle(self) -> F64:
        return self.books[:, IDLE]

    @property
    def used(self) -> F64:
        return self.books[:, USED]

    @property
    def releasing(self) -> F64:
        return self.books[:, RELEASING]

    @property
    def pipelined(self) -> F64:
        return self.books[:, PIPELINED]

    @property
    def future(self) -> F64:
        return self.books[:, FUTURE]
