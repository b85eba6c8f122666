"""binpack: prefer nodes that would be fuller with the task. Source: Volcano binpack plugin."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pumice.api import EPS, F64, Bool, NodeRows, Session, TaskClass, plugin, points


class WeightedResource(NamedTuple):
    """A resource with a weight: its column, and the allocatable amount of nodes (N,).

    ``has`` None: every node has some. Otherwise ``room`` is 1 where a node has none.
    """

    column: int
    weight: F64
    room: F64
    has: Bool | None


@plugin("binpack", separator=".")
class Binpack:
    """Score nodes by use. ``binpack.cpu``, ``binpack.memory`` and ``binpack.resources.<name>`` are weights (below 0:
    1).

    ``binpack.resources`` lists further resources, separated by commas. Weights of resources that are not listed have
    no effect.
    """

    def __init__(
        self,
        ssn: Session,
        *,
        binpack_weight: int = 1,
        binpack_cpu: int = 1,
        binpack_memory: int = 1,
        binpack_resources: str = "",
        binpack_resources_: Mapping[str, float] | None = None,
    ) -> None:
        # A weight of 0 would score every node 0, so nodes are not scored at all.
        self.unused_points = () if binpack_weight else (points.node_order,)
        weights = {"cpu": float(binpack_cpu), "memory": float(binpack_memory)}
        given = binpack_resources_ or {}
        for name in filter(None, (part.strip() for part in binpack_resources.split(","))):
            weights[name] = given.get(name, 1.0)
        self._axis = ssn.tables.axis
        self._facts = ssn.tables.nodes.facts
        self._weights = {name: 1.0 if weight < 0 else weight for name, weight in weights.items()}
        self._scale = 100.0 * binpack_weight

    @points.node_order
    def fullness(self, cls: TaskClass, nodes: NodeRows) -> F64:
        """Return the weighted mean share in use with the task, 0 if the node is too small. Shape (rows,)."""
        used, rows, req = nodes.used, nodes.rows, cls.req
        score = np.zeros(len(rows))
        too_much = np.zeros(len(rows), dtype=bool)
        total = 0.0
        for column, weight, room, has in self._counted:
            asked = req[column]
            # A resource that is not asked for would reward nodes that are full of it.
            if asked < EPS:
                continue
            total += float(weight)
            here = room.take(rows)
            # One resource at a time, in place: temporaries of shape (rows, R) would double the time of this loop.
            share = used[:, column] + asked
            over = share > here
            np.multiply(share, weight, share)
            np.divide(share, here, share)
            if has is not None:
                share *= has.take(rows)
                over &= has.take(rows)
            np.add(score, share, score)
            np.logical_or(too_much, over, too_much)
        if total:
            score /= total
        score *= self._scale
        # As in Volcano, a node that would be overfull gets no score at all. Filters decide whether it is a candidate; a
        # score that stopped at 100 would rank it first.
        score[too_much] = 0.0
        return score

    @cached_property
    def _counted(self) -> list[WeightedResource]:
        """The resources with a weight, in the order of their columns. Allocatable amounts do not change in a
        session."""
        found = []
        for name, column in self._axis.column.items():
            weight = self._weights.get(name)
            if weight is None:
                continue
            room = np.ascontiguousarray(self._facts.allocatable[:, column])
            has = (room != 0.0) & (weight != 0.0)
            # Dividing by 1 instead of 0; ``has`` then removes the term. The weight stays in the sum, as in Volcano.
            safe = np.where(has, room, 1.0)
            found.append(WeightedResource(column, np.array(weight), safe, None if has.all() else has))
        return found
