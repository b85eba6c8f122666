"""GPUs that pods claim, as quotas count them. Source: KAI, where a claim of GPUs counts its devices for each pod."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pumice.columns.dtypes import F64
from pumice.columns.tables import Tables
from pumice.model.devices.claims import ResourceClaim
from pumice.model.devices.gpu import is_gpu
from pumice.model.pod import Pod

_MILLI = 1000.0
#: More than any node has: what counts no further.
_COUNT_MAX = 10**6


def claimed_gpus(tables: Tables, rows: Sequence[int]) -> F64:
    """Milli-devices that each of some tasks claims. Shape (rows,)."""
    found = np.zeros(len(rows))
    if len(tables.claims):
        classes, tasks = tables.classes, tables.tasks
        for i, row in enumerate(rows):
            if classes.specs[tasks.cls[row]].resource_claims:
                found[i] = _MILLI * sum(_gpus(claim) for claim in _claims_of(tables, tasks.pods[row]))
    return found


def _claims_of(tables: Tables, pod: Pod) -> list[ResourceClaim]:
    """By the names that its spec has: a template stands for what is made from it."""
    known = tables.claims.by_key
    keys = (f"{pod.namespace}/{name}" for name in pod.spec.resource_claims)
    return [known[key] for key in keys if key in known]


def _gpus(claim: ResourceClaim) -> int:
    return min(sum(count for of_class, count in claim.devices if is_gpu(of_class)), _COUNT_MAX)


def offered_gpus(tables: Tables) -> float:
    """Milli-devices of GPUs that slices offer."""
    return _MILLI * sum(len(each.devices) for each in tables.slices.objs if is_gpu(each.driver))
