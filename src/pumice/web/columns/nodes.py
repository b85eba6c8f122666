"""The nodes of a cycle as plain columns: what each offers and holds, its groups, and why it takes no new pod."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from pumice.columns.dtypes import F64, I32
from pumice.columns.tables import Tables
from pumice.model.node import Node
from pumice.web.columns.units import TEXT_MAX, PageUnits

#: Effects of taints that keep a pod which does not tolerate them off a node.
_KEEPS_OFF = ("NoSchedule", "NoExecute")
#: Labels that say which nodes are near each other, the narrowest first.
_GROUP_LABELS = (
    "topology.kubernetes.io/rack",
    "kubernetes.io/rack",
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
)
#: Ways to group nodes that pages offer.
GROUPINGS_MAX = 6


class Grouping(Struct, frozen=True):
    """One way to put nodes into groups, such as by rack. ``groups``: their names. ``of`` (N,): into these, -1 for
    none."""

    name: str
    groups: Sequence[str]
    of: I32


class NodeColumns(Struct, frozen=True):
    """The nodes (N). ``groupings``: the narrowest first. ``closed``: why it takes no new pod, "" if it does.
    ``offers``, ``used`` (N, resources)."""

    names: Sequence[str]
    groupings: Sequence[Grouping]
    closed: Sequence[str]
    pods: I32
    offers: F64
    used: F64


def node_columns(tables: Tables, units: PageUnits) -> NodeColumns:
    """Return the nodes of a cycle."""
    nodes, facts, tasks = tables.nodes, tables.nodes.facts, tables.tasks
    on = tasks.node[tasks.alive & (tasks.node >= 0)]
    pods = np.bincount(on, minlength=len(facts)).astype(np.int32)
    return NodeColumns(
        list(facts.names),
        list(_groupings(tables))[:GROUPINGS_MAX],
        [_closed(facts.objs[row], int(pods[row]), int(facts.max_pods[row])) for row in range(len(facts))],
        pods,
        units(np.asarray(facts.allocatable)),
        units(nodes.used),
    )


def _closed(node: Node, pods: int, pods_max: int) -> str:
    """Say why a node takes no new pod whatever that asks for, "" if it may take one."""
    if node.quarantined:
        return f"cannot be read: {node.unparsable[0]}"[:TEXT_MAX]
    if node.unschedulable:
        return "cordoned"
    taint = next((each for each in node.taints if each.effect in _KEEPS_OFF), None)
    if taint is not None:
        return f"taint {taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}"[:TEXT_MAX]
    return f"runs {pods_max} pods, which is its limit" if pods >= pods_max else ""


def _groupings(tables: Tables) -> Iterator[Grouping]:
    """Yield HyperNodes tier by tier, the levels of Topologies, and racks and zones by their labels."""
    tree, objs = tables.tree, tables.nodes.facts.objs
    for tier in tree.tiers if len(tree) > 1 else ():
        rows = [row for row in (tree.tier == tier).nonzero()[0].tolist() if row != tree.top]
        of = np.full(len(objs), -1, dtype=np.int32)
        for place, row in enumerate(rows):
            of[tree.nodes[row]] = place
        if rows:
            yield Grouping(f"HyperNodes of tier {tier}", [tree.names[row] for row in rows], of)
    levels = [level for topology in tables.topologies.objs for level in reversed(topology.levels)]
    for label in dict.fromkeys((*levels, *_GROUP_LABELS)):
        values = [node.labels.get(label) for node in objs]
        names = sorted({value for value in values if value is not None})
        # A label by which each node is alone says nothing about which are near each other.
        if names and (len(names) < len(objs) or len(objs) == 1):
            place_of = {name: place for place, name in enumerate(names)}
            places = [-1 if value is None else place_of[value] for value in values]
            yield Grouping(label, names, np.array(places, dtype=np.int32))
