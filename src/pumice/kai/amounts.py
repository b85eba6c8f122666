"""Select the resources that queues share by quota, as rows of three: CPU, memory, GPUs."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pumice.columns.dtypes import CPU, F64, I64, MEMORY, read_only
from pumice.columns.tables import Tables
from pumice.columns.views import TaskClass
from pumice.model.devices.gpu import GPU_RESOURCE


def gpu_column(tables: Tables) -> int:
    """Return the column of GPUs on the resource axis, or -1 if the snapshot has none."""
    return tables.axis.column.get(GPU_RESOURCE, -1)


def asks_for_gpus(cls: TaskClass, gpu: int) -> bool:
    """Return True if tasks of a class ask for GPUs or parts of GPUs."""
    share = cls.spec.gpu_share
    return bool(cls.req[gpu] > 0) or (share is not None and (share.fraction > 0 or share.memory_mib > 0))


@lru_cache(maxsize=64)
def _columns(gpu: int) -> I64:
    return read_only(np.array((CPU, MEMORY, gpu)))


def shared_by_one(tables: Tables, amount: F64) -> tuple[float, float, float]:
    """Return milli-cores, bytes and milli-devices of one amount (R,) as floats."""
    # For one row, floats are faster than NumPy; queue comparisons call this often.
    gpu = gpu_column(tables)
    listed = amount.tolist()
    return listed[CPU], listed[MEMORY], listed[gpu] if gpu >= 0 else 0.0


def shared(tables: Tables, amounts: F64) -> F64:
    """Return milli-cores, bytes and milli-devices of amounts. Shapes (…, R) -> (…, 3)."""
    gpu = gpu_column(tables)
    found: F64 = amounts.take(_columns(gpu), axis=-1)
    # Column -1 is another resource, so what was taken from it is overwritten.
    if gpu < 0:
        found[..., 2] = 0.0
    return found
