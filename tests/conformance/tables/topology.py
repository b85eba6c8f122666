"""Checks of the function tables about the HyperNode tree.

Volcano keeps its tree up to date event by event; Pumice builds it anew from the objects. So a check replays the events
of a row on plain mappings of objects and nodes, builds, and compares what came out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from pumice.columns.topology.hypernode_members import NodeDirectory
from pumice.columns.topology.hypernodes import HyperNodeTree, build_tree, link, real_names
from pumice.model.manifest import Decoder
from pumice.model.topology import HyperNode, HyperNodeMember
from tests.conformance.tables.table import Row, disagreement, table

Raw = Mapping[str, Any]


def hypernode(raw: Raw) -> HyperNode:
    found = Decoder().decode_as("topology.volcano.sh/v1alpha1", "HyperNode", dict(raw))
    assert isinstance(found, HyperNode)
    return found


def exactly(name: str, tier: int, nodes: Iterable[str] = (), hypernodes: Iterable[str] = ()) -> HyperNode:
    """A hypernode that names its members."""
    members = [HyperNodeMember("Node", exact=node) for node in nodes]
    members += [HyperNodeMember("HyperNode", exact=each) for each in hypernodes]
    return HyperNode(name, tier, tuple(members))


class Shape(Struct, frozen=True):
    """What a tree comes to, in the words of the tables."""

    info: dict[str, str]
    by_tier: dict[str, list[str]]
    real_nodes: dict[str, list[str]]
    parents: dict[str, str]
    ready: bool


def shape(hypernodes: Iterable[HyperNode], nodes: Iterable[Raw] = ()) -> Shape:
    """The tree without the virtual top. Nodes that are named but not there count, as they do in the tables."""
    metadata = [node["metadata"] for node in nodes]
    forest = link(hypernodes)
    directory = NodeDirectory([m["name"] for m in metadata], [m.get("labels") or {} for m in metadata])
    names = [each.name for each in forest.hypernodes]
    parents = {name: names[up] if up >= 0 else "" for name, up in zip(names, forest.parent, strict=True)}
    by_tier: dict[str, list[str]] = {}
    for each in forest.hypernodes:
        by_tier.setdefault(str(each.tier), []).append(each.name)
    return Shape(
        info={
            each.name: f"Name: {each.name}, Tier: {each.tier}, TierName: {each.tier_name}, Parent: {parents[each.name]}"
            for each in forest.hypernodes
        },
        by_tier=by_tier,
        real_nodes={
            name: sorted(found) for name, found in zip(names, real_names(forest, directory), strict=True) if found
        },
        parents={name: parent for name, parent in parents.items() if parent},
        ready=not forest.errors,
    )


def _compare(found: Shape, row: Row, at: int | None = None) -> str | None:
    """The parts of the shape that the row states; ``at`` picks one of several moments."""
    stated = {
        "expectedHyperNodesInfo": found.info,
        "expectedHyperNodesListByTier": found.by_tier,
        "expectedHyperNodesSetByTier": found.by_tier,
        "expectedRealNodesSet": found.real_nodes,
        "expectedParentMap": found.parents,
        "ready": found.ready,
    }
    for key, value in stated.items():
        if key in row:
            wanted = row[key][at] if at is not None and key != "ready" else row[key]
            problem = disagreement(_sorted(value), _sorted(wanted))
            if problem:
                return f"{key}: {problem}"
    return None


def _sorted(value: object) -> object:
    if isinstance(value, dict):
        return {key: sorted(part) if isinstance(part, list) else part for key, part in value.items()}
    return value


# -- events, replayed


@table("api/TestHyperNodesInfo_UpdateHyperNode_Normal.yaml", "cache/TestSchedulerCache_AddHyperNode.yaml")
def hypernodes_added(row: Row) -> str | None:
    added = map(hypernode, [*row["initialHyperNodes"], *row.get("hypeNodesToAdd", ())])
    return _compare(shape(added, row.get("nodes", ())), row)


@table("api/TestHyperNodesInfo_UpdateHyperNode_WithCycle.yaml")
def a_cycle_corrected(row: Row) -> str | None:
    by_name = {each.name: each for each in map(hypernode, row["initialHyperNodes"])}
    if shape(by_name.values()).ready == row["expectError"]:
        return "expectError: the first tree says otherwise"
    corrected = hypernode(row["correctHyperNode"])
    found = shape((by_name | {corrected.name: corrected}).values())
    return _compare(found, row) if found.ready else "still not ready after the correction"


@table("api/TestHyperNodesInfo_UpdateHyperNode_MultipleParents.yaml")
def two_parents_corrected(row: Row) -> str | None:
    """The row leaves out the correction; what it expects says it: s2 gets s1 as its child in place of s0."""
    by_name = {each.name: each for each in map(hypernode, row["initialHyperNodes"])}
    errors = build_tree(by_name.values(), (), ()).errors
    wanted = ("HyperNode s0 already has a parent s1, and cannot set another parent s2",)
    if errors != wanted or not row["expectError"]:
        return disagreement(errors, wanted if row["expectError"] else ())
    found = shape((by_name | {"s2": exactly("s2", 3, hypernodes=("s1",))}).values())
    return _compare(found, row) if found.ready else "still not ready after the correction"


@table("cache/TestSchedulerCache_DeleteHyperNode.yaml")
def a_hypernode_deleted(row: Row) -> str | None:
    gone = row["hyperNodesToDelete"]["metadata"]["name"]
    left = [each for each in map(hypernode, row["initialHyperNodes"]) if each.name != gone]
    return _compare(shape(left), row)


@table("cache/TestSchedulerCache_Delete_Then_AddBack.yaml")
def deleted_and_added_back(row: Row) -> str | None:
    by_name = {each.name: each for each in map(hypernode, row["initialHyperNodes"])}
    again = [hypernode(raw) for raw in row["hypeNodesToDelete"]]
    left = {name: each for name, each in by_name.items() if name not in {one.name for one in again}}
    if not shape(left.values()).ready:
        return "found a tree that is not ready after the deletion"
    return _compare(shape([*left.values(), *again]), row)


@table("cache/TestSchedulerCache_UpdateHyperNode.yaml")
def hypernodes_updated(row: Row) -> str | None:
    by_name = {each.name: each for each in map(hypernode, row["initialHyperNodes"])}
    moments = {len(value) for key, value in row.items() if key.startswith("expected")}
    if moments != {len(row["hyperNodesToUpdated"])}:
        return "wanted one expectation an update"
    for i, raw in enumerate(row["hyperNodesToUpdated"]):
        changed = hypernode(raw)
        by_name[changed.name] = changed
        problem = _compare(shape(by_name.values(), row.get("nodes", ())), row, at=i)
        if problem:
            return f"after update {i}: {problem}"
    return None


@table("cache/TestSchedulerCache_SyncHyperNode.yaml")
def nodes_come_and_go(row: Row) -> str | None:
    nodes = {raw["metadata"]["name"]: raw for raw in (*row["initialNodes"], *row.get("nodeToAdd", ()))}
    for raw in row.get("nodeToDelete", ()):
        del nodes[raw["metadata"]["name"]]
    return _compare(shape(map(hypernode, row["initialHyperNodes"]), nodes.values()), row)


# -- questions to a tree


def _tree(hypernodes: Iterable[HyperNode], nodes: Iterable[str] = ()) -> HyperNodeTree:
    names = list(nodes)
    return build_tree(hypernodes, names, [{} for _ in names])


@table("api/TestHyperNodesInfo_GetAncestors.yaml")
def ancestors(row: Row) -> str | None:
    tree = _tree(map(hypernode, row["initialHyperNodes"]))
    above = tree.ancestors_of(tree.row_of[row["hyperNodeName"]]).tolist()
    return disagreement([tree.names[each] for each in above if each != tree.top], row["expectedAncestors"])


@table("api/TestHyperNodesInfo_GetLeafNodes.yaml")
def leaves(row: Row) -> str | None:
    tree = _tree(map(hypernode, row["initialHyperNodes"]))
    root = tree.row_of[row["hyperNodeName"]]
    below = [h for h in range(len(tree)) if root in tree.ancestors_of(h) and not len(tree.children[h])]
    return disagreement(sorted(tree.names[h] for h in below), sorted(row["expectedLeafNodes"]))


@table("api/TestGetLCAHyperNode.yaml")
def lowest_common_ancestor(row: Row) -> str | None:
    """The row leaves out the tree; its names say it: s0 and s1 below s4, the others alone. There the top is none."""
    alone = [exactly(name, 1) for name in ("s0", "s1", "s-orphan", "node6")]
    tree = _tree([*alone, exactly("s4", 2, hypernodes=("s0", "s1"))])
    found = tree.lca(tree.row_of[row["hypernode"]], tree.row_of[row["jobHyperNode"]])
    return disagreement("" if found in (-1, tree.top) else tree.names[found], row.get("expectedLCA", ""))


@table("api/TestGetMembers.yaml")
def members_by_selector(row: Row) -> str | None:
    """An empty selector was left out of the recording; it selects nothing, as one that is not there."""
    labels = {node["metadata"]["name"]: node["metadata"].get("labels") or {} for node in row["nodes"]}
    selector = row.get("selector")
    if selector is None:
        member = HyperNodeMember("Node")
    else:
        raw = {"metadata": {"name": "h"}, "spec": {"tier": 1, "members": [{"type": "Node", "selector": selector}]}}
        member = hypernode(raw).members[0]
    found = NodeDirectory(list(labels), list(labels.values())).names_of(member)
    return disagreement(sorted(found), sorted(row["expected"]))


@table("util/TestFindHyperNodeForNode.yaml")
def lowest_hypernode_of_a_node(row: Row) -> str | None:
    """Hypernodes of a tier that the row does not list cannot be in a tree; they are left out."""
    held = {name: [node["Name"] for node in nodes] for name, nodes in row["hyperNodes"].items()}
    by_tier = row["hyperNodesSetByTier"]
    hypernodes = [
        exactly(name, tier, held.get(name, ()))
        for tier in row["hyperNodesTiers"]
        for name in by_tier.get(str(tier), ())
    ]
    nodes = sorted({row["nodeName"], *(node for names in held.values() for node in names)})
    tree = _tree(hypernodes, nodes)
    leaf = int(tree.leaf_of[nodes.index(row["nodeName"])])
    return disagreement("" if leaf == tree.top else tree.names[leaf], row.get("expectedRes", ""))


@table("util/TestFindJobTaskNumOfHyperNode.yaml")
def tasks_in_a_hypernode(row: Row) -> str | None:
    held = {name: [node["Name"] for node in nodes] for name, nodes in row["hyperNodes"].items()}
    nodes = sorted({*row["tasks"].values(), *(node for names in held.values() for node in names)})
    tree = _tree([exactly(name, 1, held.get(name, ())) for name in {*held, row["hyperNodeName"]}], nodes)
    where = tree.row_of[row["hyperNodeName"]]
    placed = [nodes.index(node) for node in row["tasks"].values()]
    return disagreement(sum(tree.contains(where, node) for node in placed), row.get("expectedRes", 0))


@table("util/TestGetHyperNodeList.yaml")
def nodes_of_hypernodes(row: Row) -> str | None:
    """Only nodes that are there count, and a hypernode without any is not listed."""
    nodes = sorted(row["allNodes"])
    tree = _tree([exactly(name, 1, names) for name, names in row["hyperNodes"].items()], nodes)
    found = {
        tree.names[h]: [nodes[node] for node in rows.tolist()]
        for h, rows in enumerate(tree.nodes)
        if h != tree.top and np.size(rows)
    }
    return disagreement(found, {name: sorted(names) for name, names in row["expected"].items()})
