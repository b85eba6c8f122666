"""Count GPUs as the search for victims compares them, in milli-GPUs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pumice.columns.dtypes import F64
from pumice.columns.nodes import IDLE, PIPELINED
from pumice.columns.nodes import RELEASING as LEAVING
from pumice.framework.cycle.session import Session
from pumice.kai.engine.parts import amount_of
from pumice.model.devices.gpu import GPU_RESOURCE


def gpus_of(ssn: Session, row: int) -> float:
    """Return the GPUs of a task as quotas count them. Milli-GPUs."""
    gpu = ssn.tables.axis.column.get(GPU_RESOURCE, -1)
    return float(amount_of(ssn.tables, [row])[gpu]) if gpu >= 0 else 0.0


def gpus_of_each(ssn: Session, rows: Sequence[int]) -> F64:
    """Return the GPUs of several tasks as quotas count them. Milli-GPUs, (rows,)."""
    tables = ssn.tables
    classes, gpu = tables.tasks.cls[list(rows)], tables.axis.column.get(GPU_RESOURCE, -1)
    # Claims and requests for GPU memory depend on more than the class.
    if gpu < 0 or len(tables.claims) or tables.classes.share_mib[classes].any():
        return np.array([gpus_of(ssn, row) for row in rows], dtype=np.float64)
    return np.asarray(tables.classes.charge[classes, gpu], dtype=np.float64)


def free_gpus(ssn: Session) -> F64:
    """Return the GPUs of each node that are idle or will be, parts of shared ones included. Milli-GPUs, (N,)."""
    gpu = ssn.tables.axis.column.get(GPU_RESOURCE, -1)
    books = ssn.tables.nodes.books
    if gpu < 0:
        return books[:, IDLE, 0] * 0.0
    # What is promised to others of what leaves is subtracted, because it will not be free.
    found: F64 = books[:, IDLE, gpu] + books[:, LEAVING, gpu] - books[:, PIPELINED, gpu]
    return found if ssn.ledger.devices is None else found + ssn.ledger.devices.free().sum(axis=1)
