"""Tasks (pods) as columns."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from pumice.columns.dtypes import F64, I8, I32, I64, Bool
from pumice.columns.growth import Growing
from pumice.model.pod import Pod

#: Values of ``TaskTable.gate``.
NO_GATE, QUEUE_GATE_ONLY, GATED = 0, 1, 2


class TaskTable(Growing):
    """T rows; a row stays where it is for the life of its pod.

    Fixed between sessions: ``job``, ``sub``, ``cls``, ``role`` (a number per role name), ``priority``, ``creation``,
    ``gate``, ``best_effort``, ``preemptable``. Moving: ``status``, ``node`` (-1 none), ``view_node`` (the node in
    kube-scheduler's view), ``nominated`` (the node it waits for, -1 none), ``evicted_for`` (its pipelining evicted
    somebody), ``job_hypernode``. ``last_status``, ``last_node``, ``last_evicted`` remember the transaction that was
    discarded last (-1 none); they are notes, not state: a rollback leaves them, which is how a message can say where a
    task would have gone.
    """

    NUMBERS: ClassVar[dict[str, tuple[Any, Any]]] = {
        "job": (np.int32, -1),
        "sub": (np.int32, -1),
        "cls": (np.int32, -1),
        "role": (np.int32, 0),
        "priority": (np.int64, 0),
        "creation": (np.float64, 0.0),
        "gate": (np.int8, NO_GATE),
        "best_effort": (np.bool_, False),
        "preemptable": (np.bool_, True),
        "nominated": (np.int32, -1),
        "status": (np.int8, -1),
        "node": (np.int32, -1),
        "view_node": (np.int32, -1),
        "evicted_for": (np.bool_, False),
        "job_hypernode": (np.int32, -1),
        "last_status": (np.int8, -1),
        "last_node": (np.int32, -1),
        "last_evicted": (np.bool_, False),
    }
    MOVING = (
        "status",
        "node",
        "view_node",
        "nominated",
        "evicted_for",
        "job_hypernode",
        "last_status",
        "last_node",
        "last_evicted",
    )
    OBJECTS = ("pods",)

    job: I32
    sub: I32
    cls: I32
    role: I32
    priority: I64
    creation: F64
    gate: I8
    best_effort: Bool
    preemptable: Bool
    nominated: I32
    status: I8
    node: I32
    view_node: I32
    evicted_for: Bool
    job_hypernode: I32
    last_status: I8
    last_node: I32
    last_evicted: Bool
    pods: list[Pod]
