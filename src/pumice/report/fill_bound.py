"""An upper bound on the GPUs that any policy can allocate: a linear program that is easier than placing pods.

Pods may be split, and run on the nodes of a model as if these were one machine with the devices, cores and memory of
all; only devices are cut as real ones can be cut. So no placement exceeds the optimum of the program. Source: cutting
stock by column generation, Gilmore and Gomory, 1961; solved by HiGHS, of the extra ``bounds``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.model.node import Node
from pumice.model.pod import PodSpec
from pumice.ours.fragments import WHOLE
from pumice.ours.node_worth import PARTS
from pumice.sim.fills.fill import Arrivals, ask_of_spec
from pumice.sim.fills.fragments import may_run, model_of

#: Cuts are added until none is better; where that takes longer there is no bound, for one of fewer cuts would be wrong.
_ROUNDS_MAX = 400
_BETTER = 1e-6


class BoundError(RuntimeError):
    """There is no bound: the extra is not installed, or the solver found no solution. One sentence."""


def bound(arrivals: Arrivals, level: float = 100.5) -> float:
    """Return the per cent of the cluster's GPUs that can be allocated at most when ``level`` per cent have been
    requested. Raises: BoundError."""
    asked = np.cumsum(arrivals.gpus) <= level / 100.0 * arrivals.capacity
    program = _Program([spec for spec, counts in zip(arrivals.specs, asked, strict=True) if counts], arrivals.nodes)
    return 100.0 * program.solve() / arrivals.capacity


class _Program:
    """The linear program. Rows: devices, cores and memory of each model; parts of each size on each model, at most as
    many as are cut; pods of each class, at most as many as exist."""

    def __init__(self, specs: Sequence[PodSpec], nodes: Sequence[Node]) -> None:
        try:
            import highspy
        except ImportError:
            raise BoundError("the bound needs HiGHS: install pumice[bounds]") from None
        self._highs: Any = highspy.Highs()
        self._highs.setOptionValue("output_flag", False)
        self._inf = highspy.kHighsInf
        self._models = sorted({model_of(node) for node in nodes})
        spec_of = {id(spec): spec for spec in specs}  # equal ones are one object
        pods = Counter(id(spec) for spec in specs if ask_of_spec(spec).devices)
        self._sizes = sorted({size for key in pods if (size := _size(spec_of[key]))})
        self._rows(nodes, list(pods.values()))
        for number, key in enumerate(pods):
            self._class(number, spec_of[key])
        for m in range(len(self._models)):
            for s, size in enumerate(self._sizes):
                self._cut(m, {s: PARTS // size})

    def _rows(self, nodes: Sequence[Node], pods: list[int]) -> None:
        of_model = {model: [node for node in nodes if model_of(node) == model] for model in self._models}
        for own in of_model.values():
            rooms = [node.allocatable for node in own]
            self._row(sum(room.get(GPU_RESOURCE) for room in rooms) / WHOLE)
            self._row(sum(room.milli_cpu for room in rooms) / 1000.0)
            self._row(sum(room.memory for room in rooms) / 2**30)
        for _ in range(len(self._models) * len(self._sizes)):
            self._row(0.0)
        for count in pods:
            self._row(float(count))

    def _row(self, most: float) -> None:
        self._highs.addRow(-self._inf, most, 0, np.array([], dtype=np.int32), np.array([], dtype=np.float64))

    def _column(self, worth: float, entries: dict[int, float]) -> None:
        rows = np.array(sorted(entries), dtype=np.int32)
        values = np.array([entries[row] for row in rows.tolist()], dtype=np.float64)
        self._highs.addCol(-worth, 0.0, self._inf, len(rows), rows, values)

    def _part_row(self, m: int, s: int) -> int:
        return 3 * len(self._models) + m * len(self._sizes) + s

    def _class(self, number: int, spec: PodSpec) -> None:
        ask, size = ask_of_spec(spec), _size(spec)
        limit = 3 * len(self._models) + len(self._models) * len(self._sizes) + number
        for m, model in enumerate(self._models):
            if may_run(spec, model):
                entries = {limit: 1.0, 3 * m + 1: ask.milli_cpu / 1000.0, 3 * m + 2: spec.request.memory / 2**30}
                entries |= {self._part_row(m, self._sizes.index(size)): 1.0} if size else {3 * m: float(ask.devices)}
                self._column(ask.devices * ask.milli, entries)

    def _cut(self, m: int, counts: dict[int, int]) -> None:
        """Add a way to cut a device of a model into ``counts`` parts of each size."""
        self._column(0.0, {3 * m: 1.0} | {self._part_row(m, s): -float(count) for s, count in counts.items()})

    def solve(self) -> float:
        """Return the optimum in milli-devices. Raises: BoundError."""
        for _ in range(_ROUNDS_MAX):
            self._highs.run()
            if self._highs.getModelStatus().name != "kOptimal":
                raise BoundError(f"HiGHS found no optimum: {self._highs.getModelStatus().name}")
            duals = -np.array(self._highs.getSolution().row_dual)
            added = [self._add_better_cut(m, duals) for m in range(len(self._models))]
            if not any(added):
                return float(-self._highs.getInfo().objective_function_value)
        raise BoundError(f"there is still a better split of a device after {_ROUNDS_MAX} rounds")

    def _add_better_cut(self, m: int, duals: Any) -> bool:
        """Add the best cut of a model. Return False if none is worth more than the device it takes."""
        worth = [float(duals[self._part_row(m, s)]) for s in range(len(self._sizes))]
        best, last = [0.0] * (PARTS + 1), [-1] * (PARTS + 1)
        for gap in range(1, PARTS + 1):
            best[gap] = best[gap - 1]
            for s, size in enumerate(self._sizes):
                if size <= gap and worth[s] + best[gap - size] > best[gap] + 1e-9:
                    best[gap], last[gap] = worth[s] + best[gap - size], s
        if best[PARTS] <= float(duals[3 * m]) + _BETTER:
            return False
        counts: dict[int, int] = {}
        gap = PARTS
        while gap > 0:
            if last[gap] < 0:
                gap -= 1
            else:
                counts[last[gap]] = counts.get(last[gap], 0) + 1
                gap -= self._sizes[last[gap]]
        self._cut(m, counts)
        return True


def _size(spec: PodSpec) -> int:
    """Return hundredths of one device, rounded down; 0 for whole ones. Rounding down only makes the bound larger."""
    ask = ask_of_spec(spec)
    return max(int(ask.milli / WHOLE * PARTS + 1e-9), 1) if 0 < ask.milli < WHOLE else 0
