"""Clusters and workloads by seed. Each job could run alone on its cluster, so in the end every one must have run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from msgspec.structs import replace

from pumice.model.manifest import Decoder
from pumice.model.node import Node
from pumice.model.pod import GROUP_NAME_ANNOTATION, Pod, PodSpec
from pumice.model.queue import PriorityClass, Queue
from pumice.model.resources import PODS, Resource
from pumice.model.topology import HyperNode, HyperNodeMember
from pumice.model.workloads.podgroup import NetworkTopology, PodGroup, SubGroupPolicy
from pumice.sim.scenes.manifests import scene_of
from pumice.sim.scenes.scene import Scene
from pumice.sim.workloads.spans import ARRIVAL_ANNOTATION, DURATION_ANNOTATION
from pumice.sim.workloads.work import LooseGang, SimJob, SimTask
from pumice.testing.devices import shared_gpus, vgpu
from pumice.volcano.table import DEFAULT_CONF

GPU = "nvidia.com/gpu"
JOBS = 40
LAST_ARRIVAL_S = 2000.0

POLICIES = {
    "default": DEFAULT_CONF,
    "topology": DEFAULT_CONF + "  - name: network-topology-aware\n",
    "binpack": DEFAULT_CONF + "  - name: binpack\n",
    "hierarchy": DEFAULT_CONF.replace("  - name: drf\n", "  - name: drf\n    enableHierarchy: true\n").replace(
        "  - name: proportion\n", ""
    ),
    "bare": 'actions: "allocate, backfill"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n',
}

SHARES_CARDS = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: deviceshare
    arguments: {deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: binpack, deviceshare.ScheduleWeight: 10}
"""

SPECS = [
    PodSpec(Resource(1000.0 * cpu, 2.0**30 * memory, {GPU: 1000.0 * gpu, PODS: 1.0} if gpu else {PODS: 1.0}))
    for cpu, memory, gpu in ((1, 1, 0), (2, 4, 1), (4, 8, 2), (8, 8, 4))
]
CLASSES = (PriorityClass("low", 10), PriorityClass("high", 1000))


def racks(rng: np.random.Generator) -> Scene:
    """Two queues by weight; jobs of one or two roles, some elastic, some that must stay within one of two racks."""
    queues = (Queue("left", weight=2, uid="left"), Queue("right", weight=1, uid="right"))
    return Scene((*CLASSES, *queues, *_nodes(8), *_racks(8)), tuple(_job(rng, j, hard_share=0.4) for j in range(JOBS)))


def limits(rng: np.random.Generator) -> Scene:
    """Queues that may have half of the cluster at most, one with a guarantee, one with a place in a hierarchy."""
    room = Resource(64_000.0, 2.0**38, {GPU: 32_000.0})
    little = Resource(16_000.0, 2.0**36)
    queues = (
        Queue("left", capability=room, annotations=_place("root/ml/left", "100/2/50"), uid="left"),
        Queue("right", weight=3, guarantee=little, annotations=_place("root/ml/right", "100/2/50"), uid="right"),
    )
    return Scene((*CLASSES, *queues, *_nodes(8)), tuple(_job(rng, j) for j in range(JOBS)))


def sub_gangs(rng: np.random.Generator) -> Scene:
    """PodGroups of parts: each part keeps to a rack of its own choice, and so many parts must run."""
    queue = Queue("left", uid="left")
    gangs = tuple(_parts(rng, j, parts=int(rng.integers(1, 4)), size=int(rng.integers(1, 4))) for j in range(JOBS))
    return Scene((*CLASSES, queue, *_nodes(8), *_racks(8)), gangs)


def manifests(rng: np.random.Generator) -> Scene:
    """Volcano Jobs of YAML's shape: selectors, tolerations, ports, anti-affinity, spread, pods that ask for nothing."""
    decoder = Decoder()
    return scene_of(decoder.decode(raw) for raw in raw_objects(rng))


def shared_cards(rng: np.random.Generator) -> Scene:
    """Gangs whose pods share cards, of more memory and cores than there is at a time."""
    each = [
        SimJob(
            "ns",
            f"job-{j:02d}",
            "left",
            (SimTask("worker", size := int(rng.integers(1, 4)), _on_cards(rng)),),
            size,
            duration_s=float(rng.integers(10, 300)),
            arrival_s=float(rng.uniform(0, LAST_ARRIVAL_S)),
            priority_class="high" if rng.random() < 0.3 else "low",
        )
        for j in range(JOBS)
    ]
    nodes = [shared_gpus(f"n{i}", 2) for i in range(3)]
    return Scene((*CLASSES, Queue("left", uid="left"), *nodes), tuple(each))


def _on_cards(rng: np.random.Generator) -> PodSpec:
    ask = vgpu(int(rng.choice((4000, 9000, 16_000))), int(rng.integers(1, 3)), int(rng.choice((0, 30, 100))))
    return replace(SPECS[0], devices=ask)


SCENES: dict[str, Callable[[np.random.Generator], Scene]] = {
    "racks": racks,
    "limits": limits,
    "sub-gangs": sub_gangs,
    "manifests": manifests,
}


