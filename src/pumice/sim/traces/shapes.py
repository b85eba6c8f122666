"""Shapes of pods and nodes by their amounts, and the text of ``--nodes``. Equal shapes are one object."""

from __future__ import annotations

import re

from pumice.model.devices.gpu import GpuShare
from pumice.model.node import Node
from pumice.model.pod import NO_AFFINITY, Affinity, NodeSelectorTerm, PodSpec, Requirement
from pumice.model.quantity import QuantityError
from pumice.model.resources import CPU, MEMORY, PODS, Resource
from pumice.sim.traces.trace import TraceError, spelling_hint

GPU = "nvidia.com/gpu"
GPU_MODEL_LABEL = "nvidia.com/gpu.product"  # as NVIDIA's feature discovery labels nodes
HOSTNAME_LABEL = "kubernetes.io/hostname"
PODS_PER_NODE = 110
NODES_MAX = 100_000
GI = 2**30
#: Cores and GiB per GPU of a node in ``125x4gpu``: enough that GPUs are used up first.
CPU_PER_GPU = 16
MEMORY_GI_PER_GPU = 256

_SHORT = re.compile(r"(\d{1,9})x(\d{1,9})gpu")
_COUNT = re.compile(r"\d{1,9}")
_KEYS = {"cpu": CPU, "memory": MEMORY, "gpu": GPU, "pods": PODS}
_FORM = "wanted COUNT:cpu=32,memory=256Gi,gpu=4 or COUNTxGPUSgpu such as 125x4gpu, groups separated by ;"


def amounts(milli_cpu: float, memory: float, gpus: float = 0.0, pods: float = 0.0) -> Resource:
    """Return an amount of milli-cores, bytes, whole GPUs and pods."""
    scalars = {}
    if gpus:
        scalars[GPU] = 1000.0 * gpus
    if pods:
        scalars[PODS] = float(pods)
    return Resource(float(milli_cpu), float(memory), scalars or None, int(pods) if pods > 1 else 0)


class Shapes:
    """Pod specs by requests. Jobs of one shape share a spec, by which the core groups tasks."""

    def __init__(self) -> None:
        self._specs: dict[tuple[float, float, float, tuple[str, ...], float], PodSpec] = {}

    def pod(
        self, milli_cpu: float, memory: float, gpus: float = 0.0, models: tuple[str, ...] = (), fraction: float = 0.0
    ) -> PodSpec:
        """Return the spec of a pod with these requests, on nodes of these GPU models only (any if none is named).
        ``fraction``: share of one GPU, in addition to whole ones."""
        key = (milli_cpu, memory, gpus, models, fraction)
        spec = self._specs.get(key)
        if spec is None:
            spec = self._specs[key] = PodSpec(
                request=amounts(milli_cpu, memory, gpus, pods=1),
                nonzero_milli_cpu=float(milli_cpu),
                nonzero_memory=float(memory),
                affinity=_on_models(models) if models else NO_AFFINITY,
                gpu_share=GpuShare(fraction) if fraction else None,
            )
        return spec


def _on_models(models: tuple[str, ...]) -> Affinity:
    return Affinity(node_required=(NodeSelectorTerm((Requirement(GPU_MODEL_LABEL, "In", models),)),))


def node_of(name: str, room: Resource, model: str = "") -> Node:
    """Return a node with its host name and, if known, its GPU model as labels."""
    labels = {HOSTNAME_LABEL: name}
    if model:
        labels[GPU_MODEL_LABEL] = model
    return Node(name=name, allocatable=room, capacity=room, uid=name, labels=labels)


def uniform_nodes(count: int, room: Resource, first: int = 0) -> list[Node]:
    """Return equal nodes, named from ``node-00000``."""
    return [node_of(f"node-{i:05d}", room) for i in range(first, first + count)]


def parse_nodes(text: str) -> list[Node]:
    """Return the nodes that ``--nodes`` describes: groups separated by ``;``, each a count and what one node has.

    ``125:cpu=32,memory=256Gi,gpu=4`` names amounts as Kubernetes quantities; ``gpu`` is ``nvidia.com/gpu``, other
    resources have their full name, ``pods`` is 110 unless given. ``125x4gpu`` is short for 4 GPUs, 64 cores and 1 TiB
    on each of 125 nodes. Raises: TraceError with what was found and what is wanted.
    """
    nodes: list[Node] = []
    for group in text.split(";"):
        count, room = _group(group.strip())
        if len(nodes) + count > NODES_MAX:
            raise TraceError(f"--nodes {_cut(text)}: found more than {NODES_MAX:,} nodes")
        nodes += uniform_nodes(count, room, first=len(nodes))
    return nodes


def _group(group: str) -> tuple[int, Resource]:
    short = _SHORT.fullmatch(group)
    if short:
        gpus = int(short[2])
        return _count(short[1], group), amounts(
            1000 * CPU_PER_GPU * gpus, MEMORY_GI_PER_GPU * GI * gpus, gpus, PODS_PER_NODE
        )
    count, colon, rest = group.partition(":")
    if not colon or not rest.strip():
        raise TraceError(f"--nodes: found {_cut(group)}, {_FORM}")
    return _count(count.strip(), group), _room(rest)


def _count(text: str, group: str) -> int:
    count = int(text) if _COUNT.fullmatch(text) else 0
    if not 1 <= count <= NODES_MAX:
        raise TraceError(f"--nodes {_cut(group)}: found a count of {_cut(text)}, wanted 1 to {NODES_MAX:,}")
    return count


def _room(text: str) -> Resource:
    named: dict[str, str] = {PODS: str(PODS_PER_NODE)}
    given: set[str] = set()
    for entry in text.split(","):
        key, equals, value = (part.strip() for part in entry.partition("="))
        name = _KEYS.get(key, key if "/" in key else "")
        if not equals or not name:
            hint = spelling_hint(key, _KEYS) if equals else ""
            raise TraceError(
                f"--nodes: found {_cut(entry.strip())}{hint}, wanted cpu=, memory=, gpu=, pods= or a full resource name"
            )
        if name in given:
            raise TraceError(f"--nodes: found {_cut(key)} twice")
        given.add(name)
        named[name] = value
    try:
        room = Resource.from_list(named)
    except QuantityError as error:
        raise TraceError(f"--nodes: {error}") from None
    if room.milli_cpu < 0 or room.memory < 0 or any(amount < 0 for amount in (room.scalars or {}).values()):
        raise TraceError(f"--nodes {_cut(text)}: found a negative amount")
    return room


def _cut(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "…")
