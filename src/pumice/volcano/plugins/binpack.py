"""binpack: the fuller a node would be, the better. Source: Volcano binpack (spec 04 §4)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pumice.columns.dtypes import F64, I64
from pumice.columns.views import NodeRows, TaskClass
from pumice.framework import points
from pumice.framework.plugin import plugin
from pumice.framework.session import Session
from pumice.model.resources import MIN_RESOURCE


@plugin("binpack")
class Binpack:
    """``binpack.cpu``, ``binpack.memory`` and ``binpack.resources.<name>`` weigh a resource (below 0: 1).

    ``binpack.resources`` lists the further resources that count, with commas; weights of others are not looked at.
    """

    def __init__(
        self, ssn: Session, *, binpack_weight: int = 1, binpack_cpu: int = 1, binpack_memory: int = 1,
        binpack_resources: str = "", binpack_resources_: Mapping[str, float] | None = None,
    ) -> None:  # fmt: skip
        self.unused_points = () if binpack_weight else (points.node_order,)
        weights = {"cpu": float(binpack_cpu), "memory": float(binpack_memory)}
        given = binpack_resources_ or {}
        for name in filter(None, (part.strip() for part in binpack_resources.split(","))):
            weights[name] = given.get(name, 1.0)
        self._axis = ssn.tables.axis
        self._weights = {name: 1.0 if weight < 0 else weight for name, weight in weights.items()}
        self._scale = 100.0 * binpack_weight
        self._of_class: dict[int, tuple[I64, F64, F64]] = {}

    @points.node_order
    def fullness(self, cls: TaskClass, nodes: NodeRows) -> F64:
        """Weighted mean share in use with the task; 0 where it does not fit the whole node. Shape (rows,)."""
        columns, weights, request = self._of_class.get(cls.row) or self._columns(cls)
        used = nodes.used[:, columns] + request
        room = nodes.facts.allocatable[nodes.rows[:, None], columns]
        has = (room != 0.0) & (weights != 0.0)
        share = np.divide(used * weights, room, out=np.zeros_like(used), where=has)
        score = share.sum(axis=1)
        if weights.any():
            score /= weights.sum()
        score *= self._scale
        score[((used > room) & has).any(axis=1)] = 0.0
        return np.asarray(score)

    def _columns(self, cls: TaskClass) -> tuple[I64, F64, F64]:
        """Columns that count for the class, with weights and requests."""
        req = cls.req
        names = [n for n in self._axis.names if n in self._weights and req[self._axis.column[n]] >= MIN_RESOURCE]
        columns = np.array([self._axis.column[n] for n in names], dtype=np.int64)
        weights = np.array([self._weights[n] for n in names])
        found = self._of_class[cls.row] = (columns, weights, req[columns])
        return found
