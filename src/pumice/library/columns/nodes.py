"""Nodes and their sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pumice.library.column import count, number, text
from pumice.model.node import Node
from pumice.model.resources import PODS
from pumice.reasons.words import per_unit
from pumice.sim.measures.node_usage import amounts_of

_GPUS = ("nvidia.com/gpu", "amd.com/gpu")
NODE_COLUMNS = (
    text("node", "name"),
    number("cpu", "cores", "allocatable cores"),
    number("memory", "GiB", "allocatable memory"),
    number("gpu", "GPUs", "allocatable GPUs of the kinds nvidia.com/gpu and amd.com/gpu"),
    count("pods", "pods", "how many pods it takes; missing if it says nothing"),
    text("others", "other resources, name=amount"),
)
RUN_NODE_COLUMNS = (
    *NODE_COLUMNS,
    number("busy", "share 0 to 1", "mean of its dominant share over the run; neighbours share a value above 256 nodes"),
)


def node_rows(nodes: Iterable[Node]) -> list[tuple[object, ...]]:
    return [_row(node) for node in nodes]


def run_node_rows(nodes: Iterable[Node], busy: Mapping[str, float]) -> list[tuple[object, ...]]:
    """``busy``: mean share by node."""
    return [(*_row(node), busy.get(node.name)) for node in nodes]


def _row(node: Node) -> tuple[object, ...]:
    amounts = {name: amount / per_unit(name) for name, amount in amounts_of(node.allocatable)}
    pods = amounts.pop(PODS, None)
    gpu = sum(amounts.pop(name, 0.0) for name in _GPUS)
    cpu, memory = amounts.pop("cpu", 0.0), amounts.pop("memory", 0.0)
    others = ", ".join(f"{name}={amount:g}" for name, amount in sorted(amounts.items()))
    return node.name, cpu, memory, gpu, round(pods) if pods else None, others
