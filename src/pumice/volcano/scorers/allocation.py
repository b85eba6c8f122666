"""How full a node would be with the pod: LeastAllocated, MostAllocated, BalancedAllocation, weighted and summed.

This is the hottest code of the scheduler: it runs for every class over all nodes, and again for each row that changed.
Hence few NumPy calls, in place, and a short way for the usual case (every node has cpu and memory).

All amounts are whole numbers in float64. Flooring a quotient n / d of such numbers is exact: n / d is at least 1 / d
away from the next whole number above it, and below 128 a float64 resolves 2**-46, so no rounding reaches it while d is
under 2**46 (64 TiB).
Source: kube-scheduler NodeResourcesFit and NodeResourcesBalancedAllocation (1.36), with Volcano's resources and
weights: cpu 50 and memory 50, cpu 1 and memory 1, and for the balance cpu, memory and nvidia.com/gpu.
"""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import CPU, F64, MEMORY, Bool
from pumice.columns.nodes import NodeFacts
from pumice.columns.tables import Tables
from pumice.columns.views import NodeRows, TaskClass

GPU = "nvidia.com/gpu"
_PAIR = slice(CPU, MEMORY + 1)


class Allocation:
    """A score from the weights of the three; weight 0 leaves one out."""

    def __init__(self, tables: Tables, least: int, most: int, balanced: int) -> None:
        facts = tables.nodes.facts
        self._weights = (float(least), float(most), float(balanced))
        self._width = len(tables.axis)
        self._gpu = tables.axis.column.get(GPU, -1)
        self._room, self._plain = facts.remember(("cpu and memory",), lambda: _room(facts))
        self._gpus, self._all_gpu = facts.remember(("gpus", self._gpu), lambda: _gpus(facts, self._gpu))
        self._requests: dict[int, tuple[F64, F64, float, bool]] = {}
        self._tables = tables

    def __call__(self, cls: TaskClass, nodes: NodeRows) -> F64:
        """Weighted sum of the scores. Shape (rows,)."""
        if not any(self._weights):
            return np.zeros(len(nodes))
        request, nonzero, gpu, best_effort = self._requests.get(cls.row) or self._request(cls.row)
        least, most, balanced = self._weights
        view, width = nodes.view, self._width
        room = self._room.take(nodes.rows, axis=0)
        total: F64 | None = None
        if least or most:
            held = view[:, width : width + 2] + nonzero
            if least:
                total = self._weigh(_least(held, room, self._plain), least)
            if most:
                total = _plus(total, self._weigh(_most(held, room, self._plain), most))
        if balanced and not best_effort:
            held = view[:, _PAIR] + request
            if self._plain and not gpu:
                score = _balance_of_two(held, room)
            else:
                score = self._balance(held, room, view, nodes, gpu)
            total = _plus(total, self._weigh(score, balanced))
        return np.zeros(len(nodes)) if total is None else total

    @staticmethod
    def _weigh(score: F64, weight: float) -> F64:
        if weight != 1.0:
            score *= weight
        return score

    def _request(self, row: int) -> tuple[F64, F64, float, bool]:
        classes = self._tables.classes
        req = classes.req[row]
        gpu = float(req[self._gpu]) if self._gpu >= 0 else 0.0
        pair = req[_PAIR].copy()
        found = self._requests[row] = (pair, classes.nonzero[row], gpu, not (gpu or pair.any()))
        return found

    def _balance(self, held: F64, room: F64, view: F64, nodes: NodeRows, gpu: float) -> F64:
        """The balance over those of cpu, memory and, when asked for, GPUs that the node has."""
        if gpu:
            if self._plain and self._all_gpu:
                return _balance_of_three(held, room, view[:, self._gpu] + gpu, self._gpus.take(nodes.rows))
            held = np.column_stack((held, view[:, self._gpu] + gpu))
            room = np.column_stack((room, self._gpus.take(nodes.rows)))
        has = room > 0
        share = np.divide(held, room, out=np.zeros_like(held), where=has)
        np.minimum(share, 1.0, out=share)
        return _balance_of_some(share, has)


