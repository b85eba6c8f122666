"""How many pods with a part of a GPU each node has devices for, after the cycle."""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.columns.gpus.devices import memory_of
from pumice.model.blockers import NoPart
from pumice.model.devices.gpu import GPU_RESOURCE, GpuShare
from pumice.reasons.view import View

_EPS = 1e-6


class GpuParts:
    """The room for pods that ask for a ``share`` of GPUs. ``pods`` (N,): how many more of them each node takes, each
    for itself. Source of what devices have left: KAI's ledger, as ``node.gpu_parts`` (N, S) in thousandths."""

    def __init__(self, view: View, share: GpuShare) -> None:
        self._view, self._share = view, share
        count, gpu = len(view.facts), view.axis.column.get(GPU_RESOURCE)
        in_use = view.outcome.figures.get("node.gpu_parts", np.zeros((count, 0)))
        whole = np.zeros(count) if gpu is None else np.floor(view.future[:, gpu] / 1000.0 + _EPS).clip(min=0)
        self._part = self._part_of_each(share)
        joined = np.floor(in_use / 1000.0 / self._part[:, None] + _EPS)
        #: On how many devices the part is free. Shape (N,).
        self._devices: AnyArray = (np.count_nonzero(joined, axis=1) + whole).astype(np.int64)
        pods = joined.sum(axis=1) + whole * np.floor(1.0 / self._part + _EPS)
        # Pods with parts of several devices each may share them in many ways; as many as need none together surely fit.
        each = pods if share.devices == 1 else self._devices // share.devices
        self.pods: AnyArray = np.where(self._part > 1.0 + _EPS, 0, each).astype(np.int64)

    def _part_of_each(self, share: GpuShare) -> AnyArray:
        """Return the part of a device of each node that a pod asks for, more than 1 where none is enough. Shape
        (N,)."""
        if not share.memory_mib:
            return np.full(len(self._view.facts), max(share.fraction, _EPS))
        mib, is_known = memory_of(self._view.facts)
        # What a node does not state cannot be compared.
        return np.where(is_known, share.memory_mib / mib, 2.0)

    def on_node(self, node: int, placed: int, wanted: int) -> NoPart:
        """Return that a node has no device for ``wanted`` pods after so many are placed there."""
        size = self._view.facts.allocatable[node, self._view.axis.column[GPU_RESOURCE]]
        free = 0 if self._share.devices == 1 else max(int(self._devices[node]) - placed * self._share.devices, 0)
        return NoPart(
            self._view.facts.names[node], float(self._part[node]), self._share.devices, int(size // 1000), free, wanted
        )
