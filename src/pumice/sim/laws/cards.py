"""S13: no card that pods share is overcommitted, according to the annotations of nodes and pods about vGPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pumice.model.devices.shared_devices import ASSIGNED_IDS_ANNOTATION, REGISTER_ANNOTATION
from pumice.model.node import Node
from pumice.model.pod import Pod

_CORES = 100


def overcommitted_card(nodes: Mapping[str, Node], placed: Iterable[Pod]) -> str:
    """Return a sentence about the first overcommitted card, "" if there is none."""
    held: dict[tuple[str, str], list[tuple[int, int, str]]] = {}
    for pod in placed:
        for entry in pod.annotations.get(ASSIGNED_IDS_ANNOTATION, "").replace(";", ":").split(":"):
            name, *fields = entry.split(",")
            if len(fields) == 3 and fields[1].isdecimal() and fields[2].isdecimal():
                part = int(fields[1]), int(fields[2]), pod.key
                held.setdefault((pod.node_name, name.partition("[")[0]), []).append(part)
    for (node, card), parts in held.items():
        count, memory = _card(nodes.get(node), card)
        used, cores = sum(part[0] for part in parts), sum(part[1] for part in parts)
        if used > memory or cores > _CORES or len(parts) > count:
            by = ", ".join(sorted(part[2] for part in parts)[:5])
            what = f"memory {used} of {memory}, {cores} cores, {len(parts)} of {count}"
            return f"card {card} of node {node} has {what}: {by}"
    return ""


def _card(node: Node | None, name: str) -> tuple[int, int]:
    """Return how many containers may share a card, and its memory; (0, 0) if the node does not list the card."""
    listed = node.annotations.get(REGISTER_ANNOTATION, "") if node is not None else ""
    fields = next((each.split(",") for each in listed.split(":") if each.partition(",")[0] == name), [])
    return (int(fields[1]), int(fields[2])) if len(fields) > 2 else (0, 0)
