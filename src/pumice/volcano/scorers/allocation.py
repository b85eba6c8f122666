"""Score how full a node would be with the pod: LeastAllocated, MostAllocated and BalancedAllocation, weighted and
added.

Source: kube-scheduler NodeResourcesFit and NodeResourcesBalancedAllocation (1.36), with Volcano's resources and
weights: CPU 50 and memory 50 for the first, CPU 1 and memory 1 for the second, and CPU, memory and nvidia.com/gpu for
the balance. The balance is scored by what the pod changes (kube-scheduler 1.36) and not by the result (up to 1.35), as
the recorded decisions show.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pumice.algorithms.groups import all_equal
from pumice.columns.dtypes import CPU, F64, MEMORY, AnyArray, Bool, read_only
from pumice.columns.nodes import NodeFacts
from pumice.columns.rows import ClassRows, NodeRows
from pumice.columns.tables import Tables
from pumice.columns.views import TaskClass
from pumice.placing.derived import Derived

# This is the hottest code of the scheduler: it runs for every class over all nodes, and again for each changed row.
# Hence one-dimensional arrays written in place, and zero-dimensional arrays as constants, which NumPy handles fastest.
#
# All amounts are whole numbers in float64, and flooring a quotient n / d of such numbers is exact. The next whole
# number above n / d is at least 1 / d away, and below 128 a float64 resolves 2**-46, so rounding cannot reach it while
# d is below 2**46 (64 TiB).

GPU = "nvidia.com/gpu"
_ZERO, _HALF, _ONE, _THREE, _FIFTY, _HUNDRED = (np.array(v) for v in (0.0, 0.5, 1.0, 3.0, 50.0, 100.0))
_TWICE = np.array([0, 0])


class Room(NamedTuple):
    """CPU, memory and GPUs of each node (3, N), with 1 in place of 0; ``has`` is False there.

    ``mean``: 1 divided by how many of CPU and memory the node has. ``plain``: every node has both. ``gpus``: every
    node has GPUs.
    """

    amounts: F64
    has: Bool
    mean: F64
    plain: bool
    gpus: bool

    def of(self, rows: AnyArray) -> Room:
        """Return the room of some nodes."""
        amounts, has, mean = self.amounts.take(rows, axis=1), self.has, self.mean
        if not (self.plain and self.gpus):
            has, mean = has.take(rows, axis=1), mean.take(rows)
        return Room(amounts, has, mean, self.plain, self.gpus)


class ClassRequests(NamedTuple):
    """Requests of C classes for the same resources.

    ``nonzero`` (C, 2, 1): CPU and memory with kube-scheduler's defaults for missing requests. ``shares``
    (C + 1, S, 1): requests for CPU, memory and, if any, GPUs, with a last row of zeros. ``columns`` (S,): columns of
    these resources. ``nothing``: the classes are best effort.
    """

    nonzero: F64
    shares: F64
    columns: AnyArray
    nothing: bool


class Allocation:
    """The weighted sum of the three scores; a score with weight 0 is left out."""

    def __init__(self, tables: Tables, nodes: Derived, least: int, most: int, balanced: int) -> None:
        self._least, self._most, self._balanced = least, most, balanced
        self._classes = tables.classes
        self._width = len(tables.axis)
        self._gpu = tables.axis.column.get(GPU, -1)
        # Kept with the node objects: it changes only when a machine does, and not with what runs there.
        self._room = nodes.get("room", lambda: _room(nodes.facts, self._gpu))
        self._nodes, self._weights = nodes, (least, most, balanced)

    def __call__(self, cls: TaskClass, nodes: NodeRows) -> F64:
        """Return the weighted sum of scores. Shape (rows,)."""
        asked = self._ask(cls.row)
        by_amount, room = nodes.view_by_amount, self._room
        # The common case at the beginning of a cycle; taking all rows would copy them for nothing.
        if nodes.whole:
            score: F64 = self._score(asked, by_amount, room)[0]
            return score
        if len(nodes) == 1:
            return self._of_one(cls.row, int(nodes.rows[0]), asked, by_amount)
        score = self._score(asked, by_amount, room.of(nodes.rows))[0]
        return score

    def of_several(self, classes: ClassRows, nodes: NodeRows) -> F64:
        """Return the weighted sum of scores for several classes. Shape (classes, rows)."""
        by_amount = nodes.view_by_amount
        room = self._room if nodes.whole else self._room.of(nodes.rows)
        kinds = list(map(self._kind, classes.req.tolist()))
        # Classes that ask for the same resources are scored in one pass.
        if all_equal(kinds):
            return self._score(self._asked_by(classes.rows, kinds[0]), by_amount, room)
        found = np.empty((len(classes), len(nodes)))
        for kind in dict.fromkeys(kinds):
            some = [i for i, other in enumerate(kinds) if other == kind]
            found[some] = self._score(self._asked_by(classes.rows[some], kind), by_amount, room)
        return found

    def _of_one(self, cls: int, node: int, asked: ClassRequests, by_amount: F64) -> F64:
        """Return the score of one node."""

        def build() -> F64:
            # NumPy is slow at in-place operations on one element; a second copy of the node avoids that.
            room = self._room.of(np.array([node, node]))
            return read_only(self._score(asked, by_amount.take(_TWICE, axis=1), room)[0, :1])

        # Evictions ask again and again for one node, which often holds the same amounts as before.
        return self._nodes.of_class(("allocation", *self._weights, node), cls, build, by_amount.tobytes())

    def _score(self, asked: ClassRequests, by_amount: F64, of_nodes: Room) -> F64:
        """Return the scores of classes. Shape (C, rows)."""
        amounts = of_nodes.amounts
        total: F64 | None = None
        if self._least or self._most:
            room, held = amounts[:2], by_amount[self._width : self._width + 2] + asked.nonzero
            if self._most:
                total = _plus(total, _mean(_full(held, room), of_nodes), self._most)
            if self._least:
                total = _plus(total, _mean(_free(held, room), of_nodes), self._least)
        # Best-effort pods have no balance: kube-scheduler skips this score for them in PreScore.
        if self._balanced and not asked.nothing:
            count = len(asked.columns)
            shares = by_amount.take(asked.columns, axis=0) + asked.shares
            np.divide(shares, amounts[:count], shares)
            # A node may hold more than it has, after its capacity shrank, and kube-scheduler caps the share at 1.
            np.minimum(shares, _ONE, out=shares)
            balance = _balance(shares, of_nodes)
            total = _plus(total, _gain(balance[:-1], balance[-1]), self._balanced)
        return np.zeros((len(asked.nonzero), amounts.shape[1])) if total is None else total

    def _ask(self, row: int) -> ClassRequests:
        """Return the request of a class."""

        def build() -> ClassRequests:
            return self._asked_by(np.array([row]), self._kind(self._classes.req[row].tolist()))

        return self._nodes.of_class("allocation asks", row, build)

    def _asked_by(self, rows: AnyArray, kind: tuple[bool, bool]) -> ClassRequests:
        """Return the requests of classes of one kind."""
        nothing, columns = kind[0], [CPU, MEMORY] + [self._gpu] * kind[1]
        # The last row asks for nothing: it is the node without the pod, with which the balance is compared.
        shares = np.zeros((len(rows) + 1, len(columns), 1))
        shares[:-1, :, 0] = self._classes.req[rows[:, None], columns]
        return ClassRequests(self._classes.nonzero[rows, :, None], shares, np.array(columns), nothing)

    def _kind(self, req: list[float]) -> tuple[bool, bool]:
        """Return whether a request is empty, and whether it includes GPUs."""
        # An extended resource takes part only if the pod asks for it. Source: kube-scheduler balanced_allocation.go.
        gpus = self._gpu >= 0 and req[self._gpu] != 0
        return not (req[CPU] or req[MEMORY] or gpus), gpus


def _room(facts: NodeFacts, gpu: int) -> Room:
    """Return the room of all nodes."""
    cpu, memory = facts.view_allocatable[:, CPU], facts.view_allocatable[:, MEMORY]
    amounts = np.array([cpu, memory, facts.view_allocatable[:, gpu] if gpu >= 0 else np.zeros(len(facts))])
    has = amounts > 0
    mean = 1.0 / np.maximum(has[0].astype(np.float64) + has[1], 1.0)
    plain, gpus = bool(has[:2].all()), bool(has[2].all())
    # 1 in place of 0, so that no division needs a mask; ``has`` takes the result out.
    return Room(np.where(has, amounts, 1.0), has, mean, plain, gpus)


def _mean(score: F64, room: Room) -> F64:
    """Return the floored mean of two scores, of the resources that the node has. Shape (C, 2, rows) -> (C, rows)."""
    mean = _HALF
    if not room.plain:
        score *= room.has[:2]
        mean = room.mean
    both: F64 = score[:, 0] + score[:, 1]
    np.multiply(both, mean, both)
    np.floor(both, both)
    return both


def _balance(shares: F64, room: Room) -> F64:
    """Return ⌊(1 - σ) · 100⌋ over the resources that the node has. Shape (C, S, rows) -> (C, rows)."""
    if not room.plain:
        sigma = _deviation_of_some(shares, room.has[: shares.shape[1]])
    elif shares.shape[1] == 2:
        sigma = _half_apart(shares)
    elif room.gpus:
        sigma = _deviation_of_three(shares)
    else:
        sigma = np.where(room.has[2], _deviation_of_three(shares), _half_apart(shares))
    np.subtract(_ONE, sigma, sigma)
    np.multiply(sigma, _HUNDRED, sigma)
    return np.floor(sigma, sigma)


def _gain(after: F64, before: F64) -> F64:
    """Return how much the pod improves the balance of the node: 75 for no change, from 50 to 100. Both inputs are from
    50 to 100. Shapes (C, rows), (rows,) -> (C, rows)."""
    np.subtract(after, before, after)
    np.add(after, _FIFTY, after)
    np.multiply(after, _HALF, after)
    np.floor(after, after)
    np.add(after, _FIFTY, after)
    return after


def _plus(total: F64 | None, score: F64, weight: int) -> F64:
    """Add a weighted score to the total."""
    if weight != 1:
        score *= weight
    return score if total is None else np.add(total, score, total)


def _free(held: F64, room: F64) -> F64:
    """Return ⌊(room - held) · 100 / room⌋, at least 0. Overwrites ``held``."""
    np.subtract(room, held, held)
    np.multiply(held, _HUNDRED, held)
    np.divide(held, room, held)
    np.floor(held, held)
    # A request above the room scores 0 and not less. Source: kube-scheduler least_allocated.go.
    np.maximum(held, _ZERO, out=held)
    return held


def _full(held: F64, room: F64) -> F64:
    """Return ⌊held · 100 / room⌋, at most 100."""
    score: F64 = np.minimum(held, room)
    np.multiply(score, _HUNDRED, score)
    np.divide(score, room, score)
    return np.floor(score, score)


def _half_apart(shares: F64) -> F64:
    """Return half the distance of the first two shares. Shape (C, S, rows) -> (C, rows)."""
    apart: F64 = shares[:, 0] - shares[:, 1]
    np.abs(apart, apart)
    np.multiply(apart, _HALF, apart)
    return apart


def _deviation_of_three(shares: F64) -> F64:
    """Return the standard deviation of three shares. Shape (C, S, rows) -> (C, rows)."""
    # Sums run from left to right, as in the source, since another order may change the last digit.
    mean = np.add.reduce(shares, axis=1)
    np.divide(mean, _THREE, mean)
    apart = shares - mean[:, None]
    np.multiply(apart, apart, apart)
    squares: F64 = np.add.reduce(apart, axis=1)
    np.divide(squares, _THREE, squares)
    np.sqrt(squares, squares)
    return squares


def _deviation_of_some(shares: F64, has: Bool) -> F64:
    """Return the deviation for nodes that may lack resources: 0 for one, half the distance of two, the standard
    deviation of three. ``has``: shape (S, rows)."""
    # NaN, because the largest and the smallest share skip it without a mask per resource.
    share = np.where(has, shares, np.nan)
    count = has.sum(axis=0)
    apart = np.nan_to_num(np.fmax.reduce(share, axis=1) - np.fmin.reduce(share, axis=1)) / 2.0
    sigma = np.where(count == 2, apart, 0.0)
    if len(has) < 3:
        return sigma
    return np.where(count == 3, _deviation_of_three(shares), sigma)
