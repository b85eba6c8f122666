"""Build Topologies as trees of domains: sets of nodes with equal values of a Topology's first labels. Source: KAI
topology plugin (topology_structs).
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from pumice.columns.dtypes import I32
from pumice.columns.tables import Tables
from pumice.framework.cycle.session import Session
from pumice.model.topology import Topology
from pumice.model.workloads.gang import TopologyConstraint
from pumice.placing.derived import Derived, derived


class LabelTree(Struct, frozen=True):
    """Domains of a Topology over all nodes. ``topology``: its levels, and the aliases that constraints may use.

    ``domains`` (levels, N): domain of each node at each level, -1 for nodes that lack any of the labels. ``ids``: per
    level, the name of each domain, its label values joined by dots; two domains may have equal names. ``parents``: per
    level, the domain of the level above that contains each domain.
    """

    topology: Topology
    domains: I32
    ids: tuple[tuple[str, ...], ...]
    parents: tuple[tuple[int, ...], ...]

    @property
    def levels(self) -> tuple[str, ...]:
        """Keys of node labels, the widest first."""
        return self.topology.levels

    def level(self, name: str) -> int:
        """Return the index of the level with this label or alias, -1 if the tree does not have it."""
        label = self.topology.label(name)
        return self.levels.index(label) if label in self.levels else -1


def node_label(tables: Tables, topology: str, level: str) -> str:
    """Return the node label of a level of a constraint, which may name it by an alias."""
    found = _named(tables, topology)
    return found.label(level) if found is not None else level


def label_tree(ssn: Session, constraint: TopologyConstraint) -> LabelTree | None:
    """Return the tree of the constraint's Topology over all nodes, or None if the Topology does not exist.

    A constraint without a Topology, which Kubernetes' own PodGroups have, is about the domains of one node label.
    """
    return label_tree_of(ssn.tables, derived(ssn), constraint)


def label_tree_of(tables: Tables, facts: Derived, constraint: TopologyConstraint) -> LabelTree | None:
    """Return what ``label_tree`` returns, without a session."""
    topology: Topology | None = Topology("", (constraint.required,))
    if constraint.topology:
        topology = _named(tables, constraint.topology)
    if topology is None:
        return None
    # Keyed by the labels and not by the name: the tree depends only on them and on node labels, so it survives other
    # changes.
    levels = Topology("", topology.levels, aliases=topology.aliases)
    return facts.get(("label tree", levels), lambda: _build(facts, levels))


def _named(tables: Tables, name: str) -> Topology | None:
    """Return the Topology with this name, or None."""
    table = tables.topologies
    return next((table.objs[row] for row in range(table.capacity) if name and table.objs[row].name == name), None)


def _build(facts: Derived, topology: Topology) -> LabelTree:
    """Build the tree of the levels of a Topology."""
    levels = topology.levels
    columns = [facts.label(key) for key in levels]
    # A node without one of the labels is in no domain at any level, because the domains above it would be unknown.
    inside = np.ones(len(facts), dtype=bool)
    for column in columns:
        inside &= column.codes >= 0
    domains = np.full((len(levels), len(facts)), -1, dtype=np.int32)
    ids: list[tuple[str, ...]] = []
    parents: list[tuple[int, ...]] = []
    for level in range(len(levels)):
        # Keyed by the values and not by the joined name, since a label value may contain dots.
        numbers: dict[tuple[str, ...], int] = {}
        above: list[int] = []
        for node in inside.nonzero()[0].tolist():
            values = tuple(column.values[column.codes[node]] for column in columns[: level + 1])
            if values not in numbers:
                numbers[values] = len(numbers)
                above.append(int(domains[level - 1, node]) if level else -1)
            domains[level, node] = numbers[values]
        ids.append(tuple(".".join(values) for values in numbers))
        parents.append(tuple(above))
    return LabelTree(topology, domains, tuple(ids), tuple(parents))
