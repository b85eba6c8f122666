"""GPUs that pods request through resource claims, as quotas count them.

Source: KAI, where the devices of a claim count for each pod that uses it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pumice.columns.dtypes import F64
from pumice.columns.tables import Tables
from pumice.model.devices.claims import ResourceClaim, ResourceSlice, slices_that_count
from pumice.model.devices.gpu import GPU_RESOURCE, is_gpu
from pumice.model.pod import Pod

_MILLI = 1000.0
#: The most devices that are counted. More than any node has, so a claim with a larger number fits nowhere anyway, and
#: sums stay exact.
_COUNT_MAX = 10**6


def claimed_gpus(tables: Tables, rows: Sequence[int]) -> F64:
    """Return the milli-devices that each task claims. Shape (rows,)."""
    found = np.zeros(len(rows))
    # Most clusters have no claims, and the loop over tasks is skipped.
    if len(tables.claims):
        classes, tasks = tables.classes, tables.tasks
        # Pods of a class in a namespace name the same claims and templates.
        known: dict[tuple[int, str], float] = {}
        for i, row in enumerate(rows):
            cls = int(tasks.cls[row])
            if classes.claims[cls]:
                pod = tasks.pods[row]
                key = cls, pod.namespace
                if key not in known:
                    known[key] = _MILLI * sum(map(_gpus, _claims_of(tables, pod)))
                found[i] = known[key]
    return found


def _claims_of(tables: Tables, pod: Pod) -> list[ResourceClaim]:
    """Return the claims that a pod names. For a template that is the template's own claim (see ``ClaimTable``)."""
    by_key = tables.claims.by_key
    keys = (f"{pod.namespace}/{name}" for name in pod.spec.resource_claims)
    return [by_key[key] for key in keys if key in by_key]


def _gpus(claim: ResourceClaim) -> int:
    return min(sum(count for of_class, count in claim.devices if is_gpu(of_class)), _COUNT_MAX)


def offered_gpus(tables: Tables) -> float:
    """Return the milli-devices of GPUs that can be claimed and that no node counts as an amount of its own.

    Partitions count as the GPUs that they are partitions of, and a GPU that is shared counts once.
    """
    facts = tables.nodes.facts
    gpu = facts.axis.column.get(GPU_RESOURCE, -1)
    counted = {facts.names[row] for row in np.flatnonzero(facts.by_devices[:, gpu])} if gpu >= 0 else set()
    slices = slices_that_count(each for each in tables.slices.objs if is_gpu(each.driver))
    return _MILLI * _whole_gpus([each for each in slices if each.node_name not in counted])


def _whole_gpus(slices: Sequence[ResourceSlice]) -> int:
    whole, partitioned = 0, set[tuple[str, str, str]]()
    for each in slices:
        whole += sum(not device.consumes for device in each.devices)
        # A driver has a set of counters for each GPU that it partitions, and the GPU as a whole consumes it too.
        uses = (use for device in each.devices for use in device.consumes)
        partitioned.update((each.driver, each.pool, use.counter_set) for use in uses)
    return whole + len(partitioned)