def _nodes(count: int) -> list[Node]:
    room = Resource(16_000.0, 2.0**36, {GPU: 8000.0, PODS: 20.0}, 20)
    return [Node(f"n{i}", room, room, uid=f"n{i}") for i in range(count)]


def _racks(nodes: int) -> list[HyperNode]:
    half = nodes // 2
    return [
        HyperNode(f"rack{r}", 1, tuple(HyperNodeMember("Node", exact=f"n{half * r + k}") for k in range(half)))
        for r in range(2)
    ]


def _place(path: str, weights: str) -> dict[str, str]:
    return {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}


def _job(rng: np.random.Generator, j: int, hard_share: float = 0.0) -> SimJob:
    tasks = [SimTask("worker", int(rng.integers(1, 7)), SPECS[int(rng.integers(len(SPECS)))])]
    if rng.random() < 0.3:
        tasks.append(SimTask("ps", int(rng.integers(1, 3)), SPECS[0]))
    total = sum(task.replicas for task in tasks)
    return SimJob(
        "ns",
        f"job-{j:02d}",
        "left" if rng.random() < 0.5 else "right",
        tuple(tasks),
        total if rng.random() < 0.7 else int(rng.integers(1, total + 1)),
        duration_s=float(rng.integers(10, 300)),
        arrival_s=float(rng.uniform(0, LAST_ARRIVAL_S)),
        priority_class="high" if rng.random() < 0.3 else "low",
        topology=NetworkTopology("hard", 1) if rng.random() < hard_share else None,
    )


def _spans(rng: np.random.Generator) -> dict[str, str]:
    arrival, duration = rng.uniform(0, LAST_ARRIVAL_S), rng.integers(10, 300)
    return {ARRIVAL_ANNOTATION: f"{arrival:.3f}s", DURATION_ANNOTATION: f"{duration}s"}


def _parts(rng: np.random.Generator, j: int, parts: int, size: int) -> LooseGang:
    name = f"gang-{j:02d}"
    wanted = int(rng.integers(1, parts + 1))
    policy = SubGroupPolicy(
        "part",
        sub_group_size=size,
        min_sub_groups=wanted,
        match_label_keys=("part",),
        topology=NetworkTopology("hard", 1) if rng.random() < 0.7 else None,
    )
    group = PodGroup("ns", name, name, "left", wanted * size, sub_groups=(policy,), annotations=_spans(rng))
    spec = SPECS[int(rng.integers(3))]
    pods = [
        Pod(
            "ns",
            f"{name}-{p}-{i}",
            f"{name}-{p}-{i}",
            spec,
            labels={"part": str(p)},
            annotations={GROUP_NAME_ANNOTATION: name},
            owner=("Custom", name, name),
        )
        for p in range(parts)
        for i in range(size)
    ]
    return LooseGang(group, tuple(pods))


def raw_objects(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    yield _raw("scheduling.volcano.sh/v1beta1", "Queue", "left", spec={"weight": 1})
    for i in range(6):
        labels = {"kubernetes.io/hostname": f"n{i}", "zone": f"z{i % 2}"}
        room = {"cpu": "16", "memory": "64Gi", "pods": "20"}
        taints = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}] if i == 5 else []
        yield _raw("v1", "Node", f"n{i}", labels=labels, spec={"taints": taints}, status={"allocatable": room})
    for j in range(JOBS):
        yield _raw_job(rng, f"job-{j:02d}")


def _raw(api: str, kind: str, name: str, labels: Any = None, annotations: Any = None, **rest: Any) -> dict[str, Any]:
    metadata = {"name": name, "uid": name, "labels": labels or {}, "annotations": annotations or {}}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **rest}


def _raw_job(rng: np.random.Generator, name: str) -> dict[str, Any]:
    replicas = int(rng.integers(1, 5))
    requests = {"cpu": str(int(rng.integers(1, 5))), "memory": "2Gi"} if rng.random() < 0.85 else {}
    container: dict[str, Any] = {"name": "main", "resources": {"requests": requests}}
    mine = {"matchLabels": {"app": name}}
    pod: dict[str, Any] = {"containers": [container]}
    match int(rng.integers(6)):
        case 0:
            pod["nodeSelector"] = {"zone": f"z{int(rng.integers(2))}"}
        case 1:
            pod["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
        case 2:
            container["ports"] = [{"containerPort": 80, "hostPort": 8000}]
        case 3:
            term = {"labelSelector": mine, "topologyKey": "kubernetes.io/hostname"}
            pod["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        case 4:
            spread = {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": mine}
            pod["topologySpreadConstraints"] = [spread]
    task = {"name": "worker", "replicas": replicas, "template": {"metadata": {"labels": {"app": name}}, "spec": pod}}
    minimum = replicas if rng.random() < 0.7 else 1
    spec = {"queue": "left", "minAvailable": minimum, "schedulerName": "volcano", "tasks": [task]}
    return _raw("batch.volcano.sh/v1alpha1", "Job", name, annotations=_spans(rng), spec=spec)
