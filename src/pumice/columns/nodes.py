"""Nodes as columns: what they have, what is taken, and what kube-scheduler's filters see of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np

from pumice.columns.dtypes import F64, I32, Bool, ResourceAxis, read_only
from pumice.columns.journal import ChangeLog
from pumice.model.node import Node, Taint

V = TypeVar("V")
#: Entries of ``NodeFacts.remember``: at 5,000 nodes and a byte a node some 20 MB.
MEMO_MAX = 4096


class LabelColumn:
    """One label key over all nodes, dictionary-encoded: ``codes`` (N,), -1 where the label is absent."""

    __slots__ = ("code_of", "codes", "values")

    def __init__(self, nodes: Sequence[Node], key: str) -> None:
        self.code_of: dict[str, int] = {}
        codes = [-1] * len(nodes)
        for row, node in enumerate(nodes):
            value = node.labels.get(key)
            if value is not None:
                codes[row] = self.code_of.setdefault(value, len(self.code_of))
        self.codes: I32 = np.array(codes, dtype=np.int32)
        self.values = list(self.code_of)


class NodeFacts:
    """What only changes when a node object changes; shared by every session until then.

    Row order is (creation, name): it breaks ties between equal scores, so it must not depend on arrival.
    """

    __slots__ = (
        "_labels",
        "_memo",
        "allocatable",
        "axis",
        "max_pods",
        "names",
        "objs",
        "row_of",
        "taint_code",
        "taint_sets",
        "total",
        "unschedulable",
        "view_allocatable",
    )

    def __init__(self, nodes: Sequence[Node], axis: ResourceAxis) -> None:
        self.axis = axis
        self.objs = sorted(nodes, key=lambda n: (n.creation, n.name))
        self.names = [n.name for n in self.objs]
        self.row_of = {name: row for row, name in enumerate(self.names)}
        count, width = len(self.objs), len(axis)
        self.view_allocatable: F64 = np.zeros((count, width))
        self.allocatable: F64 = np.zeros((count, width))
        self.max_pods: I32 = np.zeros(count, dtype=np.int32)
        self.unschedulable: Bool = np.zeros(count, dtype=bool)
        self.taint_code: I32 = np.zeros(count, dtype=np.int32)
        taints: dict[tuple[Taint, ...], int] = {(): 0}
        for row, node in enumerate(self.objs):
            self.view_allocatable[row] = axis.vector(node.allocatable)
            self.allocatable[row] = self.view_allocatable[row]
            if node.oversubscription.milli_cpu or node.oversubscription.memory:
                self.allocatable[row] += axis.vector(node.oversubscription)
            self.max_pods[row] = min(node.allocatable.max_task_num, np.iinfo(np.int32).max)
            self.unschedulable[row] = node.unschedulable
            self.taint_code[row] = taints.setdefault(node.taints, len(taints))
        self.taint_sets = list(taints)
        self.total: F64 = self.allocatable.sum(axis=0)
        self._labels: dict[str, LabelColumn] = {}
        self._memo: dict[Hashable, Any] = {}

    def __len__(self) -> int:
        return len(self.names)

    def label(self, key: str) -> LabelColumn:
        """The column of a label key, encoded on first use."""
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = LabelColumn(self.objs, key)
        return column

    def remember(self, key: Hashable, build: Callable[[], V]) -> V:
        """What follows from node objects alone and from ``key``, built once for as long as no node object changes.

        Bounded: when too many keys have come by, all are forgotten.
        """
        found = self._memo.get(key)
        if found is None:
            if len(self._memo) >= MEMO_MAX:
                self._memo.clear()
            found = self._memo[key] = build()
        return found


#: Rows of ``NodeTable.books``.
IDLE, USED, RELEASING, PIPELINED, FUTURE = range(5)


class NodeTable:
    """The moving part, N rows.

    ``books`` (N, 5, R): idle, used, releasing, pipelined and future = idle + releasing - pipelined, kept side by side
    so that one write moves all of a node's books. ``view`` (N, R + 3): the cluster as kube-scheduler's plugins see it:
    requests of the pods on the node, then milli-cpu and bytes with 100m and 200MB for a container without request, then
    the number of pods. Only a plugin that keeps it (``predicates``) moves it within a session; ``view_follows`` says
    that one does. Source: Volcano node accounting.
    """

    __slots__ = ("books", "changed", "facts", "view", "view_follows")

    def __init__(self, facts: NodeFacts) -> None:
        self.facts = facts
        count, width = len(facts), len(facts.axis)
        self.books: F64 = np.zeros((count, 5, width))
        self.books[:, IDLE] = self.books[:, FUTURE] = facts.allocatable
        self.view: F64 = np.zeros((count, width + 3))
        self.view_follows = False
        self.changed = ChangeLog()

    def session_copy(self, *, to_write: bool = True) -> NodeTable:
        """The same rows for one session, to write on or, shared, to read only."""
        twin = object.__new__(NodeTable)
        twin.facts, twin.changed, twin.view_follows = self.facts, ChangeLog(), False
        twin.books = self.books.copy() if to_write else read_only(self.books)
        twin.view = self.view.copy() if to_write else read_only(self.view)
        return twin

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
