"""nodeplacement: fill nodes (binpack) or spread over them (spread), by GPUs for tasks that ask for GPUs, else by CPU.
Source: KAI nodeplacement plugin.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pumice.api import CPU, F64, ROWS, NodeRows, Session, TaskClass, plugin
from pumice.kai import points
from pumice.kai.amounts import asks_for_gpus, gpu_column

BINPACK, SPREAD = "binpack", "spread"
MOST = 9.0


@plugin("nodeplacement")
class NodePlacement:
    """Score nodes by the free amount of one resource.

    ``gpu``, ``cpu``: binpack or spread.
    """

    def __init__(self, ssn: Session, *, gpu: str = BINPACK, cpu: str = BINPACK) -> None:
        self._gpu, self._strategies = gpu_column(ssn.tables), {True: gpu, False: cpu}
        # KAI scales binpack between the fullest and the emptiest candidate. That changes with the candidates, but never
        # their order. Scaling by the largest node of all gives the same order with scores that stay valid per node.
        self._all = ssn.tables.nodes.facts.allocatable
        self._largest: list[float] = self._all.max(axis=0, initial=0.0).tolist()

    @staticmethod
    def problems(*, gpu: str, cpu: str) -> Iterator[str]:
        for name, way in (("gpu", gpu), ("cpu", cpu)):
            if way not in (BINPACK, SPREAD):
                yield f'argument {name}: found "{way}", wanted {BINPACK} or {SPREAD}'

    @points.node_order(reads=(ROWS,))
    def score(self, cls: TaskClass, nodes: NodeRows) -> F64 | None:
        """Return 0 to 9 for binpack, 0 to 1 for spread. Shape (rows,)."""
        by_gpu = self._gpu >= 0 and asks_for_gpus(cls, self._gpu)
        column = self._gpu if by_gpu else CPU
        largest = self._largest[column]
        if largest <= 0:
            return None
        free, whole = nodes.soon_free(column), nodes.pick(self._all[:, column])
        if self._strategies[by_gpu] == BINPACK:
            return np.where(whole > 0, MOST * (1.0 - free / largest), 0.0)
        # Spread compares shares of nodes, and binpack amounts, as in KAI: among nodes of different sizes the two are
        # not each other's reverse.
        part: F64 = np.divide(free, whole, out=np.zeros_like(free), where=whole > 0)
        return part
