"""Task classes: tasks with equal requests and equal scheduling terms share one row.

Masks and scores are computed once for each class over all nodes, and afterwards only for the nodes that changed. A
class is a ``PodSpec``: all that may decide where a pod can run is in it, and nothing else is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Self

import numpy as np

from pumice.columns.column import Versions
from pumice.columns.dtypes import EPS, F64, I64, AnyArray, Bool, ResourceAxis, compared
from pumice.columns.table import Table, number, objects
from pumice.model.devices.gpu import GPU_RESOURCE, asks_for_gpus, mig_gpus
from pumice.model.pod import PodSpec
from pumice.model.resources import Resource


class ClassTable(Table):
    """C rows. A freed row is reused for another class, so answers that outlive a snapshot name its ``identity`` too."""

    specs: Sequence[PodSpec] = objects()
    #: ``compared`` as pairs (resource, limit): a node has room for one task if it has more than each limit. Most
    #: classes compare two of many resources, so a loop over the pairs is cheaper than a row of R.
    asked: Sequence[tuple[tuple[int, float], ...]] = objects()
    #: Request (C, R) in canonical units.
    req: F64 = number(np.float64)
    #: What quotas count (C, R): the request with fractions and MIG instances of GPUs.
    charge: F64 = number(np.float64)
    #: The most that can become free when one task leaves (C, R): the request with shared GPUs counted as whole ones.
    frees: F64 = number(np.float64)
    #: MiB of memory that it requests of each shared GPU (C,).
    share_mib: F64 = number(np.float64)
    #: The resources that a comparison looks at (C, R), see ``dtypes.compared``.
    compared: Bool = number(np.bool_)
    #: Milli-cpu and bytes with kube-scheduler's defaults for containers without requests (C, 2).
    nonzero: F64 = number(np.float64)
    #: What one task adds to ``NodeTable.view`` (C, R + 3).
    steps: F64 = number(np.float64)
    best_effort: Bool = number(np.bool_)
    #: It uses resource claims (C,).
    claims: Bool = number(np.bool_)
    #: It names claims of volumes (C,).
    volumes: Bool = number(np.bool_)

    @classmethod
    def empty(cls, versions: Versions, axis: ResourceAxis) -> Self:
        return cls(versions, axis)

    def __init__(self, versions: Versions, axis: ResourceAxis) -> None:
        super().__init__(versions, _lengths(axis))
        self._axis = axis

    def add(self, spec: PodSpec) -> int:
        """Return a new row for a class that has none yet."""
        uses = {"claims": bool(spec.resource_claims), "volumes": bool(spec.claim_names)}
        amounts = {name: values[0] for name, values in self.amounts_of([spec]).items()}
        return self.new_rows(1, specs=spec, best_effort=spec.request.is_empty(), **uses, **amounts)[0]

    def amounts_of(self, specs: Sequence[PodSpec]) -> dict[str, AnyArray]:
        """Return the columns that depend on the axis of resources, for some classes."""
        req = self._axis.vectors([spec.request for spec in specs])
        mask = compared(req)
        nonzero = np.array([(spec.nonzero_milli_cpu, spec.nonzero_memory) for spec in specs])
        # Filled element by element: NumPy would turn a list of tuples of equal length into further axes.
        asked = np.empty(len(specs), dtype=np.object_)
        # ``fits`` asks whether need - room < EPS; with EPS taken off here that is one comparison for each resource.
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
        """Return the requests of all classes in use."""
        return [self.specs[row].request for row in self.alive.nonzero()[0].tolist()]

    def ask_for_gpus(self) -> bool:
        """Return True if a class in use counts in GPUs."""
        specs = (self.specs[row] for row in self.alive.nonzero()[0].tolist())
        return any(asks_for_gpus(spec.request, spec.gpu_share) for spec in specs)

    def measure(self, axis: ResourceAxis) -> None:
        """Change to another axis of resources. Every class gets a new identity."""
        self._axis = axis
        self._remake(_lengths(axis))
        rows = self.alive.nonzero()[0].tolist()
        if rows:
            self.write(rows, **self.amounts_of([self.specs[row] for row in rows]))
            assert self.stamps is not None
            # One ``write`` gives all rows the same stamp, but an identity must belong to one class only.
            self.stamps[rows] = [self._versions.next() for _ in rows]

    def identity(self, row: int) -> int:
        """Return a number that no other class ever has."""
        # A class is written once, when it is added, so its stamp never changes while it is in use.
        assert self.stamps is not None
        return int(self.stamps[row])

    def identities(self, rows: AnyArray) -> I64:
        """Return the identities of several classes. Shape (rows,)."""
        assert self.stamps is not None
        return self.stamps[rows]


def _shares(specs: Sequence[PodSpec], req: F64, axis: ResourceAxis) -> dict[str, F64]:
    """Return the columns in which shares of GPUs count differently from the request."""
    charge, frees, share_mib = req.copy(), req.copy(), np.zeros(len(specs))
    gpu = axis.column.get(GPU_RESOURCE, -1)
    # There is no column to count them in where no pod asks for GPUs.
    for i, spec in enumerate(specs if gpu >= 0 else ()):
        charge[i, gpu] += sum(mig_gpus(name) * amount for name, amount in (spec.request.scalars or {}).items())
        share = spec.gpu_share
        if share is not None:
            charge[i, gpu] += share.milli_gpus
            # When the last task on a device leaves, the whole device becomes free, not only the share.
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
