"""Tier and node sets that a case states itself, where they differ from what its HyperNode objects imply."""

from __future__ import annotations

import dataclasses

import numpy as np
from msgspec.structs import replace

from pumice.columns.snapshot import Snapshot
from tests.conformance.runner.case import Raw
from tests.conformance.runner.result import NotYet


def override_topology(snapshot: Snapshot, stated: Raw | None) -> Snapshot:
    """The snapshot with hypernodes that have the nodes that are stated; parents stay as the objects say.

    Raises: NotYet when other tiers or other hypernodes are stated than the objects have.
    """
    if stated is None:
        return snapshot
    tree = snapshot.tables.tree
    tiers = {name: int(tree.tier[row]) for name, row in tree.row_of.items() if row != tree.top}
    if {name: tier for tier, names in stated["tiers"].items() for name in names} != tiers:
        raise NotYet("topology with other tiers than the HyperNode objects have")
    if set(stated.get("hyperNodesInMap", tiers)) != set(tiers):
        raise NotYet("topology with other hypernodes than the HyperNode objects")
    row_of = snapshot.tables.nodes.facts.row_of
    nodes = list(tree.nodes)
    for name, held in stated["realNodes"].items():
        nodes[tree.row_of[name]] = np.array(sorted(row_of[node] for node in held if node in row_of), dtype=np.int32)
    leaf_of = np.full(len(row_of), tree.top, dtype=np.int32)
    for hypernode in reversed(range(len(tree))):  # rows go up by tier: the lowest is written last
        leaf_of[nodes[hypernode]] = hypernode
    return replace(
        snapshot, tables=dataclasses.replace(snapshot.tables, tree=replace(tree, nodes=nodes, leaf_of=leaf_of))
    )
