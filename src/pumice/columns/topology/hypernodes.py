"""The tree of hypernodes: the nodes of each, its ancestors, and the lowest common ancestor of two.

``build_tree`` is a function of the HyperNode objects and the nodes. The store calls it again when one of them changed.
Errors are those that Volcano reports, which updates its tree step by step.
Source: Volcano ``HyperNodesInfo``, and ``OpenSession`` for the virtual top.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from pumice.algorithms.groups import distinct
from pumice.columns.dtypes import I32, I64
from pumice.columns.topology.hypernode_members import NodeDirectory
from pumice.model.topology import TOP_HYPERNODE, HyperNode

NONE = -1


class HyperNodeTree(Struct, frozen=True, eq=False):
    """H rows in the order (tier, name). The last one is the virtual top, which holds every node."""

    #: The objects that it was built from, in the order (tier, name).
    objs: tuple[HyperNode, ...]
    names: tuple[str, ...]
    row_of: dict[str, int]
    tier: I64
    #: The row of the parent (H,), -1 for the top only.
    parent: I32
    children: list[I32]
    #: The rows of the nodes of each, ascending.
    nodes: list[I32]
    #: For each node the hypernode of the lowest tier that holds it (N,).
    leaf_of: I32
    #: For each row the row itself and its ancestors up to the top, filled up with -1 (H, depth).
    ancestors: I32
    tiers: tuple[int, ...]
    tier_of_name: dict[str, int]
    #: False if the objects contradict each other, as ``errors`` say. Links that close a cycle or give a second parent
    #: are left out of the tree then, and no topology constraint may be treated as met.
    ready: bool
    errors: tuple[str, ...]
    #: Trees of one store with equal versions are equal.
    version: int

    def __len__(self) -> int:
        return len(self.names)

    @property
    def top(self) -> int:
        """The row of the virtual top."""
        return len(self.names) - 1

    def ancestors_of(self, hypernode: int) -> I32:
        """Return the rows from a hypernode itself up to the top."""
        chain: I32 = self.ancestors[hypernode]
        return chain[chain >= 0]

    def lca(self, a: int, b: int) -> int:
        """Return the lowest hypernode that is ``a`` or above it, and ``b`` or above it.

        If one of them is -1 (none so far), return the other one.
        """
        # So that a job's hypernode can be computed task by task, beginning with none.
        if a < 0 or b < 0:
            return max(a, b)
        above = self.ancestors[a].tolist()
        return next((row for row in self.ancestors[b].tolist() if row in above), NONE)

    def meeting(self, hypernode: int) -> I32:
        """Return ``lca`` of a hypernode with each of all hypernodes. Shape (H,)."""
        # One element more than rows, for the -1 with which ``ancestors`` is filled up.
        above = np.zeros(len(self) + 1, dtype=bool)
        above[self.ancestors_of(hypernode)] = True
        shared = above[self.ancestors]
        found: I32 = np.where(shared.any(axis=1), self.ancestors[np.arange(len(self)), shared.argmax(axis=1)], NONE)
        return found

    def contains(self, hypernode: int, node: int) -> bool:
        """Return True if the hypernode holds the node."""
        rows = self.nodes[hypernode]
        place = int(np.searchsorted(rows, node))
        return place < len(rows) and int(rows[place]) == node


def build_tree(
    hypernodes: Iterable[HyperNode],
    node_names: Sequence[str],
    node_labels: Sequence[Mapping[str, str]],
    version: int = 0,
) -> HyperNodeTree:
    """Return the tree over these nodes. Members that do not exist (yet) are ignored."""
    objs = tuple(sorted(hypernodes, key=lambda hypernode: (hypernode.tier, hypernode.name)))
    forest = link(objs)
    directory = NodeDirectory(node_names, node_labels)
    rows = [directory.rows(names) for names in real_names(forest, directory)]
    return _with_top(objs, forest, rows, len(node_names), version)


# -- parents and children


class Forest(Struct, frozen=True):
    """HyperNodes in the order (tier, name) with their parents and children. ``parent`` is -1 for a root."""

    hypernodes: tuple[HyperNode, ...]
    row_of: dict[str, int]
    parent: list[int]
    children: list[list[int]]
    errors: tuple[str, ...]

    def chain(self, row: int) -> list[int]:
        """Return the row and its ancestors."""
        found = []
        while row != NONE:
            found.append(row)
            row = self.parent[row]
        return found


def link(hypernodes: Iterable[HyperNode]) -> Forest:
    """Link HyperNodes by their exactMatch members of type HyperNode.

    A link that closes a cycle or gives a second parent is reported as an error and left out.
    """
    given = sorted(hypernodes, key=lambda hypernode: (hypernode.tier, hypernode.name))
    errors: list[str] = []
    kept: dict[str, HyperNode] = {}
    for hypernode in given:
        if hypernode.name == TOP_HYPERNODE:
            errors.append(f"HyperNode {TOP_HYPERNODE}: the name is taken by the virtual top")
        elif hypernode.name in kept:
            errors.append(f"HyperNode {hypernode.name} is given twice")
        else:
            kept[hypernode.name] = hypernode
    row_of = {name: row for row, name in enumerate(kept)}
    forest = Forest(tuple(kept.values()), row_of, [NONE] * len(kept), [[] for _ in kept], ())
    for parent, child in _wanted_links(forest):
        problem = _problem(forest, parent, child)
        if problem:
            errors.append(problem)
        elif forest.parent[child] == NONE:
            forest.parent[child] = parent
            forest.children[parent].append(child)
    return Forest(forest.hypernodes, row_of, forest.parent, forest.children, tuple(dict.fromkeys(errors)))


def _wanted_links(forest: Forest) -> list[tuple[int, int]]:
    """Return the pairs (parent, child) of all members."""
    # Links to a child of the same or a higher tier come last: if links contradict each other, the first one is kept,
    # and these are the ones that are probably wrong.
    links = [
        (parent, forest.row_of[member.exact])
        for parent, hypernode in enumerate(forest.hypernodes)
        for member in hypernode.members
        if member.type == "HyperNode" and member.exact is not None and member.exact in forest.row_of
    ]
    tiers = [hypernode.tier for hypernode in forest.hypernodes]
    return sorted(links, key=lambda pair: tiers[pair[0]] <= tiers[pair[1]])


def _problem(forest: Forest, parent: int, child: int) -> str:
    name = [hypernode.name for hypernode in (forest.hypernodes[parent], forest.hypernodes[child])]
    chain = forest.chain(parent)
    if child in chain:
        between = sorted(forest.hypernodes[row].name for row in chain[: chain.index(child) + 1])
        return f"cyclic dependency detected: HyperNode {name[1]} is already in the ancestor chain [{' '.join(between)}]"
    holder = forest.parent[child]
    if holder not in (NONE, parent):
        first = forest.hypernodes[holder].name
        return f"HyperNode {name[1]} already has a parent {first}, and cannot set another parent {name[0]}"
    return ""


def real_names(forest: Forest, directory: NodeDirectory) -> list[set[str]]:
    """Return the names of the nodes below each hypernode, by its own members and those of its children.

    Names of nodes that do not exist are among them.
    """
    found = [directory.names(hypernode.members) for hypernode in forest.hypernodes]
    # The deepest first, so that a child is complete before it is added to its parent.
    depth = [len(forest.chain(row)) for row in range(len(found))]
    for row in sorted(range(len(found)), key=lambda row: -depth[row]):
        if forest.parent[row] != NONE:
            found[forest.parent[row]] |= found[row]
    return found


# -- the columns


def _with_top(
    objs: tuple[HyperNode, ...], forest: Forest, rows: list[I32], node_count: int, version: int
) -> HyperNodeTree:
    """Return the tree with a virtual top, one tier above all others, as the parent of every root."""
    top = len(forest.hypernodes)
    tier = np.array([hypernode.tier for hypernode in forest.hypernodes], dtype=np.int64)
    tier = np.append(tier, max(int(tier.max(initial=0)) + 1, 1))
    parent = np.array([top if up == NONE else up for up in forest.parent] + [NONE], dtype=np.int32)
    roots = [row for row, up in enumerate(forest.parent) if up == NONE]
    nodes = [*rows, np.arange(node_count, dtype=np.int32)]
    names = (*(hypernode.name for hypernode in forest.hypernodes), TOP_HYPERNODE)
    leaf_of = np.full(node_count, top, dtype=np.int32)
    # Backwards, so that for a node in several hypernodes the one of the lowest tier, then of the first name, remains.
    for row in range(top - 1, -1, -1):
        leaf_of[nodes[row]] = row
    return HyperNodeTree(
        objs=objs,
        names=names,
        row_of={name: row for row, name in enumerate(names)},
        tier=tier,
        parent=parent,
        children=[np.array(sorted(below), dtype=np.int32) for below in (*forest.children, roots)],
        nodes=nodes,
        leaf_of=leaf_of,
        ancestors=_ancestors(forest, top),
        tiers=tuple(distinct(tier).tolist()),
        tier_of_name={each.tier_name: each.tier for each in forest.hypernodes if each.tier_name},
        ready=not forest.errors,
        errors=forest.errors,
        version=version,
    )


def _ancestors(forest: Forest, top: int) -> I32:
    chains = [[*forest.chain(row), top] for row in range(top)] + [[top]]
    found = np.full((top + 1, max(map(len, chains))), NONE, dtype=np.int32)
    for row, chain in enumerate(chains):
        found[row, : len(chain)] = chain
    return found
