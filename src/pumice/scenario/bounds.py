"""Bounds that refute a scenario without simulating it.

For each class of the tasks to be placed: the sum over nodes of how many fit there, counting what the scenario evicts,
is at least their number, or they cannot all be placed: whoever else is placed only takes room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from pumice.columns.dtypes import EPS, F64
from pumice.columns.nodes import FUTURE
from pumice.framework.feasible import Feasibility
from pumice.framework.session import Session
from pumice.scenario.parts import Chunk, Part


class Bound:
    """``last_is_worth_trying``: whether the chunk that was given out last could be the one that makes room."""

    def __init__(self, ssn: Session, feasible: Feasibility, part: Part, recorded: Iterable[int]) -> None:
        self._ssn = ssn
        tables = ssn.tables
        self._freed: dict[int, F64] = {}
        self.last_is_worth_trying = True
        classes, counts = np.unique(tables.tasks.cls[part.rows], return_counts=True)
        self._needs = list(zip(classes.tolist(), counts.tolist(), strict=True))
        self._add(recorded)
        self._fits = {cls: self._fit_counts(feasible, cls) for cls in classes.tolist()}
        self._total = {cls: float(fits.sum()) for cls, fits in self._fits.items()}

    def _add(self, rows: Iterable[int]) -> None:
        tables = self._ssn.tables
        node, cls, req = tables.tasks.node, tables.tasks.cls, tables.classes.req
        for row in rows:
            there = int(node[row])
            held = self._freed.get(there)
            self._freed[there] = req[cls[row]] if held is None else held + req[cls[row]]

    def _fit_counts(self, feasible: Feasibility, cls: int) -> F64:
        """How many tasks of a class fit on each node now, and when the recorded victims have left (N,)."""
        tables = self._ssn.tables
        future = tables.nodes.books[:, FUTURE]
        found = np.full(len(future), np.inf)
        need = tables.classes.req[cls]
        asked = (need > 0).nonzero()[0].tolist()
        for dimension in asked:
            np.minimum(found, np.floor((future[:, dimension] + EPS) / need[dimension]), out=found)
        found = np.where(feasible.of(cls).allowed, np.maximum(found, 0.0), 0.0)
        for node in self._freed:
            found[node] = self._fits_on(node, cls)
        return found

    def _fits_on(self, node: int, cls: int) -> float:
        tables = self._ssn.tables
        need = tables.classes.req[cls]
        room = tables.nodes.books[node, FUTURE] + self._freed.get(node, 0.0)
        asked = need > 0
        return max(0.0, float(np.floor((room[asked] + EPS) / need[asked]).min()))

    def worth_trying(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """The chunks, each with a word in ``last_is_worth_trying``."""
        for chunk in chunks:
            self._add(chunk.rows)
            for node in chunk.nodes:
                for cls, fits in self._fits.items():
                    fresh = self._fits_on(node, cls)
                    self._total[cls] += fresh - fits[node]
                    fits[node] = fresh
            self.last_is_worth_trying = all(self._total[cls] >= count for cls, count in self._needs)
            yield chunk
