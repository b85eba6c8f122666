"""What follows from node objects, alone or with the terms of a class, cached while no node object changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

import numpy as np

from pumice.columns.classes import ClassTable
from pumice.columns.dtypes import AnyArray
from pumice.columns.nodes import LabelColumn, NodeFacts
from pumice.framework.cycle.session import Session
from pumice.framework.memo import Memo

V = TypeVar("V")


class Derived:
    """The facts about nodes, and what is computed from them."""

    __slots__ = ("_classes", "_labels", "_memo", "facts")

    def __init__(self, facts: NodeFacts, memo: Memo, classes: ClassTable) -> None:
        self.facts, self._memo, self._classes = facts, memo, classes
        self._labels: dict[str, LabelColumn] = {}

    def __len__(self) -> int:
        return len(self.facts)

    def label(self, key: str) -> LabelColumn:
        """Return the column of a label key."""
        found = self._labels.get(key)
        if found is None:
            # A tenant may name any number of keys: all that no node has share one column.
            named = key if key in self.get("label keys", self._label_keys) else None
            found = self._labels[key] = self.get(("label", named), lambda: LabelColumn(self.facts.objs, named))
        return found

    def _label_keys(self) -> frozenset[str]:
        return frozenset().union(*(node.labels for node in self.facts.objs))

    def get(self, question: Hashable, build: Callable[[], V]) -> V:
        """Return what follows from node objects and from ``question``."""
        return self._memo.get(("nodes", question), (self.facts.version,), build, size=len(self.facts))

    def of_class(self, question: Hashable, cls: int, build: Callable[[], V], *rests_on: Hashable, size: int = 0) -> V:
        """Return what follows from node objects, the spec of a class, ``question`` and ``rests_on``."""
        # With the identity: a row that no task uses any more is given to another class.
        key = "class", question, cls, self._classes.identity(cls)
        return self._memo.get(key, (self.facts.version, *rests_on), build, size)


def derived(ssn: Session) -> Derived:
    """Return the cache of the session."""
    return ssn.shared(Derived, lambda: Derived(ssn.tables.nodes.facts, ssn.memo, ssn.tables.classes))


def nodes_by_name(ssn: Session) -> AnyArray | None:
    """Return rows of nodes sorted by name (N,), or None if rows are in that order."""

    def build() -> tuple[AnyArray | None]:
        names = ssn.tables.nodes.facts.names
        order = sorted(range(len(names)), key=names.__getitem__)
        # In a tuple, because the memo takes None for an answer that is not there.
        return (None if order == list(range(len(names))) else np.array(order),)

    return derived(ssn).get("nodes by name", build)[0]
