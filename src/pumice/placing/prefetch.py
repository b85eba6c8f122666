"""Nodes for equal tasks, chosen ahead of need: equal gangs one after the other continue where the last one stopped."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

from pumice.framework.memo import Memo
from pumice.placing.feasibility import Feasibility
from pumice.placing.k_best import LOOK_MAX

#: Placements that were used up are followed by this many times as many, up to ``LOOK_MAX``.
_FURTHER = 4


class NodeChoice(NamedTuple):
    """``nodes`` in the order of choice, of which this many were requested ``ahead``. ``all_there_are``: after them no
    node is left."""

    ahead: int
    nodes: list[int]
    all_there_are: bool


_NOTHING = NodeChoice(0, [], all_there_are=False)


class PrefetchedPlacements:
    """Placements chosen ahead of need, valid as long as only taking them changes nodes. ``to_the_last``: the caller
    returns fewer than requested only if no node is left."""

    __slots__ = ("_feasible", "_memo", "_taking", "_to_the_last")

    def __init__(self, memo: Memo, feasible: Feasibility, *, to_the_last: bool = False) -> None:
        self._memo, self._feasible, self._to_the_last = memo, feasible, to_the_last
        self._taking: tuple[Hashable, NodeChoice] = ((), _NOTHING)

    def next(self, question: Hashable, count: int, choose: Callable[[int], list[int]]) -> list[int]:
        """Return nodes for up to ``count`` tasks over all nodes. ``choose`` returns a number of nodes, one after the
        other. Call ``took`` after all or some of them have been taken, in order."""
        now = self._feasible.everything()
        known: NodeChoice | None = self._memo.recall(question, now)
        if known is None or not (known.all_there_are or len(known.nodes) >= count):
            ahead = count
            if known is not None:
                # The number grows only when placements were used up, so a single gang never pays for those that may
                # follow.
                ahead = min(_FURTHER * known.ahead, LOOK_MAX) if len(known.nodes) < count else known.ahead
            nodes = choose(max(count, ahead))
            all_there_are = self._to_the_last and len(nodes) < max(count, ahead)
            known = self._memo.keep(question, now, NodeChoice(ahead, nodes, all_there_are))
        self._taking = question, known
        return known.nodes[:count]

    def none(self) -> None:
        """Note that what is taken next was not chosen here."""
        self._taking = ((), _NOTHING)

    def took(self, count: int) -> None:
        """Note that the first ``count`` nodes that ``next`` returned have been taken, and that nothing else moved."""
        question, chosen = self._taking
        if chosen.nodes:
            left = NodeChoice(chosen.ahead, chosen.nodes[count:], chosen.all_there_are)
            # Kept under the new state of nodes: taking these placements is the one change that does not make the rest
            # wrong.
            self._memo.keep(question, self._feasible.everything(), left)

    def none_is_left(self, question: Hashable) -> bool:
        """Return True if it is known that another task would find no node."""
        known: NodeChoice | None = self._memo.recall(question, self._feasible.everything())
        return known is not None and known.all_there_are and not known.nodes
