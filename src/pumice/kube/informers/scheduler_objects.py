"""Which objects of a cluster count for this scheduler. Of kinds that are not named here, all do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pumice.kube.api.kinds import NODES, Kind
from pumice.kube.scheduler.languages import POOLED, NodePool
from pumice.model.node import Node


def taken(pool: NodePool | None, node_labels: Sequence[tuple[str, str]]) -> dict[Kind, Callable[[Any], bool]]:
    """Return a function by kind. ``pool``: a shard of KAI. ``node_labels``: Volcano's ``--node-selector``. A node must
    satisfy both."""
    found: dict[Kind, Callable[[Any], bool]] = {} if pool is None else dict.fromkeys(POOLED, pool.takes)

    def takes(node: Node) -> bool:
        return (pool is None or pool.takes(node)) and has_one_of(node, node_labels)

    return {**found, NODES: takes} if node_labels else found


def has_one_of(node: Node, labels: Iterable[tuple[str, str]]) -> bool:
    """Return True if a node has one of the labels (key, value)."""
    return any(node.labels.get(key) == value for key, value in labels)
