"""Task classes: tasks with equal requests and equal scheduling terms share one row.

Masks and scores are computed once a class over all nodes, and afterwards only for node rows that changed. The class is
the pod's ``PodSpec``: everything in it, and nothing outside of it, may decide where the pod can run.
"""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import EPS, F64, Bool, ResourceAxis, compared
from pumice.model.pod import PodSpec


class ClassTable:
    """C rows. ``req`` (C, R) in canonical units; ``asked`` the dimensions that count, each with a limit: room above it
    in all of them is room enough for one; ``nonzero`` (C, 2) milli-cpu and bytes with kube-scheduler's defaults."""

    __slots__ = (
        "_matrix",
        "_row_of_id",
        "_row_of_value",
        "asked",
        "axis",
        "best_effort",
        "compared",
        "nonzero",
        "req",
        "specs",
        "steps",
    )

    def __init__(self, axis: ResourceAxis) -> None:
        self.axis = axis
        self.specs: list[PodSpec] = []
        self.req: list[F64] = []
        self.compared: list[Bool] = []
        self.asked: list[list[tuple[int, float]]] = []
        self.nonzero: list[F64] = []
        self.steps: list[F64] = []
        self.best_effort: list[bool] = []
        self._matrix: F64 = np.zeros((0, len(axis)))
        self._row_of_id: dict[int, tuple[PodSpec, int]] = {}
        self._row_of_value: dict[PodSpec, int] = {}

    def __len__(self) -> int:
        return len(self.specs)

    def row(self, spec: PodSpec) -> int:
        """The class of a spec, made on first sight. Interned specs are found by identity, which is what makes this
        cheap."""
        known = self._row_of_id.get(id(spec))
        if known is not None:
            return known[1]
        row = self._row_of_value.get(spec)
        if row is None:
            row = self._row_of_value[spec] = self._append(spec)
        self._row_of_id[id(spec)] = (spec, row)  # holds the object, so that its id stays its own
        return row

    def _append(self, spec: PodSpec) -> int:
        self.specs.append(spec)
        req = self.axis.vector(spec.request)
        req.setflags(write=False)
        self.req.append(req)
        mask = compared(req)
        self.compared.append(mask)
        self.asked.append([(i, float(req[i]) - EPS) for i in mask.nonzero()[0].tolist()])
        self.nonzero.append(np.array([spec.nonzero_milli_cpu, spec.nonzero_memory]))
        self.steps.append(np.concatenate((req, self.nonzero[-1], (1.0,))))
        self.steps[-1].setflags(write=False)
        self.best_effort.append(spec.request.is_empty())
        return len(self.specs) - 1

    @property
    def matrix(self) -> F64:
        """All requests together (C, R)."""
        if len(self._matrix) != len(self.req):
            self._matrix = np.array(self.req).reshape(len(self.req), len(self.axis))
        return self._matrix
