"""Whether a queue may take from others what it asks for. Arrays in, answers out; units and inf as in ``queue_tree``.

Few of all queues take part, so their amounts are plain numbers. Source: KAI proportion (reclaimable). There lumps are
judged one after the other; as what remains only falls and both strategies ask for it to be above a bound, the last lump
of each queue that loses decides for all before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

F64 = npt.NDArray[np.float64]
Rows = npt.NDArray[np.integer]
Amounts = Sequence[float]  # (R,)

_INF = float("inf")


class QueueStates(Struct, frozen=True):
    """Queues as they are before anything is taken. (Q, R), ``parent`` (Q,): a row, -1 none."""

    parent: Rows
    allocated: F64
    non_preemptible: F64
    quota: F64
    fair: F64
    share: F64

    def line(self, row: int) -> list[int]:
        """The queue, its parent and so on to the root."""
        found = [row]
        while (up := int(self.parent[found[-1]])) >= 0:
            found.append(up)
        return found


def may_reclaim(states: QueueStates, queue: int, need: F64, preemptible: bool) -> bool:
    """Whether it would stay within its fair share and, where it cannot be preempted, within its quota.

    ``need`` (R,).
    """
    asked = need.tolist()
    if _exceeds(_plus(states.allocated[queue].tolist(), asked), states.fair[queue].tolist()):
        return False
    held_fast = states.non_preemptible[queue].tolist()
    return preemptible or not _exceeds(_plus(held_fast, asked), states.quota[queue].tolist())


def is_reclaimable(
    states: QueueStates, queue: int, need: F64, preemptible: bool, leaves: Rows, lumps: F64, multiplier: float = 1.0
) -> bool:
    """Whether ``queue`` may have ``need`` (R,) for what leaf queues lose: ``lumps`` (L, R), that of ``leaves`` (L,)
    each, in the order in which they go.

    ``multiplier``: how much fuller than its own share a queue above its fair share must find the one it takes from.
    """
    line, asked = states.line(queue), need.tolist()
    lost, last = _losses(states, line, leaves, lumps)
    remaining = {row: _less(states.allocated[row].tolist(), amounts) for row, amounts in lost.items()}
    above = dict(zip(line[1:], line, strict=False)) | {-1: line[-1]}  # the one of its line below each
    for loser, place in last.items():
        taker = above[int(states.parent[loser])]
        if not _may_lose(states, taker, loser, asked, _plus(remaining[loser], lumps[place].tolist())):
            return False
    most = (lumps[0] if len(lumps) == 1 else lumps.max(axis=0, initial=0.0)).tolist()
    involved = [more > 0 or less > 0 for more, less in zip(asked, most, strict=True)]
    for taker in line:
        siblings = [row for row in lost if row != taker and states.parent[row] == states.parent[taker]]
        if siblings:
            held = _plus(remaining[taker] if taker in remaining else states.allocated[taker].tolist(), asked)
            mine = [multiplier * full if full > 1 else -1.0 for full in _filled(held, states.fair[taker].tolist())]
            if any(_is_as_full(states, mine, row, remaining[row], involved) for row in siblings):
                return False
        held_fast = states.non_preemptible[taker].tolist()
        if not preemptible and _exceeds(_plus(held_fast, asked), states.quota[taker].tolist()):
            return False
    return True


def _losses(
    states: QueueStates, line: list[int], leaves: Rows, lumps: F64
) -> tuple[dict[int, list[float]], dict[int, int]]:
    """(what each queue that loses something loses, the place of the last lump of each that the taker's line parts
    from)."""
    lost: dict[int, list[float]] = {}
    within, last = set(line), dict[int, int]()
    for leaf, place in {leaf: place for place, leaf in enumerate(leaves.tolist())}.items():
        amounts = (lumps[leaves == leaf].sum(axis=0) if len(lumps) > 1 else lumps[0]).tolist()
        path = states.line(leaf)
        for row in path:
            lost[row] = _plus(lost[row], amounts) if row in lost else amounts
        parting = _parting(path, within)
        last[parting] = max(place, last.get(parting, place))
    return lost, last


def _parting(path: list[int], within: set[int]) -> int:
    """The highest of a line of queues that is not in another one; the leaf where all of it is."""
    return next((row for row in reversed(path) if row not in within), path[0])


def _may_lose(states: QueueStates, taker: int, loser: int, need: Amounts, before: Amounts) -> bool:
    """Whether one more lump may go: what it has is above its share, or above its quota while the taker is within its
    own."""
    if _exceeds(before, states.share[loser].tolist()):
        return True
    held = _plus(states.allocated[taker].tolist(), need)
    return _exceeds(before, states.quota[loser].tolist()) and not _exceeds(held, states.quota[taker].tolist())


def _is_as_full(states: QueueStates, mine: Amounts, loser: int, remaining: Amounts, involved: Sequence[bool]) -> bool:
    """Whether the taker, which is so full where it is above its fair share (else -1), is as full as one that loses."""
    fair = states.fair[loser].tolist()
    each = zip(mine, _filled(remaining, fair), fair, involved, strict=True)
    return any(share > 0 and counts and full >= theirs for full, theirs, share, counts in each)


def _filled(amounts: Amounts, fair: Amounts) -> list[float]:
    """How full: nothing of nothing is 0, something of nothing inf, anything of unlimited 0."""
    return [
        amount / share if share else (_INF if amount > 0 else 0.0) for amount, share in zip(amounts, fair, strict=True)
    ]


def _plus(left: Amounts, right: Amounts) -> list[float]:
    return [a + b for a, b in zip(left, right, strict=True)]


def _less(left: Amounts, right: Amounts) -> list[float]:
    return [a - b for a, b in zip(left, right, strict=True)]


def _exceeds(amounts: Amounts, bounds: Amounts) -> bool:
    """Whether any is above its bound."""
    return any(a > b for a, b in zip(amounts, bounds, strict=True))
