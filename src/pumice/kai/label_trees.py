"""Topologies as trees of domains: nodes that agree in the values of a Topology's first labels. Source: KAI topology
plugin (topology_structs)."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from pumice.columns.dtypes import I32
from pumice.framework.cycle.session import Session
from pumice.model.topology import Topology
from pumice.placing.derived import Derived, derived


class LabelTree(Struct, frozen=True):
    """``domains`` (levels, N): the domain of each node at each level, -1 for nodes that lack a label. ``ids``: of each
    domain of a level, the values joined by dots, which two domains may share. ``parents``: of each domain of a level,
    that of the level above."""

    levels: tuple[str, ...]
    domains: I32
    ids: tuple[tuple[str, ...], ...]
    parents: tuple[tuple[int, ...], ...]

    def level(self, label: str) -> int:
        """Place of a level, -1 for none."""
        return self.levels.index(label) if label in self.levels else -1


def label_tree(ssn: Session, name: str) -> LabelTree | None:
    """The tree of a Topology over all nodes, None for one that is not there."""
    table = ssn.tables.topologies
    row = next((row for row in range(table.capacity) if table.objs[row].name == name), -1)
    if row < 0:
        return None
    topology: Topology = table.objs[row]
    facts = derived(ssn)
    return facts.get(("label tree", topology.levels), lambda: _build(facts, topology.levels))


def _build(facts: Derived, levels: tuple[str, ...]) -> LabelTree:
    columns = [facts.label(key) for key in levels]
    inside = np.ones(len(facts), dtype=bool)
    for column in columns:
        inside &= column.codes >= 0
    domains = np.full((len(levels), len(facts)), -1, dtype=np.int32)
    ids: list[tuple[str, ...]] = []
    parents: list[tuple[int, ...]] = []
    for level in range(len(levels)):
        known: dict[tuple[str, ...], int] = {}  # by the values: a dot may be part of one
        above: list[int] = []
        for node in inside.nonzero()[0].tolist():
            values = tuple(column.values[column.codes[node]] for column in columns[: level + 1])
            if values not in known:
                known[values] = len(known)
                above.append(int(domains[level - 1, node]) if level else -1)
            domains[level, node] = known[values]
        ids.append(tuple(".".join(values) for values in known))
        parents.append(tuple(above))
    return LabelTree(levels, domains, tuple(ids), tuple(parents))
