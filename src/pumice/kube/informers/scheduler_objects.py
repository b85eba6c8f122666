"""Which objects of a cluster count for this scheduler; of the kinds that are not named here all do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pumice.kube.api.kinds import NODES, Kind
from pumice.kube.scheduler.languages import POOLED, NodePool
from pumice.model.node import Node


def taken(pool: NodePool | None, node_labels: Sequence[tuple[str, str]]) -> dict[Kind, Callable[[Any], bool]]:
    """By kind. ``pool``: a shard of KAI's; ``node_labels``: Volcano's ``--node-selector``. Both must take a node."""
    found: dict[Kind, Callable[[Any], bool]] = {} if pool is None else dict.fromkeys(POOLED, pool.takes)

    def takes(node: Node) -> bool:
        return (pool is None or pool.takes(node)) and has_one_of(node, node_labels)

    return {**found, NODES: takes} if node_labels else found


def has_one_of(node: Node, labels: Iterable[tuple[str, str]]) -> bool:
    """Whether a node has one of some (key, value)."""
    return any(node.labels.get(key) == value for key, value in labels)
