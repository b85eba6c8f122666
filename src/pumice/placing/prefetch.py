"""Nodes for equal tasks, chosen ahead of need: equal gangs one after the other go on where the last one stopped."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

from pumice.framework.memo import Memo
from pumice.placing.feasibility import Feasibility
from pumice.placing.k_best import LOOK_MAX

#: PrefetchedPlacements that were used up are followed by so many times as many, up to ``LOOK_MAX``.
_FURTHER = 4


class Chosen(NamedTuple):
    """``nodes`` in the order of picking, of which so many were wanted ``ahead``; ``all_there_are``: after them no node
    is left."""

    ahead: int
    nodes: list[int]
    all_there_are: bool


_NOBODY = Chosen(0, [], all_there_are=False)


class PrefetchedPlacements:
    """Placements chosen ahead of need. They hold as long as only taking them changes nodes. ``to_the_last``: the caller
    gives fewer than are wanted only where no node is left."""

    __slots__ = ("_feasible", "_memo", "_taking", "_to_the_last")

    def __init__(self, memo: Memo, feasible: Feasibility, *, to_the_last: bool = False) -> None:
        self._memo, self._feasible, self._to_the_last = memo, feasible, to_the_last
        self._taking: tuple[Hashable, Chosen] = ((), _NOBODY)

    def next(self, question: Hashable, count: int, choose: Callable[[int], list[int]]) -> list[int]:
        """Nodes for up to ``count`` tasks over all nodes. ``choose``: so many, one after the other. Call ``took`` when
        all or some of them have been taken, in order."""
        now = self._feasible.everything()
        known: Chosen | None = self._memo.recall(question, now)
        if known is None or not (known.all_there_are or len(known.nodes) >= count):
            ahead = count
            if known is not None:
                ahead = min(_FURTHER * known.ahead, LOOK_MAX) if len(known.nodes) < count else known.ahead
            nodes = choose(max(count, ahead))
            all_there_are = self._to_the_last and len(nodes) < max(count, ahead)
            known = self._memo.keep(question, now, Chosen(ahead, nodes, all_there_are))
        self._taking = question, known
        return known.nodes[:count]

    def none(self) -> None:
        """What is taken next was not picked here."""
        self._taking = ((), _NOBODY)

    def took(self, count: int) -> None:
        """The first ``count`` nodes that ``next`` gave have been taken, and nothing else moved."""
        question, chosen = self._taking
        if chosen.nodes:
            left = chosen._replace(nodes=chosen.nodes[count:])
            self._memo.keep(question, self._feasible.everything(), left)

    def none_is_left(self, question: Hashable) -> bool:
        """Whether it is known that another task would find no node."""
        known: Chosen | None = self._memo.recall(question, self._feasible.everything())
        return known is not None and known.all_there_are and not known.nodes
