"""Measure GPU fragmentation: free capacity that typical pods cannot use, and how a placement changes it.

If a pod does not fit on a node, all of the node's free GPU capacity is a fragment for that pod. If it fits, the
fragment is the free capacity of the GPUs that are too full for it. The fragment of a node is the mean over the typical
pods. Source: fragmentation gradient descent, Weng et al., USENIX ATC'23, section 4. The formulation as arrays is ours.

Units: free GPUs in milli-devices, one column per device, in any order; a node with fewer devices has zeros in the last
columns. Shape letters: n nodes, G devices, P kinds of requests, M models.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]
Bool = npt.NDArray[np.bool_]

WHOLE = 1000.0


class Room(NamedTuple):
    """Free resources of nodes: ``milli_cpu`` (n,) and ``gpus`` (n, G). ``model`` (n,) is the index of the GPU model."""

    milli_cpu: F64
    gpus: F64
    model: Ints

    def part(self, rows: Bool) -> Room:
        """Return the room of the nodes that a mask selects."""
        return Room(self.milli_cpu[rows], self.gpus[rows], self.model[rows])


class Ask(NamedTuple):
    """Request of a pod: ``devices`` GPUs and ``milli`` of each. A ``milli`` below 1000 is a part of one device."""

    milli_cpu: float
    devices: int
    milli: float


class Shape(NamedTuple):
    """A group of equal pods: their request, the models (M,) on which they may run, and their number."""

    ask: Ask
    models: tuple[bool, ...]
    pods: float


def merged(shapes: Iterable[Shape]) -> list[Shape]:
    """Merge shapes with equal requests and models into one, and add up their pods."""
    pods: dict[tuple[Ask, tuple[bool, ...]], float] = {}
    for each in shapes:
        pods[each.ask, each.models] = pods.get((each.ask, each.models), 0.0) + each.pods
    return [Shape(ask, models, count) for (ask, models), count in pods.items()]


def _rank(shape: Shape) -> tuple[Any, ...]:
    """Return the sort key of a shape by how common it is. Among equals, larger requests rank higher, then shapes that
    may run on fewer models. Source: the study."""
    ask = shape.ask
    return shape.pods, ask.milli_cpu, ask.milli, ask.devices, tuple(not each for each in shape.models)


class Typical:
    """The most common shapes, as many as cover ``part`` of all pods.

    ``counts`` and ``millis`` (P,) are the distinct requests for GPUs. ``_weights`` (M, K + 1, P) holds the share of
    typical pods of each request that may run on a model and need no more cores than the k-th of K sorted requests.
    """

    __slots__ = ("_cores", "_weights", "counts", "millis")

    def __init__(self, shapes: Sequence[Shape], models: int, part: float = 0.95) -> None:
        ordered = sorted(merged(shapes), key=_rank)
        # Pods without GPUs count as typical too: for them, all free GPU capacity is a fragment.
        total, pods, taken = sum(each.pods for each in shapes), 0.0, []
        while ordered and pods < part * total:
            taken.append(ordered.pop())
            pods += taken[-1].pods
        asking = [each for each in taken if each.ask.devices]
        kinds = sorted({each.ask[1:] for each in asking})
        cores = sorted({each.ask.milli_cpu for each in asking})
        self.counts: F64 = np.array([count for count, _ in kinds], dtype=np.float64)
        self.millis: F64 = np.array([milli for _, milli in kinds], dtype=np.float64)
        self._cores: F64 = np.array(cores, dtype=np.float64)
        self._weights: F64 = np.zeros((models, len(cores) + 1, len(kinds)))
        for each in asking:
            mask, kind = np.array(each.models, dtype=bool), kinds.index(each.ask[1:])
            # Column 0 is for nodes with fewer free cores than any typical pod asks for, hence the offset of 1. A node
            # with more cores also serves all smaller requests, hence the open slice.
            self._weights[mask, cores.index(each.ask.milli_cpu) + 1 :, kind] += each.pods / pods

    def usable(self, room: Room) -> F64:
        """Return the free capacity that typical pods can use, in milli-devices. Shape (n,)."""
        enough = room.gpus[:, :, None] >= self.millis
        return self._weighed(room, enough.sum(axis=1), (room.gpus[:, :, None] * enough).sum(axis=1))

    def fragment(self, room: Room) -> F64:
        """Return the free capacity that typical pods cannot use, in milli-devices. Shape (n,)."""
        return np.asarray(room.gpus.sum(axis=1) - self.usable(room))

    def gradient(self, room: Room, ask: Ask) -> F64:
        """Return by how much a placement reduces the fragment of each node, in milli-devices.

        For a pod that asks for a part of one device, the answer is per device, with -inf for devices without room. The
        pod must fit on the nodes. Shape (n, G), or (n, 1).
        """
        gpus = room.gpus
        enough = gpus[:, :, None] >= self.millis
        counts, sums = enough.sum(axis=1), (gpus[:, :, None] * enough).sum(axis=1)
        before = self._weighed(room, counts, sums)
        later = room._replace(milli_cpu=room.milli_cpu - ask.milli_cpu)
        taken = ask.devices * ask.milli
        if not ask.devices or ask.milli >= WHOLE:
            after = self._weighed(later, counts - ask.devices, sums - taken)
            return np.asarray((taken + after - before)[:, None])
        left = gpus - ask.milli
        # The pod lands on one device, so only that device's term of each sum changes. Correcting the sums takes G
        # columns instead of recomputing G² of them.
        still = left[:, :, None] >= self.millis
        counts = counts[:, None, :] - enough + still
        sums = sums[:, None, :] - gpus[:, :, None] * enough + left[:, :, None] * still
        found = taken + self._weighed(later, counts, sums) - before[:, None]
        return np.where(left >= 0, found, -np.inf)

    def _weighed(self, room: Room, counts: Ints, sums: F64) -> F64:
        """Return the weighted free capacity, given per request the ``counts`` of sufficient devices and the ``sums``
        of what is free on them. Shape (n, …, P) -> (n, …)."""
        weights = self._weights[room.model, np.searchsorted(self._cores, room.milli_cpu, side="right")]
        if counts.ndim > weights.ndim:
            weights = weights[:, None, :]
        return np.asarray((weights * (counts >= self.counts) * sums).sum(axis=-1))
