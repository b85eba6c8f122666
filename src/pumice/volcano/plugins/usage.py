"""usage: prefer nodes with low measured load, and place nothing on overloaded ones.

Measured load is a table of the snapshot (decision 0015). Added to it is an estimate for pods that started too recently
to be measured, and for what this session places. Source: Volcano usage plugin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pumice.algorithms.groups import in_turn
from pumice.api import (
    CPU,
    F64,
    MEMORY,
    ROWS,
    AnyArray,
    Bool,
    Code,
    FilterResult,
    NodeRows,
    Session,
    TaskClass,
    TaskRun,
    TaskStatus,
    Unfit,
    plugin,
    points,
)
from pumice.placing.derived import derived
from pumice.volcano.scorers.node_usage import FRESH_S, node_usage
from pumice.volcano.scorers.usage_estimator import (
    Estimator,
    estimator_problems,
    interval_of,
    percent,
    threshold_problems,
)
from pumice.volcano.scorers.usage_load import composite, idleness_score, weighted

_AMOUNTS = [CPU, MEMORY]
_STARTING = [int(status) for status in (TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND)]
_RUNNING = int(TaskStatus.RUNNING)
_WHY = (
    (),
    (Unfit("the CPU load of the node exceeds the upper limit.", Code.UNRESOLVABLE),),
    (Unfit("the memory load of the node exceeds the upper limit.", Code.UNRESOLVABLE),),
)


@plugin("usage", separator=".")
class Usage:
    """Filter and score by load.

    ``thresholds``: percent of CPU and memory (``{cpu: 80, mem: 80}``) above which a node takes no pods.
    ``usage.weight``: weight of the score; ``cpu.weight`` and ``memory.weight``: weights within it (below 0: the
    default). ``estimator``: the expected usage of a pod that is not measured yet. It is ``request_ratio`` of the
    request plus ``burst_ratio`` of what the limit exceeds it by, and ``be_cpu`` and ``be_mem`` for a best-effort pod;
    on nodes with a load of ``risk_threshold`` or more, ``risk_factor`` times that.

    ``measured`` (N, 3): percent of CPU, percent of memory, and whether they are recent. ``coming`` (N, 2): estimated
    milli-cores and bytes.
    """

    def __init__(
        self,
        ssn: Session,
        *,
        usage_weight: int = 5,
        cpu_weight: int = 1,
        memory_weight: int = 1,
        thresholds: Any = None,
        estimator: Any = None,
    ) -> None:
        self.ssn, tables = ssn, ssn.tables
        # A negative weight would prefer the busiest nodes. Volcano takes the default for it as well.
        self._weight = 5 if usage_weight < 0 else usage_weight
        self._weights = np.array([1.0 if weight < 0 else float(weight) for weight in (cpu_weight, memory_weight)])
        self._most = np.array([percent(thresholds, "cpu"), percent(thresholds, "mem")])
        self._estimator = Estimator.read(estimator)
        self._interval = interval_of(ssn.policy.metrics)
        self._capacity: F64 = derived(ssn).get("capacity", lambda: _capacity(ssn))
        found = node_usage(ssn)
        fresh = found.fresh(ssn.now)
        self._at = found.at
        values = np.column_stack([np.where(fresh, found.cpu, 0.0), np.where(fresh, found.memory, 0.0), fresh])
        self.measured = ssn.column("usage.measured", "node", 3, values=values)
        # By class, because requests, limits and QoS class are all that an estimate needs of a pod.
        self._base = np.array([self._estimator.of(spec) for spec in tables.classes.specs]).reshape(-1, 3, 2)
        # Columns, so that a rollback takes estimates back with the placements that they belong to.
        coming, estimates = self._coming()
        self.estimates = ssn.column("usage.estimates", "task", 3, values=estimates)
        self.coming = ssn.column("usage.coming", "node", 2, values=coming)

    @staticmethod
    def problems(
        *, usage_weight: int, cpu_weight: int, memory_weight: int, thresholds: object, estimator: Any
    ) -> Iterator[str]:
        """Yield problems with the arguments."""
        yield from threshold_problems(thresholds)
        yield from estimator_problems(estimator)

    def wakes_at(self) -> float | None:
        """Return when a measurement becomes stale, or a pod old enough to be measured."""
        if self.ssn.is_idle:
            return None
        fresh = self.measured.array[:, 2] > 0
        # A measurement is recent up to its age limit and including it, so answers change at the next larger number.
        moments = [np.nextafter(self._at[fresh] + FRESH_S, np.inf), self._due[self._due > self.ssn.now]]
        return min((float(each.min()) for each in moments if len(each)), default=None)

    # -- what is coming -----------------------------------------------------------------------------------------------

    def _coming(self) -> tuple[F64, F64]:
        """Return the estimated usage of pods that are not measured yet, per node, and per task its node from 1 and its
        estimate. Shapes (N, 2), (T, 3)."""
        tasks = self.ssn.tables.tasks
        coming, estimates = np.zeros_like(self._capacity), np.zeros((tasks.capacity, 3))
        there = np.flatnonzero((tasks.node >= 0) & np.isin(tasks.status, [*_STARTING, _RUNNING]))
        estimates[there, 0] = tasks.node[there] + 1.0
        pods = [tasks.pods[row] for row in there.tolist()]
        runs = tasks.status[there] == _RUNNING
        # A running pod without a start time counts as too young for ever, as in Volcano.
        started = np.array([np.inf if pod.start_time is None else pod.start_time for pod in pods])
        self._due: F64 = (started + self._interval)[runs & np.isfinite(started)]
        young = ~runs | (self.ssn.now < started + self._interval)
        order = sorted(np.flatnonzero(young).tolist(), key=lambda i: (pods[i].creation, pods[i].uid))
        rows = there[order]
        # An estimate depends on the load, and so on the pods before it on the node, in order of creation. Step k
        # handles the k-th pod of every node.
        for step, _ in in_turn(tasks.node[rows]) if len(rows) else ():
            node = tasks.node[rows[step]]
            found = self._next(tasks.cls[rows[step]], self.measured.array[node], coming[node], self._capacity[node])
            coming[node] += found
            estimates[rows[step], 1:] = found
        return coming, estimates

    def _load(self, measured: F64, coming: F64, capacity: F64) -> F64:
        """Return the weighted load, 0 to 1. Shapes (rows, …) -> (rows,)."""
        return weighted(composite(measured[:, :2], coming, capacity), self._weights)

    def _next(self, cls: AnyArray, measured: F64, coming: F64, capacity: F64) -> F64:
        """Return the estimated usage of another task of each class, given what is coming. Shape (rows, 2)."""
        load = self._load(measured, coming, capacity)
        # Whole numbers, so that adding and subtracting an estimate leaves no remainder.
        return np.rint(self._estimator.use(self._base[cls], load))

    @points.on_allocate
    def on_allocate(self, run: TaskRun) -> None:
        """Add the estimates of tasks to their nodes."""
        for row, node in zip(run.rows, run.nodes, strict=True):
            where, *known = self.estimates.array[row].tolist()
            # A task that returns to its node adds the same estimate that was subtracted.
            if where != node + 1:
                at, cls = slice(node, node + 1), self.ssn.tables.tasks.cls[row : row + 1]
                known = self._next(cls, self.measured.array[at], self.coming.array[at], self._capacity[at])[0].tolist()
                self.ssn.journal.put(self.estimates, row, [node + 1.0, *known])
            self.ssn.journal.add(self.coming, node, np.array(known))

    @points.on_deallocate
    def on_deallocate(self, run: TaskRun) -> None:
        """Subtract the estimates of tasks from their nodes."""
        for row, node in zip(run.rows, run.nodes, strict=True):
            self.ssn.journal.add(self.coming, node, -self.estimates.array[row, 1:])

    # -- hooks --------------------------------------------------------------------------------------------------------

    @points.predicate(reads=(ROWS,))
    def predicate(self, cls: TaskClass, nodes: NodeRows) -> FilterResult | None:
        """Reject nodes above a threshold; nodes without a recent measurement pass. Shape (rows,)."""
        measured = nodes.read(self.measured)
        over: Bool = (measured[:, :2] > self._most) & (measured[:, 2:] > 0)
        # CPU goes first, because Volcano ends with the first threshold that is exceeded.
        codes = np.where(over[:, 0], 1, np.where(over[:, 1], 2, 0))
        return FilterResult(codes, _WHY) if codes.any() else None

    @points.node_order(reads=(ROWS,))
    def node_order(self, cls: TaskClass, nodes: NodeRows) -> F64:
        """Return a higher score for lower load, 0 without a recent measurement. Shape (rows,)."""
        measured, coming, capacity = nodes.read(self.measured), nodes.read(self.coming), self._capacity[nodes.rows]
        more = np.zeros(len(nodes)) if nodes.further is None else nodes.further
        # Estimates depend on the load, so tasks of a batch are added one by one.
        for step in range(int(more.max(initial=0.0))):
            found = self._next(np.full(len(nodes), cls.row), measured, coming, capacity)
            coming = coming + np.where((more > step)[:, None], found, 0.0)
        score = idleness_score(composite(measured[:, :2], coming, capacity), self._weights, self._weight)
        # A node without a measurement may be full or empty, so it is not preferred to any that is known.
        return np.where(measured[:, 2] > 0, score, 0.0)


def _capacity(ssn: Session) -> F64:
    """Return milli-cores and bytes of each node's machine, or what is allocatable if that is unknown. Shape (N, 2)."""
    facts = ssn.tables.nodes.facts
    # Measured percents are of the machine, and what is reserved for the system is part of it.
    own = np.array([[node.capacity.milli_cpu, node.capacity.memory] for node in facts.objs]).reshape(-1, 2)
    return np.where(own > 0, own, facts.allocatable[:, _AMOUNTS])
