"""How much of what is free of GPUs a typical pod could not use, and what a placement does to that.

A node's fragment for a pod is all that is free of its GPUs where the pod does not fit, and where it does what is free
of the GPUs that are too full for it. The node's fragment is the mean over typical pods. Source: fragmentation gradient
descent, Weng et al., USENIX ATC'23, section 4; the arrays are ours.

Free GPUs are milli-devices, one column each, in any order; a node with fewer has zeros. Shape letters: n rows, G
devices, P kinds of requests, M models.
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
    """What is free on nodes: ``milli_cpu`` (n,), ``gpus`` (n, G); ``model`` (n,) is the number of their GPUs' model."""

    milli_cpu: F64
    gpus: F64
    model: Ints

    def part(self, rows: Bool) -> Room:
        """Some of the nodes."""
        return Room(self.milli_cpu[rows], self.gpus[rows], self.model[rows])


class Ask(NamedTuple):
    """A pod's request: ``devices`` GPUs, ``milli`` of each; below 1000 it is a part of one device."""

    milli_cpu: float
    devices: int
    milli: float


class Shape(NamedTuple):
    """Equal pods: what they ask for, on which models (M,) they may run, and how many there are."""

    ask: Ask
    models: tuple[bool, ...]
    pods: float


def merged(shapes: Iterable[Shape]) -> list[Shape]:
    """One shape for all that ask for the same on the same models."""
    pods: dict[tuple[Ask, tuple[bool, ...]], float] = {}
    for each in shapes:
        pods[each.ask, each.models] = pods.get((each.ask, each.models), 0.0) + each.pods
    return [Shape(ask, models, count) for (ask, models), count in pods.items()]


def _rank(shape: Shape) -> tuple[Any, ...]:
    """How common; of equals larger requests, then those that may run on less, come first. Source: the study."""
    ask = shape.ask
    return shape.pods, ask.milli_cpu, ask.milli, ask.devices, tuple(not each for each in shape.models)


class Typical:
    """The commonest shapes, as many as make up ``part`` of all pods, those without GPUs too: for them whatever is free
    of GPUs is a fragment. Pods that differ in nothing that is said here (in their memory, say) are of one shape.

    ``counts``, ``millis`` (P,): kinds of requests for GPUs. ``_weights`` (M, K + 1, P): the part of typical pods of a
    kind that a model, and so many of the cores they ask for (sorted, K of them), are enough for.
    """

    __slots__ = ("_cores", "_weights", "counts", "millis")

    def __init__(self, shapes: Sequence[Shape], models: int, part: float = 0.95) -> None:
        ordered = sorted(merged(shapes), key=_rank)
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
            self._weights[mask, cores.index(each.ask.milli_cpu) + 1 :, kind] += each.pods / pods

    def usable(self, room: Room) -> F64:
        """What typical pods could use of what is free, in milli-devices. Shape (n,)."""
        enough = room.gpus[:, :, None] >= self.millis
        return self._weighed(room, enough.sum(axis=1), (room.gpus[:, :, None] * enough).sum(axis=1))

    def fragment(self, room: Room) -> F64:
        """What they could not. Shape (n,)."""
        return np.asarray(room.gpus.sum(axis=1) - self.usable(room))

    def gradient(self, room: Room, ask: Ask) -> F64:
        """How much less a fragment is on each node after the pod came, in milli-devices; by device for a pod that asks
        for a part of one, -inf where that has no room. The pod fits on the nodes. Shape (n, G), or (n, 1)."""
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
        still = left[:, :, None] >= self.millis
        counts = counts[:, None, :] - enough + still
        sums = sums[:, None, :] - gpus[:, :, None] * enough + left[:, :, None] * still
        found = taken + self._weighed(later, counts, sums) - before[:, None]
        return np.where(left >= 0, found, -np.inf)

    def _weighed(self, room: Room, counts: Ints, sums: F64) -> F64:
        """``counts`` of devices that are enough for each kind, and what is free of them. Shape (n, …, P) -> (n, …)."""
        weights = self._weights[room.model, np.searchsorted(self._cores, room.milli_cpu, side="right")]
        if counts.ndim > weights.ndim:
            weights = weights[:, None, :]
        return np.asarray((weights * (counts >= self.counts) * sums).sum(axis=-1))