def _room(facts: NodeFacts) -> tuple[F64, bool]:
    """cpu and memory of each node as kube-scheduler sees them (N, 2), and whether every node has both."""
    room = facts.view_allocatable[:, _PAIR].copy()
    return room, bool((room > 0).all())


def _gpus(facts: NodeFacts, column: int) -> tuple[F64, bool]:
    """GPUs of each node as kube-scheduler sees them (N,), and whether every node has some."""
    gpus = facts.view_allocatable[:, column].copy() if column >= 0 else np.zeros(len(facts))
    return gpus, bool((gpus > 0).all())


def _plus(total: F64 | None, more: F64) -> F64:
    if total is None:
        return more
    total += more
    return total


def _least(held: F64, room: F64, plain: bool) -> F64:
    """⌊(room - held) · 100 / room⌋, 0 where it is too much; the mean over dimensions that the node has, floored."""
    free = room - held
    free *= 100.0
    return _mean(free, room, plain)


def _most(held: F64, room: F64, plain: bool) -> F64:
    """⌊held · 100 / room⌋, at most 100; the mean over dimensions that the node has, floored."""
    full = np.minimum(held, room)
    full *= 100.0
    return _mean(full, room, plain)


def _mean(amount: F64, room: F64, plain: bool) -> F64:
    if not plain:
        has = room > 0
        parts = np.floor(np.divide(amount, room, out=np.zeros_like(amount), where=has))
        np.maximum(parts, 0.0, out=parts)
        return np.asarray(parts.sum(axis=1) // np.maximum(has.sum(axis=1), 1))
    amount /= room
    np.floor(amount, out=amount)
    np.maximum(amount, 0.0, out=amount)
    score = amount[:, 0] + amount[:, 1]
    score *= 0.5
    return np.floor(score, out=score)


def _balance_of_two(held: F64, room: F64) -> F64:
    """⌊(1 - |f - g| / 2) · 100⌋ for the shares f and g, each at most 1."""
    held /= room
    np.minimum(held, 1.0, out=held)
    score = held[:, 0] - held[:, 1]
    np.abs(score, out=score)
    score *= -0.5
    score += 1.0
    score *= 100.0
    return np.floor(score, out=score)


def _balance_of_three(held: F64, room: F64, gpu_held: F64, gpu_room: F64) -> F64:
    """⌊(1 - σ) · 100⌋ over cpu, memory and GPUs of nodes that have all three; in the order of ``_balance_of_some``."""
    held /= room
    np.minimum(held, 1.0, out=held)
    cpu, memory = held[:, 0], held[:, 1]
    gpu_held /= gpu_room
    np.minimum(gpu_held, 1.0, out=gpu_held)
    mean = cpu + memory
    mean += gpu_held
    mean /= 3.0
    held -= mean[:, None]
    held *= held
    gpu_held -= mean
    gpu_held *= gpu_held
    score = cpu + memory
    score += gpu_held
    score /= 3.0
    np.sqrt(score, out=score)
    np.subtract(1.0, score, out=score)
    score *= 100.0
    return np.floor(score, out=score)


def _balance_of_some(share: F64, has: Bool) -> F64:
    """⌊(1 - σ) · 100⌋ over the dimensions that a node has: half the distance of two, else the standard deviation.

    Dimensions that it has not are 0 in ``share``. Sums run from left to right, as they do in the source.
    """
    count = has.sum(axis=1).astype(np.float64)
    total = np.zeros(len(share))
    for d in range(share.shape[1]):
        total += share[:, d]
    mean = total / np.maximum(count, 1.0)
    squares = np.zeros(len(share))
    for d in range(share.shape[1]):
        apart = (share[:, d] - mean) * has[:, d]
        squares += apart * apart
    sigma = np.sqrt(squares / np.maximum(count, 1.0))
    low = np.where(has, share, np.inf).min(axis=1)
    half = (share.max(axis=1) - np.where(np.isinf(low), 0.0, low)) / 2.0
    sigma = np.where(count == 2.0, half, np.where(count < 2.0, 0.0, sigma))
    return np.asarray(np.floor((1.0 - sigma) * 100.0))
