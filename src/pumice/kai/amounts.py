"""What queues share by quota: cpu, memory and GPUs, as rows of three."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pumice.columns.dtypes import CPU, F64, I64, MEMORY, read_only
from pumice.columns.tables import Tables
from pumice.columns.views import TaskClass
from pumice.model.devices.gpu import GPU_RESOURCE


def gpu_column(tables: Tables) -> int:
    """Where GPUs are on the axis of resources, -1 where nobody has any."""
    return tables.axis.column.get(GPU_RESOURCE, -1)


def asks_for_gpus(cls: TaskClass, gpu: int) -> bool:
    """Whether tasks of a class ask for GPUs, or for parts of some."""
    share = cls.spec.gpu_share
    return bool(cls.req[gpu] > 0) or (share is not None and (share.fraction > 0 or share.memory_mib > 0))


@lru_cache(maxsize=64)
def _columns(gpu: int) -> I64:
    return read_only(np.array((CPU, MEMORY, gpu)))


def shared_by_one(tables: Tables, amount: F64) -> tuple[float, float, float]:
    """The same of one amount (R,), as numbers."""
    gpu = gpu_column(tables)
    listed = amount.tolist()
    return listed[CPU], listed[MEMORY], listed[gpu] if gpu >= 0 else 0.0


def shared(tables: Tables, amounts: F64) -> F64:
    """Milli-cores, bytes and milli-devices of some amounts. Shapes (…, R) -> (…, 3)."""
    gpu = gpu_column(tables)
    found: F64 = amounts.take(_columns(gpu), axis=-1)
    if gpu < 0:
        found[..., 2] = 0.0
    return found
