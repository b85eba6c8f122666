"""Nodes for equal tasks, chosen ahead of need: equal gangs one after the other go on where the last one stopped."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from pumice.framework.feasible import Feasibility
from pumice.framework.ladder import LOOK_MAX
from pumice.framework.memo import Memo

#: Picks that were used up are followed by so many times as many, up to ``LOOK_MAX``.
_FURTHER = 4


class Picks:
    """Picks hold for as long as nothing moves on nodes but by taking them."""

    __slots__ = ("_feasible", "_memo", "_taking")

    def __init__(self, memo: Memo, feasible: Feasibility) -> None:
        self._memo, self._feasible = memo, feasible
        self._taking: tuple[Hashable, int, list[int]] = ((), 0, [])

    def next(self, question: Hashable, count: int, choose: Callable[[int], list[int]]) -> list[int]:
        """Nodes for up to ``count`` tasks over all nodes. ``choose``: so many, one after the other; fewer when no node
        is left. Call ``took`` when all or some of them have been taken, in order."""
        now = self._feasible.everything()
        known: tuple[int, list[int]] | None = self._memo.recall(question, now)
        ahead, nodes = known or (count, [])
        if known is not None and len(nodes) < count:
            ahead, nodes = min(_FURTHER * ahead, LOOK_MAX), []
        if not nodes:
            nodes = choose(max(count, ahead))
            self._memo.keep(question, now, (ahead, nodes))
        self._taking = question, ahead, nodes
        return nodes[:count]

    def none(self) -> None:
        """What is taken next was not picked here."""
        self._taking = ((), 0, [])

    def took(self, count: int) -> None:
        """The first ``count`` nodes that ``next`` gave have been taken, and nothing else moved."""
        question, ahead, nodes = self._taking
        if nodes:
            self._memo.keep(question, self._feasible.everything(), (ahead, nodes[count:]))
