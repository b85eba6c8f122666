"""What is free of each GPU of each node, whole ones and parts, as policies that place by it want to see it."""

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

#: How nodes say which model their GPUs are, as NVIDIA's feature discovery labels them.
MODEL_LABEL = "nvidia.com/gpu.product"


class FreeGpus:
    """``devices`` (N,): how many GPUs nodes have. ``models`` (N,): the number of their model, one for all
    nodes that name none; ``model_names``: what these are called, in order; ``first_of_models``: a node of each.
    ``most``: as many as a node has at most, of those that are looked at (G)."""

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
        """What is free, or will be when those that leave have left. GPUs with most free come first. Shape (rows, …)."""
        cores = np.maximum(nodes.soon_free(CPU), 0.0)
        gpus = self._gpus(nodes) if nodes.are_hypothetical else self._known()[nodes.rows]
        return Room(cores, gpus, nodes.pick(self.models))

    def in_use(self) -> F64:
        """How much of the GPUs of each model is in use, from 0 to 1; 0 where there are none. Shape (models,)."""
        count = len(self.first_of_models)
        free = np.bincount(self.models, self._known().sum(axis=1), count)
        has = np.bincount(self.models, WHOLE * self.devices, count)
        return np.asarray(1.0 - np.divide(free, has, out=np.ones(count), where=has > 0))

    def _known(self) -> F64:
        """Of all nodes as they are: made anew for those alone that changed since somebody asked. Shape (N, G)."""
        tables = self._ssn.tables
        assert tables.nodes.stamps is not None
        rests_on = (tables.nodes.facts.version,)
        return self._ssn.memo.by_row(
            "free gpus", rests_on, tables.nodes.stamps, lambda rows: self._gpus(NodeRows(tables, rows))
        )

    def _gpus(self, nodes: NodeRows) -> F64:
        whole = nodes.soon_free(self._column) if self._column >= 0 else np.zeros(len(nodes))
        gpus = np.where(np.arange(self.most) < np.floor(whole / WHOLE + EPS)[:, None], WHOLE, 0.0)
        if self._ledger is not None:
            parts = np.concatenate((gpus, self._ledger.free(nodes.rows)), axis=1)
            gpus = -np.sort(-parts, axis=1)[:, : self.most]
        return gpus


def ask_of(cls: TaskClass) -> Ask:
    """What a class asks for. Memory of a GPU, of which nodes have different amounts, counts as a whole one."""
    column, share = gpu_column(cls.tables), cls.spec.gpu_share
    cores = float(cls.req[CPU])
    if share is not None and share.fraction > 0 and share.devices == 1:
        return Ask(cores, 1, float(np.rint(WHOLE * share.fraction)))
    whole = float(cls.req[column]) / WHOLE if column >= 0 else 0.0
    count = int(whole) + (share.devices if share is not None and (share.fraction or share.memory_mib) else 0)
    return Ask(cores, count, WHOLE if count else 0.0)
