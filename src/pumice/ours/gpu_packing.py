"""Where to put a pod that asks for GPUs or parts of them: the baselines of the fragmentation study, as arrays.

Scores are whole numbers from 0 to 100, as a scheduler plugin gives them, so ties are many and who breaks them matters.
A pod fits on the nodes that are asked about. Source: Weng et al., USENIX ATC'23, section 6; Tetris (dot product),
Gandiva (clustering). Shape letters as in ``fragments``.
"""

from __future__ import annotations

import numpy as np

from pumice.ours.fragments import F64, WHOLE, Ask, Bool, Room

#: What amounts are measured by: cores and GPUs of the largest machine of the study.
CORES_MOST, GPUS_MOST = 128_000.0, 8_000.0


def dot_product(room: Room, ask: Ask) -> F64:
    """Small where much is free of what is asked for. Shape (n,)."""
    cores = room.milli_cpu / CORES_MOST * (ask.milli_cpu / CORES_MOST)
    gpus = room.gpus.sum(axis=1) / GPUS_MOST * (ask.devices * ask.milli / GPUS_MOST)
    found: F64 = np.floor(100.0 * (1.0 - (cores + gpus) / 2.0))
    return found


def best_fit(room: Room, ask: Ask) -> F64:
    """Large where little is left. Shape (n,)."""
    cores = (room.milli_cpu - ask.milli_cpu) / CORES_MOST
    gpus = (room.gpus.sum(axis=1) - ask.devices * ask.milli) / GPUS_MOST
    found: F64 = np.floor(100.0 * (1.0 - (cores + gpus) / 2.0))
    return found


def clustering(room: Room, ask: Ask, kinds: F64, own: int) -> F64:
    """Beside pods of its kind: only those, those and others, nobody, others; then where less is free. ``kinds`` (n, K):
    pods of each kind there; ``own``: the pod's. Shape (n,)."""
    if not ask.devices:
        return np.zeros(len(kinds))
    there = kinds > 0
    variety, has = there.sum(axis=1), there[:, own]
    beside = np.where(has, np.where(variety == 1, 75.0, 50.0), np.where(variety == 0, 25.0, 0.0))
    return np.asarray(np.floor(25.0 * (GPUS_MOST - room.gpus.sum(axis=1)) / GPUS_MOST) + beside)


def packing(room: Room, ask: Ask, devices: F64) -> F64:
    """On GPUs in use, then on whole ones of nodes in use, then on empty nodes. ``devices`` (n,): how many nodes have.
    Shape (n,)."""
    if not ask.devices:
        return np.zeros(len(devices))
    free = np.sort(room.gpus, axis=1)
    whole = (free == WHOLE).sum(axis=1)
    fits = free >= ask.milli
    taken: Bool = fits & (fits.cumsum(axis=1) <= ask.devices)
    fresh = (taken & (free == WHOLE)).sum(axis=1)
    in_parts = np.maximum(100.0 - np.floor(np.floor(taken * free / 10.0).sum(axis=1) / 10.0), 50.0)
    in_use = np.where(fresh > 0, np.maximum(50.0 - fresh, 33.0), in_parts)
    found: F64 = np.where(whole == devices, np.maximum(33.0 - whole, whole), in_use)
    return found


def descent(gradient: F64) -> F64:
    """A gradient of the fragment, in milli-devices, as a score. Source: the study."""
    found: F64 = np.floor(100.0 / (1.0 + np.exp(-gradient / WHOLE)))
    return found
