"""How full a node would be with the pod: LeastAllocated, MostAllocated, BalancedAllocation, weighted and summed.

This is the hottest code of the scheduler: it runs for every class over all nodes, and again for each row that changed.
Hence one-dimensional arrays, written in place, and constants as arrays without dimensions: NumPy is quickest at that.

All amounts are whole numbers in float64. Flooring a quotient n / d of such numbers is exact: n / d is at least 1 / d
away from the next whole number above it, and below 128 a float64 resolves 2**-46, so no rounding reaches it while d is
under 2**46 (64 TiB). Source: kube-scheduler NodeResourcesFit and NodeResourcesBalancedAllocation (1.36), with Volcano's
resources and weights: cpu 50 and memory 50, cpu 1 and memory 1, and for the balance cpu, memory and nvidia.com/gpu. The
balance is scored by what the pod changes (kube-scheduler 1.36), not by what it leaves (up to 1.35): that is what the
recorded decisions show.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import CPU, F64, MEMORY, AnyArray, Bool
from pumice.columns.nodes import NodeFacts
from pumice.columns.tables import Tables
from pumice.columns.views import NodeRows, TaskClass

GPU = "nvidia.com/gpu"
_ZERO, _HALF, _ONE, _THREE, _FIFTY, _HUNDRED = (np.array(v) for v in (0.0, 0.5, 1.0, 3.0, 50.0, 100.0))
_TWICE = np.array([0, 0])


class Room(NamedTuple):
    """What each node has (N,), 1 where it has none of it; ``has`` False there.

    ``mean``: 1 over how many of cpu and memory it has. ``plain``: every node has both.
    """

    cpu: F64
    memory: F64
    gpu: F64
    has_cpu: Bool
    has_memory: Bool
    has_gpu: Bool
    mean: F64
    plain: bool


class Asked(NamedTuple):
    """What a class asks for, as arrays without dimensions. ``gpu`` None: no GPU. ``nothing``: it is best effort."""

    cpu: F64
    memory: F64
    gpu: F64 | None
    nonzero_cpu: F64
    nonzero_memory: F64
    nothing: bool


class Allocation:
    """A score from the weights of the three; weight 0 leaves one out."""

    def __init__(self, tables: Tables, least: int, most: int, balanced: int) -> None:
        self._least, self._most, self._balanced = least, most, balanced
        self._classes = tables.classes
        self._width = len(tables.axis)
        self._gpu = tables.axis.column.get(GPU, -1)
        facts = tables.nodes.facts
        self._room = facts.remember(("room",), lambda: _room(facts, self._gpu))
        self._asked: dict[int, Asked] = {}

    def __call__(self, cls: TaskClass, nodes: NodeRows) -> F64:
        """Weighted sum of the scores. Shape (rows,)."""
        asked = self._asked.get(cls.row) or self._ask(cls.row)
        view, rows = nodes.view, nodes.rows
        if len(rows) == 1:  # in-place operations on one element are slow; two are quick
            return self._score(asked, view.take(_TWICE, axis=0), rows.take(_TWICE))[:1]
        return self._score(asked, view, rows)

    def _score(self, asked: Asked, view: F64, rows: AnyArray) -> F64:
        room, width = self._room, self._width
        total: F64 | None = None
        cpu, memory = room.cpu.take(rows), room.memory.take(rows)
        if self._least or self._most:
            held = view[:, width] + asked.nonzero_cpu, view[:, width + 1] + asked.nonzero_memory
            if self._least:
                score = self._mean(_free(held[0], cpu), _free(held[1], memory), rows)
                total = _plus(total, score, self._least)
            if self._most:
                score = self._mean(_full(held[0], cpu), _full(held[1], memory), rows)
                total = _plus(total, score, self._most)
        if self._balanced and not asked.nothing:
            after = [_share(view[:, CPU], asked.cpu, cpu), _share(view[:, MEMORY], asked.memory, memory)]
            before = [_share(view[:, CPU], _ZERO, cpu), _share(view[:, MEMORY], _ZERO, memory)]
            if asked.gpu is not None:
                gpu = room.gpu.take(rows)
                after.append(_share(view[:, self._gpu], asked.gpu, gpu))
                before.append(_share(view[:, self._gpu], _ZERO, gpu))
            score = self._gain(self._balance(after, rows), self._balance(before, rows))
            total = _plus(total, score, self._balanced)
        return np.zeros(len(rows)) if total is None else total

    def _mean(self, cpu: F64, memory: F64, rows: AnyArray) -> F64:
        """The floored mean of two whole numbers, of those that the node has."""
        room, mean = self._room, _HALF
        if not room.plain:
            cpu *= room.has_cpu.take(rows)
            memory *= room.has_memory.take(rows)
            mean = room.mean.take(rows)
        np.add(cpu, memory, cpu)
        np.multiply(cpu, mean, cpu)
        return np.floor(cpu, cpu)

    def _balance(self, shares: list[F64], rows: AnyArray) -> F64:
        """⌊(1 - σ) · 100⌋ over the resources that the node has."""
        room = self._room
        if not room.plain:
            has = [room.has_cpu.take(rows), room.has_memory.take(rows), room.has_gpu.take(rows)]
            sigma = _deviation_of_some(shares, has[: len(shares)])
        elif len(shares) == 2:
            sigma = _half_apart(*shares)
        else:
            sigma = np.where(room.has_gpu.take(rows), _deviation_of_three(*shares), _half_apart(*shares[:2]))
        np.subtract(_ONE, sigma, sigma)
        np.multiply(sigma, _HUNDRED, sigma)
        return np.floor(sigma, sigma)

    @staticmethod
    def _gain(after: F64, before: F64) -> F64:
        """How much better balanced the pod makes the node: 75 for no change, 50 to 100. Both are from 50 to 100."""
        np.subtract(after, before, after)
        np.add(after, _FIFTY, after)
        np.multiply(after, _HALF, after)
        np.floor(after, after)
        np.add(after, _FIFTY, after)
        return after

    def _ask(self, row: int) -> Asked:
        req, nonzero = self._classes.req[row], self._classes.nonzero[row]
        gpu = float(req[self._gpu]) if self._gpu >= 0 else 0.0
        cpu, memory, *more = (np.array(v) for v in (req[CPU], req[MEMORY], nonzero[0], nonzero[1]))
        nothing = not (gpu or req[CPU] or req[MEMORY])
        found = self._asked[row] = Asked(cpu, memory, np.array(gpu) if gpu else None, more[0], more[1], nothing)
        return found


def _room(facts: NodeFacts, gpu: int) -> Room:
    cpu, memory = facts.view_allocatable[:, CPU], facts.view_allocatable[:, MEMORY]
    gpus = facts.view_allocatable[:, gpu] if gpu >= 0 else np.zeros(len(facts))
    has = cpu > 0, memory > 0, gpus > 0
    mean = 1.0 / np.maximum(has[0].astype(np.float64) + has[1], 1.0)
    plain = bool((has[0] & has[1]).all())
    cpu, memory, gpus = (np.where(h, amount, 1.0) for h, amount in zip(has, (cpu, memory, gpus), strict=True))
    return Room(cpu, memory, gpus, *has, mean, plain)


def _plus(total: F64 | None, score: F64, weight: int) -> F64:
    if weight != 1:
        score *= weight
    return score if total is None else np.add(total, score, total)


def _free(held: F64, room: F64) -> F64:
    """⌊(room - held) · 100 / room⌋, 0 where that is below 0."""
    score = room - held
    np.multiply(score, _HUNDRED, score)
    np.divide(score, room, score)
    np.floor(score, score)
    np.maximum(score, _ZERO, out=score)
    return score


def _full(held: F64, room: F64) -> F64:
    """⌊held · 100 / room⌋, at most 100."""
    score: F64 = np.minimum(held, room)
    np.multiply(score, _HUNDRED, score)
    np.divide(score, room, score)
    return np.floor(score, score)


def _share(view: F64, asked: F64, room: F64) -> F64:
    """The share in use with the pod, at most 1."""
    share = view + asked
    np.divide(share, room, share)
    np.minimum(share, _ONE, out=share)
    return share


def _half_apart(one: F64, other: F64) -> F64:
    apart: F64 = one - other
    np.abs(apart, apart)
    np.multiply(apart, _HALF, apart)
    return apart


def _deviation_of_three(one: F64, two: F64, three: F64) -> F64:
    """Standard deviation; sums run from left to right, as in the source."""
    mean = one + two
    np.add(mean, three, mean)
    np.divide(mean, _THREE, mean)
    squares = np.zeros(len(mean))
    for share in (one, two, three):
        apart = share - mean
        np.multiply(apart, apart, apart)
        np.add(squares, apart, squares)
    np.divide(squares, _THREE, squares)
    return np.sqrt(squares, squares)


def _deviation_of_some(shares: list[F64], has: list[Bool]) -> F64:
    """The same where a node may lack some: none for one, half the distance of two, the standard deviation of three."""
    share = np.where(np.array(has), np.array(shares), np.nan)
    count = np.array(has).sum(axis=0)
    apart = np.nan_to_num(np.fmax.reduce(share) - np.fmin.reduce(share)) / 2.0
    sigma = np.where(count == 2, apart, 0.0)
    if len(shares) < 3:
        return sigma
    return np.where(count == 3, _deviation_of_three(*shares), sigma)
