"""resource-strategy-fit: fill nodes or keep them empty, per resource, and keep scarce resources free.

Source: Volcano resource-strategy-fit plugin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from pumice.api import (
    CPU,
    EPS,
    F64,
    MEMORY,
    AnyArray,
    Bool,
    Code,
    FilterResult,
    NodeRows,
    Question,
    Session,
    TaskClass,
    Unfit,
    plugin,
    points,
)
from pumice.volcano.scorers.strategies import Proportions, Scarce, Strategies, argument_problems

#: Proportions are gigabytes per device, and devices are counted in thousandths: 1e9 / 1000.
_MEMORY_UNIT = 1e6


class StrategyColumns(NamedTuple):
    """Resources with a strategy: columns (K,), weights (K,), and whether fuller nodes are better (K,)."""

    columns: AnyArray
    weights: F64
    most: Bool


@plugin("resource-strategy-fit")
class ResourceStrategyFit:
    """Score nodes per resource.

    ``resources``: by name, or by a prefix followed by ``*``, ``{type: MostAllocated | LeastAllocated, weight}``.
    ``resourceStrategyFitWeight``: weight of their mean. Annotations of a pod override both. ``sra``: prefer nodes
    without the scarce ``resources`` that it lists, weighted by ``resourceWeight``. ``proportional``: tasks without a
    request for the ``resources`` that it lists must leave CPU (cores) and memory (GB) for each idle one, by
    ``resourceProportion``.
    """

    def __init__(
        self,
        ssn: Session,
        *,
        resourceStrategyFitWeight: int = 10,
        resources: Any = None,
        sra: Any = None,
        proportional: Any = None,
    ) -> None:
        self._axis, self._classes = ssn.tables.axis, ssn.tables.classes
        self._strategies = Strategies.read(resourceStrategyFitWeight, resources)
        self._scarce, self._proportions = Scarce.read(sra), Proportions.read(proportional)
        # Once a session: names and prefixes are compared with each resource, which no hook should repeat per class.
        self._counted = self._by_column(self._strategies)
        self._spared = self._sparing(ssn)
        scores = self._strategies.weight or self._spared is not None
        self.unused_points: tuple[Question, ...] = () if self._proportions.rates else (points.predicate,)
        self.unused_points += () if scores else (points.node_order,)

    @staticmethod
    def problems(
        *, resourceStrategyFitWeight: int, resources: object, sra: object, proportional: object
    ) -> Iterator[str]:
        """Yield parts of the arguments that are ignored."""
        yield from argument_problems(resources, sra, proportional)

    # -- scores -------------------------------------------------------------------------------------------------------

    @points.node_order
    def node_order(self, cls: TaskClass, nodes: NodeRows) -> F64:
        """Return the score by strategies plus the score by scarce resources. Shape (rows,)."""
        score = self._fit(cls, nodes) if self._strategies.weight else np.zeros(len(nodes))
        if self._spared is not None:
            asked = np.flatnonzero(cls.req >= EPS)
            # A node that lacks something requested is filtered anyway, and should not win here by lacking scarce
            # resources.
            has_all = (nodes.allocatable[:, asked] > 0).all(axis=1)
            score += np.where(has_all, nodes.pick(self._spared), 0.0)
        return score

    def _fit(self, cls: TaskClass, nodes: NodeRows) -> F64:
        """Return the weighted mean of what is in use, or free, with the task; 0 if the node is too small.
        Shape (rows,)."""
        # A pod's own strategy replaces the policy's as a whole. Mixed with it, weights would no longer add up to what
        # either meant.
        own = cls.spec.strategy
        counted = self._counted if own is None else self._by_column(Strategies.of_pod(own))
        asked = cls.req[counted.columns] >= EPS
        columns, weights, most = (each[asked] for each in counted)
        total = weights.sum()
        if not total:
            return np.zeros(len(nodes))
        room, used = nodes.allocatable[:, columns], nodes.used[:, columns] + cls.req[columns]
        counts = (room > 0) & (weights > 0)
        # Divided by 1 where a node has none; ``counts`` removes the term.
        part = np.where(most, used, room - used) / np.where(room > 0, room, 1.0)
        score: F64 = (np.where(counts, part, 0.0) * weights).sum(axis=1) * (100.0 * self._strategies.weight / total)
        # A request beyond one counted resource costs the whole score. Source: Volcano resource_strategy_fit.go.
        score[((used > room) & counts).any(axis=1)] = 0.0
        return score

    def _by_column(self, strategies: Strategies) -> StrategyColumns:
        """Return the resources that have a strategy."""
        columns = self._axis.column.items()
        found = [(column, rule) for name, column in columns if (rule := strategies.of(name)) is not None]
        weights = np.array([rule.weight for _, rule in found], dtype=np.float64)
        most = np.array([rule.most for _, rule in found], dtype=bool)
        return StrategyColumns(np.array([column for column, _ in found], dtype=np.int64), weights, most)

    def _sparing(self, ssn: Session) -> F64 | None:
        """Return a score that is higher for nodes with fewer scarce resources (N,), or None if it is off."""
        weights = self._scarce.weights
        total = sum(weights.values())
        if not self._scarce.weight or not total:
            return None
        has = np.zeros(len(ssn.tables.nodes.facts))
        for name, weight in weights.items():
            column = self._axis.column.get(name)
            if column is not None:
                has += weight * (ssn.tables.nodes.facts.allocatable[:, column] > 0)
        found: F64 = (1.0 - has / total) * 100.0 * self._scarce.weight
        return found

    # -- what is left beside devices ----------------------------------------------------------------------------------

    @points.predicate
    def predicate(self, cls: TaskClass, nodes: NodeRows) -> FilterResult | None:
        """Reject nodes on which a task without a listed resource would leave too little for tasks with one.
        Shape (rows,)."""
        rates = {name: rate for name, rate in self._proportions.rates.items() if name in self._axis.column}
        # CPU and memory are reserved for tasks like this one, so it may use them.
        if any(cls.req[self._axis.column[name]] >= EPS for name in rates):
            return None
        idle, allocatable = nodes.idle, nodes.allocatable
        codes = np.zeros(len(nodes), dtype=np.int32)
        why: list[tuple[Unfit, ...]] = [()]
        for name, (cpu, memory) in rates.items():
            # Idle devices and not all: what lies beside a device in use is needed no more.
            devices = idle[:, self._axis.column[name]]
            left = idle - cls.req
            short = (left[:, CPU] < devices * cpu) | (left[:, MEMORY] < devices * memory * _MEMORY_UNIT)
            # Nodes without such devices reserve nothing for them.
            short &= allocatable[:, self._axis.column[name]] > 0
            why.append((Unfit(f"proportional of resource {name} check failed", Code.UNRESOLVABLE),))
            codes[(codes == 0) & short] = len(why) - 1
        return FilterResult(codes, tuple(why)) if codes.any() else None
