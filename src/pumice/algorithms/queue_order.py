"""Which of two sibling queues goes first. Numbers in, answers out; units and inf as in ``queue_tree``.

Source: KAI proportion (queue order). Its last rule but one compares shares in all resources at once, so that two queues
may be neither before nor after each other by it: keys alone cannot say it, ``compare_turns`` does. Plain numbers, since
a key is asked for one queue at a time, whenever that queue changes.
"""

from __future__ import annotations

from collections.abc import Sequence

Amounts = Sequence[float]  # (R,)
Key = tuple[bool, bool, float, bool, float, float]

_INF = float("inf")
#: What a share of nothing makes of an amount.
_NO_SHARE = 1000.0


def turn_key(
    allocated: Amounts,
    job: Amounts,
    victims: Amounts,
    fair: Amounts,
    quota: Amounts,
    share: Amounts,
    total: Amounts,
    priority: float,
) -> Key:
    """What is compared of a queue, one after the other, smallest first.

    ``job``: what its best job asks for. ``victims``: what would be taken from it. ``share``: its allocatable share. The
    key: over its fair share in every resource; beyond its quota with the job; its priority; would hold something of
    which it has no share; dominant share with the job and without the victims; dominant share as it is.
    """
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


def compare_turns(left: Key, right: Key, left_share: Amounts, right_share: Amounts) -> int:
    """Negative: the left goes first, positive: the right, 0: neither."""
    if left != right:
        return -1 if left < right else 1
    if left_share == right_share:
        return 0
    at_most = all(x <= y for x, y in zip(left_share, right_share, strict=True))
    at_least = all(y <= x for x, y in zip(left_share, right_share, strict=True))
    return int(at_least) - int(at_most)
