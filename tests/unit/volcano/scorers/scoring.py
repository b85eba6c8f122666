"""One score of ``nodeorder`` by itself."""

from __future__ import annotations

from pumice.model.node import Node
from pumice.model.pod import Pod
from tests.unit.volcano.cluster import Cluster

WEIGHTS = (
    "leastrequested",
    "mostrequested",
    "balancedresource",
    "nodeaffinity",
    "podaffinity",
    "tainttoleration",
    "imagelocality",
    "podtopologyspread",
)


def only(**weights: int) -> dict[str, int]:
    """Arguments with all other scores off."""
    return {f"{name}.weight": weights.get(name, 0) for name in WEIGHTS}


def scores(nodes: list[Node], pods: list[Pod], *candidates: str, **weights: int) -> dict[str, float]:
    """Scores for the last pod."""
    return Cluster(nodes, pods, "nodeorder", **only(**weights)).scores(pods[-1].name, *candidates)
