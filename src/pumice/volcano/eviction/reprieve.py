"""Spare victims that are not needed. Source: the reprieve of kube-scheduler's DefaultPreemption."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pumice.framework.cycle.statement import Statement

#: Most victims of one node that are tried: each try evicts the others anew.
TRIED_MAX = 64


def needed_victims(stmt: Statement, victims: Sequence[int], reason: str, fits: Callable[[], bool]) -> list[int]:
    """Return those of some victims that have to leave so that ``fits`` holds, in their order.

    It holds once all of them have left and not before the last one has. Nothing is evicted at the call, and nothing is
    afterwards. Victims that are evicted later matter more, so they are spared first.
    """
    needed = list(victims)
    # Without the last victim, which is needed by definition: the task did not fit before it had left.
    for row in list(reversed(victims[:-1]))[:TRIED_MAX]:
        others = [each for each in needed if each != row]
        mark = stmt.mark()
        # Evicted anew for each try, so that plugins see a state that a real eviction could produce.
        for each in others:
            stmt.evict([each], reason)
        if fits():
            needed = others
        stmt.rollback(mark, remember=False)
    return needed
