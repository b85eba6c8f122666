"""Read the free capacity of each GPU of each node, whole and shared, for policies that choose devices."""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import CPU, EPS, F64, I64
from pumice.columns.gpus.devices import SLOTS_MAX
from pumice.columns.rows import NodeRows
from pumice.columns.views import TaskClass
from pumice.framework.cycle.session import Session
from pumice.kai.amounts import gpu_column
from pumice.ours.fragments import WHOLE, Ask, Room
from pumice.placing.derived import derived

#: Node label with the GPU model, set by NVIDIA GPU feature discovery.
MODEL_LABEL = "nvidia.com/gpu.product"


class FreeGpus:
    """GPUs of all nodes, with the model of each node.

    ``devices`` (N,) is the number of GPUs of a node. ``models`` (N,) indexes ``model_names``; nodes without the label
    share the empty name. ``first_of_models`` holds one node of each model. ``most`` (G) is the largest number of GPUs
    of a node, up to the number of device slots.
    """

    __slots__ = ("_column", "_ledger", "_ssn", "devices", "first_of_models", "model_names", "models", "most")

    def __init__(self, ssn: Session) -> None:
        facts, column = ssn.tables.nodes.facts, gpu_column(ssn.tables)
        self._ssn, self._column, self._ledger = ssn, column, ssn.ledger.devices
        has = facts.allocatable[:, column] if column >= 0 else np.zeros(len(facts))
        self.devices: F64 = np.floor(has / WHOLE + EPS)
        self.most = min(int(self.devices.max(initial=0.0)), SLOTS_MAX)
        label = derived(ssn).label(MODEL_LABEL)
        named = np.array([*label.values, ""])[label.codes]
        names, first, self.models = np.unique(named, return_index=True, return_inverse=True)
        self.first_of_models: I64 = first
        self.model_names: list[str] = names.tolist()

    def room(self, nodes: NodeRows) -> Room:
        """Return the capacity that is free or being released. GPUs with most free capacity come first.
        Shape (rows, …)."""
        cores = np.maximum(nodes.soon_free(CPU), 0.0)
        # The memo knows nodes as they are; in a what-if, the rows hold assumed values and are computed directly.
        gpus = self._gpus(nodes) if nodes.are_hypothetical else self._by_row()[nodes.rows]
        return Room(cores, gpus, nodes.pick(self.models))

    def in_use(self) -> F64:
        """Return the share of GPU capacity in use per model, 0 to 1; 0 for a model without GPUs. Shape (models,)."""
        count = len(self.first_of_models)
        free = np.bincount(self.models, self._by_row().sum(axis=1), count)
        has = np.bincount(self.models, WHOLE * self.devices, count)
        return np.asarray(1.0 - np.divide(free, has, out=np.ones(count), where=has > 0))

    def _by_row(self) -> F64:
        """Return the free capacity of all nodes; only rows that changed since the last call are recomputed.
        Shape (N, G)."""
        tables = self._ssn.tables
        assert tables.nodes.stamps is not None
        rests_on = (tables.nodes.facts.version,)
        return self._ssn.memo.by_row(
            "free gpus", rests_on, tables.nodes.stamps, lambda rows: self._gpus(NodeRows(tables, rows))
        )

    def _gpus(self, nodes: NodeRows) -> F64:
        """Return the free capacity per device, in milli-devices. Shape (rows, G)."""
        whole = nodes.soon_free(self._column) if self._column >= 0 else np.zeros(len(nodes))
        gpus = np.where(np.arange(self.most) < np.floor(whole / WHOLE + EPS)[:, None], WHOLE, 0.0)
        if self._ledger is not None:
            # The device ledger holds GPUs that are shared; whole GPUs are a node resource. Both go into one array. The
            # sort moves columns without a device to the end, where they are cut off.
            parts = np.concatenate((gpus, self._ledger.free(nodes.rows)), axis=1)
            gpus = -np.sort(-parts, axis=1)[:, : self.most]
        return gpus


def ask_of(cls: TaskClass) -> Ask:
    """Return the GPU request of a task class."""
    column, share = gpu_column(cls.tables), cls.spec.gpu_share
    cores = float(cls.req[CPU])
    if share is not None and share.fraction > 0 and share.devices == 1:
        return Ask(cores, 1, float(np.rint(WHOLE * share.fraction)))
    # A request for GPU memory is a different part of a device on each model. Since nodes of all models are compared,
    # it counts as a whole device.
    whole = float(cls.req[column]) / WHOLE if column >= 0 else 0.0
    count = int(whole) + (share.devices if share is not None and (share.fraction or share.memory_mib) else 0)
    return Ask(cores, count, WHOLE if count else 0.0)
