"""Score nodes for pods that ask for GPUs or parts of them: the baselines of the fragmentation study, as arrays.

Scores are whole numbers from 0 to 100, as a plugin of kube-scheduler returns them. Ties are therefore frequent and the
tie-break matters. A pod must fit on the nodes that are scored. Source: Weng et al., USENIX ATC'23, section 6; Tetris
(dot product), Gandiva (clustering). Shape letters as in ``fragments``.
"""

from __future__ import annotations

import numpy as np

from pumice.ours.fragments import F64, WHOLE, Ask, Bool, Room

#: Units: milli-cores and milli-devices of the largest machine of the study; amounts are divided by them.
CORES_MOST, GPUS_MOST = 128_000.0, 8_000.0


def dot_product(room: Room, ask: Ask) -> F64:
    """Return a score that is low if a node has much of what the pod asks for. Shape (n,)."""
    cores = room.milli_cpu / CORES_MOST * (ask.milli_cpu / CORES_MOST)
    gpus = room.gpus.sum(axis=1) / GPUS_MOST * (ask.devices * ask.milli / GPUS_MOST)
    found: F64 = np.floor(100.0 * (1.0 - (cores + gpus) / 2.0))
    return found


def best_fit(room: Room, ask: Ask) -> F64:
    """Return a score that is high if little is left on the node after the placement. Shape (n,)."""
    cores = (room.milli_cpu - ask.milli_cpu) / CORES_MOST
    gpus = (room.gpus.sum(axis=1) - ask.devices * ask.milli) / GPUS_MOST
    found: F64 = np.floor(100.0 * (1.0 - (cores + gpus) / 2.0))
    return found


def clustering(room: Room, ask: Ask, kinds: F64, own: int) -> F64:
    """Return a score that puts a pod beside pods of its own kind.

    Nodes rank as follows: only pods of this kind, this and other kinds, empty nodes, only other kinds. Within a rank,
    less free capacity scores higher. ``kinds`` (n, K) counts the pods of each kind, ``own`` is the kind of the pod.
    Shape (n,).
    """
    if not ask.devices:
        return np.zeros(len(kinds))
    there = kinds > 0
    variety, has = there.sum(axis=1), there[:, own]
    beside = np.where(has, np.where(variety == 1, 75.0, 50.0), np.where(variety == 0, 25.0, 0.0))
    return np.asarray(np.floor(25.0 * (GPUS_MOST - room.gpus.sum(axis=1)) / GPUS_MOST) + beside)


def packing(room: Room, ask: Ask, devices: F64) -> F64:
    """Return a score that prefers GPUs in use, then whole GPUs on nodes in use, then empty nodes.

    ``devices`` (n,) is the number of GPUs of each node. Shape (n,).
    """
    if not ask.devices:
        return np.zeros(len(devices))
    free = np.sort(room.gpus, axis=1)
    whole = (free == WHOLE).sum(axis=1)
    fits = free >= ask.milli
    taken: Bool = fits & (fits.cumsum(axis=1) <= ask.devices)
    fresh = (taken & (free == WHOLE)).sum(axis=1)
    # Three bands that do not overlap keep the preference: at least 50 on GPUs in use, 33 to 50 on nodes in use, at
    # most 33 on empty nodes. Both roundings are the study's.
    in_parts = np.maximum(100.0 - np.floor(np.floor(taken * free / 10.0).sum(axis=1) / 10.0), 50.0)
    in_use = np.where(fresh > 0, np.maximum(50.0 - fresh, 33.0), in_parts)
    found: F64 = np.where(whole == devices, np.maximum(33.0 - whole, whole), in_use)
    return found


def descent(gradient: F64) -> F64:
    """Turn a gradient of the fragment, in milli-devices, into a score from 0 to 100. Source: the study."""
    found: F64 = np.floor(100.0 / (1.0 + np.exp(-gradient / WHOLE)))
    return found
