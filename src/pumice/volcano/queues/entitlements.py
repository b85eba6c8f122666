"""Compute what queues are entitled to under the capacity plugin: deserved and guaranteed amounts, and the most that
each can have. Source: Volcano capacity plugin, without and with hierarchy.
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
    """Amounts of queues, all (Q, R).

    ``deserved`` is at least ``guarantee``. ``named``: dimensions that either of them names, even with 0.
    ``capability``: inf where nothing limits it. ``most``: what the guarantees of other queues leave of it, the most
    that a queue can have.
    """

    deserved: F64
    named: Bool
    guarantee: F64
    capability: F64
    most: F64

    def __post_init__(self) -> None:
        # The memo hands the object out to several readers, so none may write into it.
        for amounts in (self.deserved, self.named, self.guarantee, self.capability, self.most):
            amounts.setflags(write=False)

    def share(self, allocated: F64, rows: Rows = slice(None)) -> F64:
        """Return the largest ratio of allocated to deserved amounts, 1 for queues that deserve nothing. Shape
        (rows,)."""
        deserved = self.deserved[rows]
        return np.where(self.deserves_nothing(rows), 1.0, queue_share(allocated, deserved))

    def deserves_nothing(self, rows: Rows = slice(None)) -> Bool:
        """Return True for queues that deserve nothing; ``pods`` do not count. Shape (rows,)."""
        # Without ``pods``, the last column: Volcano's queues deserve no pods.
        return np.asarray((self.deserved[rows, :-1] < EPS).all(axis=-1))


def side_by_side(queues: QueueTable, axis: ResourceAxis, total: F64) -> Entitlements:
    """Return the entitlements of queues without a tree."""
    guarantee, capability = queues.guarantee.copy(), queues.capability.copy()
    left = _left_of(total, guarantee.sum(axis=0))
    most = np.minimum(left + guarantee, capability)
    guaranteed = _named(queues, axis, lambda queue: queue.guarantee)
    # Quirk of Volcano, kept on purpose: a scalar that other guarantees use up completely is missing in the limit, and
    # a missing scalar does not limit what a queue deserves.
    limits = guaranteed | (left > 0)
    deserved = np.maximum(np.where(limits, np.minimum(queues.deserved, most), queues.deserved), guarantee)
    named = guaranteed | _named(queues, axis, lambda queue: queue.deserved)
    return Entitlements(deserved, named, guarantee, capability, most)


def _named(queues: QueueTable, axis: ResourceAxis, amount: Callable[[Queue], Resource | None]) -> Bool:
    """Return the dimensions that an amount of each queue names. Shape (Q, R)."""
    found = np.tile(axis.named(None), (len(queues), 1))
    for row, queue in enumerate(queues.objs):
        # CPU and memory are always named, as in Volcano's structure, where they are fields and not entries of a map.
        stated = amount(queue)
        if stated is not None and stated.scalars:
            found[row] = axis.named(stated)
    return found


def in_tree(queues: QueueTable, tree: QueueTree, axis: ResourceAxis, total: F64) -> Entitlements:
    """Return the entitlements of queues in a tree. The capability of a queue limits all queues below it; the root gets
    the sums of its children.

    A scalar that neither a queue nor any ancestor names has no limit of its own, but is limited by the parent's most.
    Source: Volcano, which only logs children that are entitled to more than their parent.
    """
    root = queues.row_of[ROOT]
    guarantee, capability = queues.guarantee.copy(), queues.capability.copy()
    deserved, most = np.maximum(queues.deserved, guarantee), np.zeros_like(guarantee)
    named = _named(queues, axis, lambda queue: queue.guarantee) | _named(queues, axis, lambda queue: queue.deserved)
    _limit_root(queues, capability, most, root, total)
    # From the top down, since each level inherits from the one above.
    for rows in tree.levels[1:]:
        parent = tree.parent[rows]
        given = sums_by(parent, guarantee[rows], len(guarantee))
        # A queue without a capability inherits that of its parent; one with a greater capability is bounded by
        # ``most``.
        capability[rows] = np.where(np.isinf(capability[rows]), capability[parent], capability[rows])
        left = _left_of(most[parent], given[parent])
        most[rows] = np.minimum(left + guarantee[rows], capability[rows])
    if len(tree.levels) > 1:
        children = tree.levels[1]
        guarantee[root], deserved[root] = guarantee[children].sum(axis=0), deserved[children].sum(axis=0)
        named[root] = named[children].any(axis=0)
    return Entitlements(deserved, named, guarantee, capability, most)


def _limit_root(queues: QueueTable, capability: F64, most: F64, root: int, total: F64) -> None:
    """Set the limits of the root.

    With a capability, the root can have that and nothing of scalars that it does not name. Without one it can have
    everything.
    """
    stated = queues.objs[root].capability
    if stated is None or stated.is_empty():
        capability[root], most[root] = np.inf, np.where(total > 0, np.inf, 0.0)
        most[root, : MEMORY + 1] = np.inf
        return
    # CPU and memory count as named even if they are not: a root with a capability of GPUs only has no CPU to give.
    capability[root, : MEMORY + 1] = stated.milli_cpu, stated.memory
    most[root] = np.where(np.isinf(capability[root]), 0.0, capability[root])


def _left_of(amount: F64, given: F64) -> F64:
    """Return what is left of an amount, at least 0."""
    return np.maximum(amount - given, 0.0)
