"""Task classes: tasks with equal requests and equal scheduling terms share one row.

Masks and scores are computed once a class over all nodes, and afterwards only for node rows that changed. The class is
the pod's ``PodSpec``: everything in it, and nothing outside of it, may decide where the pod can run.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any, Self

import numpy as np

from pumice.columns.column import Versions
from pumice.columns.dtypes import EPS, F64, I64, AnyArray, Bool, ResourceAxis, compared
from pumice.columns.table import Table, number, objects
from pumice.model.devices.gpu import GPU_RESOURCE, mig_gpus
from pumice.model.pod import PodSpec
from pumice.model.resources import Resource


class ClassTable(Table):
    """C rows. A row that a class has given back may stand for another one later: what is kept about a class beyond one
    snapshot names its ``identity`` too.

    ``req`` (C, R) in canonical units; ``charge`` (C, R) the same with fractions and MIG instances of GPUs: what quotas
    count; ``frees`` (C, R) with shared GPUs as whole ones: the most that can become free when such a task leaves;
    ``share_mib`` (C,) what it asks of the memory of each. ``compared`` (C, R) the dimensions that count, ``asked`` the
    same with a limit each: room above it in all of them is room enough for one; ``nonzero`` (C, 2) milli-cpu and bytes
    with kube-scheduler's defaults; ``steps`` (C, R + 3) what one task of the class adds to ``NodeTable.view``;
    ``claims`` and ``volumes`` (C,) whether it uses resource claims, and names claims of volumes.
    """

    specs: Sequence[PodSpec] = objects()
    asked: Sequence[tuple[tuple[int, float], ...]] = objects()
    req: F64 = number(np.float64)
    charge: F64 = number(np.float64)
    frees: F64 = number(np.float64)
    share_mib: F64 = number(np.float64)
    compared: Bool = number(np.bool_)
    nonzero: F64 = number(np.float64)
    steps: F64 = number(np.float64)
    best_effort: Bool = number(np.bool_)
    claims: Bool = number(np.bool_)
    volumes: Bool = number(np.bool_)

    @classmethod
    def empty(cls, versions: Versions, axis: ResourceAxis) -> Self:
        return cls(versions, axis)

    def __init__(self, versions: Versions, axis: ResourceAxis) -> None:
        super().__init__(versions, _lengths(axis))
        self._axis = axis

    def add(self, spec: PodSpec) -> int:
        """A row for a class that has none."""
        uses = {"claims": bool(spec.resource_claims), "volumes": bool(spec.claim_names)}
        amounts = {name: values[0] for name, values in self._amounts([spec]).items()}
        return self.new_rows(1, specs=spec, best_effort=spec.request.is_empty(), **uses, **amounts)[0]

    def _amounts(self, specs: Sequence[PodSpec]) -> dict[str, Any]:
        """The columns of some classes that count amounts."""
        req = self._axis.vectors([spec.request for spec in specs])
        mask = compared(req)
        nonzero = np.array([(spec.nonzero_milli_cpu, spec.nonzero_memory) for spec in specs])
        asked = np.empty(len(specs), dtype=np.object_)
        for i, (limits, dimensions) in enumerate(zip((req - EPS).tolist(), mask.tolist(), strict=True)):
            asked[i] = tuple(compress(enumerate(limits), dimensions))
        return {
            "asked": asked,
            "req": req,
            **_shares(specs, req, self._axis),
            "compared": mask,
            "nonzero": nonzero,
            "steps": np.concatenate((req, nonzero, np.ones((len(specs), 1))), axis=1),
        }

    def asks(self) -> list[Resource]:
        """What the classes in use ask for."""
        return [self.specs[row].request for row in self.alive.nonzero()[0].tolist()]

    def measure(self, axis: ResourceAxis) -> None:
        """Count along another axis. Every class has another identity then."""
        self._axis = axis
        self._remake(_lengths(axis))
        rows = self.alive.nonzero()[0].tolist()
        if rows:
            self.write(rows, **self._amounts([self.specs[row] for row in rows]))
            assert self.stamps is not None
            self.stamps[rows] = [self._versions.next() for _ in rows]

    def identity(self, row: int) -> int:
        """A number that stands for this class and for no other, ever."""
        assert self.stamps is not None
        return int(self.stamps[row])

    def identities(self, rows: AnyArray) -> I64:
        """The same of several. Shape (rows,)."""
        assert self.stamps is not None
        return self.stamps[rows]


def _shares(specs: Sequence[PodSpec], req: F64, axis: ResourceAxis) -> dict[str, F64]:
    charge, frees, share_mib = req.copy(), req.copy(), np.zeros(len(specs))
    gpu = axis.column.get(GPU_RESOURCE, -1)
    for i, spec in enumerate(specs if gpu >= 0 else ()):
        charge[i, gpu] += sum(mig_gpus(name) * amount for name, amount in (spec.request.scalars or {}).items())
        share = spec.gpu_share
        if share is not None:
            charge[i, gpu] += 1000.0 * share.fraction * share.devices
            frees[i, gpu] += 1000.0 * share.devices
            share_mib[i] = float(share.memory_mib)
    return {"charge": charge, "frees": frees, "share_mib": share_mib}


def _lengths(axis: ResourceAxis) -> dict[str, tuple[int, ...]]:
    width = len(axis)
    return {
        "req": (width,),
        "charge": (width,),
        "frees": (width,),
        "compared": (width,),
        "nonzero": (2,),
        "steps": (width + 3,),
    }
