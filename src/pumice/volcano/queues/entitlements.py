"""What queues are entitled to under ``capacity``: deserved, guarantee, and the most that each can have.

Source: Volcano capacity (spec 04 §8.1 for queues side by side, §8.2 for a tree).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from pumice.algorithms.shares import EPS, queue_share
from pumice.algorithms.sums import sums_by
from pumice.columns.dtypes import F64, MEMORY, AnyArray, Bool, ResourceAxis
from pumice.columns.queues import QueueTable
from pumice.model.queue import Queue
from pumice.model.resources import Resource
from pumice.volcano.queues.tree import ROOT, QueueTree

Rows = AnyArray | list[int] | slice


class Entitlements(Struct, frozen=True):
    """All (Q, R). ``deserved`` is no less than ``guarantee``; ``named``: the dimensions that either speaks of, be it
    with 0. ``capability``: inf where nothing limits it; ``most``: what others' guarantees leave of it, which is what a
    queue can have at the most."""

    deserved: F64
    named: Bool
    guarantee: F64
    capability: F64
    most: F64

    def __post_init__(self) -> None:
        for amounts in (self.deserved, self.named, self.guarantee, self.capability, self.most):
            amounts.setflags(write=False)

    def share(self, allocated: F64, rows: Rows = slice(None)) -> F64:
        """The largest part of what each of some queues deserves that it has; 1 where it deserves nothing. Shape
        (rows,)."""
        deserved = self.deserved[rows]
        return np.where(self.deserves_nothing(rows), 1.0, queue_share(allocated, deserved))

    def deserves_nothing(self, rows: Rows = slice(None)) -> Bool:
        """``pods`` do not count. Shape (rows,)."""
        return np.asarray((self.deserved[rows, :-1] < EPS).all(axis=-1))


def side_by_side(queues: QueueTable, axis: ResourceAxis, total: F64) -> Entitlements:
    """Of queues that share the cluster without a tree. What a queue deserves is cut to the most that it can have, but
    for scalars of which the others' guarantees leave nothing at all."""
    guarantee, capability = queues.guarantee.copy(), queues.capability.copy()
    left = _left_of(total, guarantee.sum(axis=0))
    most = np.minimum(left + guarantee, capability)
    guaranteed = _named(queues, axis, lambda queue: queue.guarantee)
    limits = guaranteed | (left > 0)
    deserved = np.maximum(np.where(limits, np.minimum(queues.deserved, most), queues.deserved), guarantee)
    named = guaranteed | _named(queues, axis, lambda queue: queue.deserved)
    return Entitlements(deserved, named, guarantee, capability, most)


def _named(queues: QueueTable, axis: ResourceAxis, amount: Callable[[Queue], Resource | None]) -> Bool:
    """Which dimensions an amount of each queue speaks of. Shape (Q, R)."""
    found = np.tile(axis.named(None), (len(queues), 1))
    for row, queue in enumerate(queues.objs):
        stated = amount(queue)
        if stated is not None and stated.scalars:
            found[row] = axis.named(stated)
    return found


def in_tree(queues: QueueTable, tree: QueueTree, axis: ResourceAxis, total: F64) -> Entitlements:
    """Of queues in a tree: what limits a queue limits all below it; the root has what its children have together.

    A scalar of which neither a queue nor any ancestor speaks is not limited by name, but comes out of what the parent
    can have at most. Source: Volcano, which logs it when children are entitled to more than their parent, and goes on.
    """
    root = queues.row_of[ROOT]
    guarantee, capability = queues.guarantee.copy(), queues.capability.copy()
    deserved, most = np.maximum(queues.deserved, guarantee), np.zeros_like(guarantee)
    named = _named(queues, axis, lambda queue: queue.guarantee) | _named(queues, axis, lambda queue: queue.deserved)
    _limit_root(queues, capability, most, root, total)
    for rows in tree.levels[1:]:
        parent = tree.parent[rows]
        given = sums_by(parent, guarantee[rows], len(guarantee))
        capability[rows] = np.where(np.isinf(capability[rows]), capability[parent], capability[rows])
        left = _left_of(most[parent], given[parent])
        most[rows] = np.minimum(left + guarantee[rows], capability[rows])
    if len(tree.levels) > 1:
        children = tree.levels[1]
        guarantee[root], deserved[root] = guarantee[children].sum(axis=0), deserved[children].sum(axis=0)
        named[root] = named[children].any(axis=0)
    return Entitlements(deserved, named, guarantee, capability, most)


def _limit_root(queues: QueueTable, capability: F64, most: F64, root: int, total: F64) -> None:
    """The root can have its capability, and nothing of what that does not state; without a capability anything that
    there is. cpu and memory are stated always: a root with a capability for gpus alone has no cpu for anybody."""
    stated = queues.objs[root].capability
    if stated is None or stated.is_empty():
        capability[root], most[root] = np.inf, np.where(total > 0, np.inf, 0.0)
        most[root, : MEMORY + 1] = np.inf
        return
    capability[root, : MEMORY + 1] = stated.milli_cpu, stated.memory
    most[root] = np.where(np.isinf(capability[root]), 0.0, capability[root])


def _left_of(amount: F64, given: F64) -> F64:
    """What is left when something is given away, nothing where it is more than all of it."""
    return np.maximum(amount - given, 0.0)
