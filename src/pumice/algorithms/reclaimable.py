"""Rules of reclaiming: which amounts a queue may take from other queues. Units and inf as in ``queue_tree``.

Source: KAI ``proportion`` plugin (reclaimable). A lump is what one step of an eviction takes from one leaf queue.
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
    """Queues before anything is reclaimed. Amounts are (Q, R); ``parent`` (Q,) is a row, -1 for none."""

    parent: Rows
    allocated: F64
    non_preemptible: F64
    quota: F64
    fair: F64
    share: F64

    def line(self, row: int) -> list[int]:
        """Return the rows of a queue and its ancestors, up to the root."""
        found = [row]
        while (up := int(self.parent[found[-1]])) >= 0:
            found.append(up)
        return found


def may_reclaim(states: QueueStates, queue: int, need: F64, preemptible: bool) -> bool:
    """Return True if a queue with ``need`` (R,) more would stay within its fair share.

    If the need is of a job that cannot be preempted, what such jobs hold must also stay within the quota.
    """
    asked = need.tolist()
    # The fair share and not the quota: a queue may also take back what others hold of the part over the quotas.
    if _exceeds(_plus(states.allocated[queue].tolist(), asked), states.fair[queue].tolist()):
        return False
    fixed = states.non_preemptible[queue].tolist()
    return preemptible or not _exceeds(_plus(fixed, asked), states.quota[queue].tolist())


def has_candidates(states: QueueStates, queue: int, need: F64, loser: int) -> bool:
    """Return True if jobs of the leaf queue ``loser`` are candidates for a job of ``queue`` that needs ``need`` (R,).

    The two highest queues in which their paths differ are compared. Source: KAI proportion plugin, reclaim victim
    filter.
    """
    mine, theirs = states.line(queue)[::-1], states.line(loser)[::-1]
    pair = next(((a, b) for a, b in zip(mine, theirs, strict=False) if a != b), None)
    # One queue for both, or one above the other: nothing is compared.
    if pair is None:
        return True
    taker, other = pair
    asked, held = need.tolist(), states.allocated[other].tolist()
    if _exceeds(_plus(states.allocated[taker].tolist(), asked), states.quota[taker].tolist()):
        return _exceeds(held, states.share[other].tolist())
    quota = states.quota[other].tolist()
    counted = [(has, may) for has, may, more in zip(held, quota, asked, strict=True) if more > 0 and may != _INF]
    return any(has > may for has, may in counted) or not any(has < may for has, may in counted)


def is_reclaimable(
    states: QueueStates, queue: int, need: F64, preemptible: bool, leaves: Rows, lumps: F64, multiplier: float = 1.0
) -> bool:
    """Return True if ``queue`` may get ``need`` (R,) by taking ``lumps`` (L, R) from ``leaves`` (L,), in this order.

    A queue above its fair share may only take from queues that are filled more than ``multiplier`` times as much as
    itself, in parts of their fair shares.
    """
    # Amounts are lists of plain numbers: few of all queues take part, each with few resources.
    line, asked = states.line(queue), need.tolist()
    lost, last = _losses(states, line, leaves, lumps)
    remaining = {row: _less(states.allocated[row].tolist(), amounts) for row, amounts in lost.items()}
    # By queue of the line, the next one below it; for -1 the root. So siblings of the line are compared with their
    # peer.
    below = dict(zip(line[1:], line, strict=False)) | {-1: line[-1]}
    # KAI checks lump after lump. What a queue has left only falls, and both rules require it to be above a bound, so
    # the last lump of each queue decides for all lumps before it.
    for loser, place in last.items():
        taker = below[int(states.parent[loser])]
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
        fixed = states.non_preemptible[taker].tolist()
        if not preemptible and _exceeds(_plus(fixed, asked), states.quota[taker].tolist()):
            return False
    return True


def _losses(
    states: QueueStates, line: list[int], leaves: Rows, lumps: F64
) -> tuple[dict[int, list[float]], dict[int, int]]:
    """Return what each queue loses in all, and the index of the last lump of each loser.

    A loser is the highest queue above a leaf that is not above the taker too.
    """
    lost: dict[int, list[float]] = {}
    # The lumps of a leaf are added up first, so that each queue on its path is visited once for the leaf and not per
    # lump.
    within, last = set(line), dict[int, int]()
    for leaf, place in {leaf: place for place, leaf in enumerate(leaves.tolist())}.items():
        amounts = (lumps[leaves == leaf].sum(axis=0) if len(lumps) > 1 else lumps[0]).tolist()
        path = states.line(leaf)
        for row in path:
            lost[row] = _plus(lost[row], amounts) if row in lost else amounts
        loser = _highest_outside(path, within)
        last[loser] = max(place, last.get(loser, place))
    return lost, last


def _highest_outside(path: list[int], within: set[int]) -> int:
    """Return the highest queue of a path that is not in ``within``, or the leaf if there is none."""
    return next((row for row in reversed(path) if row not in within), path[0])


def _may_lose(states: QueueStates, taker: int, loser: int, need: Amounts, before: Amounts) -> bool:
    """Return True if the loser may lose one more lump.

    It must hold more than its allocatable share before, or more than its quota while the taker stays within its own.
    """
    if _exceeds(before, states.share[loser].tolist()):
        return True
    # Within its quota the taker may go down to the quota of the loser, since quotas are guaranteed and the rest is not.
    held = _plus(states.allocated[taker].tolist(), need)
    return _exceeds(before, states.quota[loser].tolist()) and not _exceeds(held, states.quota[taker].tolist())


def _is_as_full(states: QueueStates, mine: Amounts, loser: int, remaining: Amounts, involved: Sequence[bool]) -> bool:
    """Return True if the taker is filled at least as much as the loser in a resource that is involved.

    ``mine`` is how much the taker is filled, or -1 where it is within its fair share.
    """
    fair = states.fair[loser].tolist()
    each = zip(mine, _filled(remaining, fair), fair, involved, strict=True)
    return any(share > 0 and counts and full >= theirs for full, theirs, share, counts in each)


def _filled(amounts: Amounts, fair: Amounts) -> list[float]:
    """Return amounts in parts of fair shares: 0 for nothing of nothing, inf for something of nothing."""
    return [
        amount / share if share else (_INF if amount > 0 else 0.0) for amount, share in zip(amounts, fair, strict=True)
    ]


def _plus(left: Amounts, right: Amounts) -> list[float]:
    return [a + b for a, b in zip(left, right, strict=True)]


def _less(left: Amounts, right: Amounts) -> list[float]:
    return [a - b for a, b in zip(left, right, strict=True)]


def _exceeds(amounts: Amounts, bounds: Amounts) -> bool:
    """Return True if an amount is above its bound."""
    return any(a > b for a, b in zip(amounts, bounds, strict=True))
