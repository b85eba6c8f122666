"""What follows from node objects alone: built once for as long as no node object changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from pumice.columns.nodes import LabelColumn, NodeFacts
from pumice.framework.cycle.session import Session
from pumice.framework.memo import Memo

V = TypeVar("V")


class Derived:
    """The facts about nodes, and what was made of them."""

    __slots__ = ("_labels", "_memo", "facts")

    def __init__(self, facts: NodeFacts, memo: Memo) -> None:
        self.facts, self._memo = facts, memo
        self._labels: dict[str, LabelColumn] = {}

    def __len__(self) -> int:
        return len(self.facts)

    def label(self, key: str) -> LabelColumn:
        """The column of a label key."""
        found = self._labels.get(key)
        if found is None:
            found = self._labels[key] = self.get(("label", key), lambda: LabelColumn(self.facts.objs, key))
        return found

    def get(self, question: Hashable, build: Callable[[], V]) -> V:
        """What follows from node objects and from ``question``."""
        return self._memo.get(("nodes", question), (self.facts.version,), build, size=len(self.facts))


def derived(ssn: Session) -> Derived:
    """That of this session."""
    return ssn.shared(Derived, lambda: Derived(ssn.tables.nodes.facts, ssn.memo))
