"""What typical pods could not use of the free GPUs while a cluster is filled, computed from the decisions, pod by
pod."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pumice.columns.dtypes import F64
from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.model.node import Node
from pumice.model.pod import PodSpec
from pumice.ours.fragments import WHOLE, Room, Shape, Typical
from pumice.ours.typical_pods import TypicalPods
from pumice.sim.fills.fill import FillResult, ask_of_spec, models_of
from pumice.sim.traces.shapes import GPU_MODEL_LABEL


def fragments(filled: FillResult, expected: Iterable[TypicalPods]) -> F64:
    """Return the free milli-devices that typical pods could not use after each pod. Typical are the most common of the
    ``expected`` pods. Shape (pods,)."""
    nodes, specs = filled.arrivals.nodes, filled.arrivals.specs
    models = sorted({model_of(node) for node in nodes})
    shapes = [
        Shape(each.ask, tuple(not each.models or model in each.models for model in models), each.pods)
        for each in expected
    ]
    typical = Typical(shapes, len(models))
    row_of = {node.name: row for row, node in enumerate(nodes)}
    empty = Room(
        np.array([node.allocatable.milli_cpu for node in nodes]),
        _whole(nodes),
        np.array([models.index(model_of(node)) for node in nodes]),
    )
    rows, after = _states(filled, empty, row_of)
    found = typical.fragment(after)
    last = typical.fragment(empty)
    total, change = float(last.sum()), np.zeros(len(specs))
    placed = [i for i, name in enumerate(filled.node_of) if name is not None]
    for i, row, now in zip(placed, rows, found.tolist(), strict=True):
        change[i] = now - last[row]
        last[row] = now
    return np.asarray(total + np.cumsum(change))


def may_run(spec: PodSpec, model: str) -> bool:
    """Return True if a pod names the model, or none."""
    models = models_of(spec)
    return not models or model in models


def model_of(node: Node) -> str:
    """Return the model of a node's GPUs, "" if it names none."""
    return node.labels.get(GPU_MODEL_LABEL, "")


def _whole(nodes: tuple[Node, ...]) -> F64:
    """Return all GPUs of empty nodes. Shape (N, G)."""
    counts = np.array([round(node.allocatable.get(GPU_RESOURCE) / WHOLE) for node in nodes])
    return np.where(np.arange(max(counts.max(initial=0), 1)) < counts[:, None], WHOLE, 0.0)


def _states(filled: FillResult, empty: Room, row_of: dict[str, int]) -> tuple[list[int], Room]:
    """Return for each pod that was placed its node, and the state of that node with it."""
    cores, gpus = empty.milli_cpu.tolist(), empty.gpus.tolist()
    device_of: dict[tuple[int, str], int] = {}
    rows: list[int] = []
    found_cores: list[float] = []
    found_gpus: list[list[float]] = []
    for spec, name, groups in zip(filled.arrivals.specs, filled.node_of, filled.groups, strict=True):
        if name is None:
            continue
        row, ask = row_of[name], ask_of_spec(spec)
        free = gpus[row]
        cores[row] -= ask.milli_cpu
        for k in range(ask.devices):
            key = (row, groups[k]) if groups else None
            device = device_of.get(key, -1) if key is not None else -1
            if device < 0:
                device = free.index(WHOLE)
                if key is not None:
                    device_of[key] = device
            free[device] = round(free[device] - ask.milli)
        rows.append(row)
        found_cores.append(cores[row])
        found_gpus.append(list(free))
    width = empty.gpus.shape[1]
    return rows, Room(
        np.array(found_cores), np.array(found_gpus, dtype=np.float64).reshape(-1, width), empty.model[rows]
    )
