"""The order of sibling queues. Units and inf as in ``queue_tree``. Source: KAI ``proportion`` plugin (queue order)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Amounts = Sequence[float]  # (R,)
Key = tuple[bool, bool, float, bool, float, float]


class QueueKey(NamedTuple):
    """The place of a queue among its siblings. The smaller ``key`` goes first, then the ``share`` that is at most the
    other in all resources (``compare_requests``)."""

    key: Key
    share: Amounts


_INF = float("inf")
#: The factor in place of a division by a share of 0. Source: KAI.
_NO_SHARE = 1000.0


def request_key(
    allocated: Amounts,
    job: Amounts,
    victims: Amounts,
    fair: Amounts,
    quota: Amounts,
    share: Amounts,
    total: Amounts,
    priority: float,
) -> Key:
    """Return the sort key of a queue. The smallest goes first.

    ``job`` is the request of its best job, ``victims`` what would be evicted from it, ``share`` its allocatable share.
    The key has, in this order: it is over its fair share in every resource; it would be over its quota with the job;
    its
    priority; it would hold a resource of which it has no share; its dominant share with the job and without the
    victims; its present dominant share.
    """
    # A loop over plain numbers: keys are computed for one queue at a time, each time that queue changes.
    over, beyond, unshared, then, now = True, False, False, 0.0, 0.0
    each = zip(allocated, job, victims, fair, quota, share, total, strict=True)
    for has, more, less, fairly, due, part, whole in each:
        held = has + more
        over = over and fairly < has
        beyond = beyond or held > due
        unshared = unshared or (part == 0 and held > 0)
        of = whole if part == _INF else part  # of the total where the share is unlimited
        then = max(then, (held - less) * _NO_SHARE if of == 0 else (held - less) / of)
        now = max(now, has * _NO_SHARE if of == 0 else has / of)
    return over, beyond, -priority, unshared, then, now


def compare_requests(left: Key, right: Key, left_share: Amounts, right_share: Amounts) -> int:
    """Return a negative number if the left queue goes first, a positive one if the right does, else 0."""
    # Not part of the key: the shares are compared in all resources at once, which orders only some pairs of queues.
    if left != right:
        return -1 if left < right else 1
    if left_share == right_share:
        return 0
    # A queue with less of one resource and more of another is neither before nor after: the caller then decides by age.
    at_most = all(x <= y for x, y in zip(left_share, right_share, strict=True))
    at_least = all(y <= x for x, y in zip(left_share, right_share, strict=True))
    return int(at_least) - int(at_most)
