"""A small example by formula: two teams and a batch queue share twelve GPU nodes in three racks for a working day."""

from __future__ import annotations

from pumice.model.node import Node
from pumice.model.pod import PodSpec
from pumice.model.queue import PriorityClass, Queue
from pumice.model.resources import PODS, Resource
from pumice.model.topology import HyperNode, HyperNodeMember
from pumice.model.workloads.podgroup import NetworkTopology
from pumice.sim.scenes.scene import Scene
from pumice.sim.workloads.work import SimJob, SimTask

RACKS, NODES_PER_RACK, GPUS = 3, 4, 8
JOBS = 120
NAMESPACE = "demo"

_GPU = "nvidia.com/gpu"
_GI = 2.0**30
_QUEUES = (("research", 3), ("production", 2), ("batch", 1))
_WORKERS = (1, 2, 4, 1, 8, 2, 12, 1, 4, 16, 2, 24)  # gang sizes in turn
_MINUTES = (12, 35, 50, 8, 90, 25, 60, 15, 45, 75, 20, 40)


def demo(jobs: int = JOBS) -> Scene:
    """Return the example cluster and its day."""
    nodes, racks = [], []
    room = Resource(64_000.0, 512 * _GI, {_GPU: 1000.0 * GPUS, PODS: 110.0}, 110)
    for r in range(RACKS):
        names = [f"rack{r}-node{n}" for n in range(NODES_PER_RACK)]
        racks.append(HyperNode(f"rack{r}", 1, tuple(HyperNodeMember("Node", exact=name) for name in names)))
        nodes += [
            Node(n, room, room, uid=n, labels={"kubernetes.io/hostname": n, "topology.kubernetes.io/rack": f"rack{r}"})
            for n in names
        ]
    top = HyperNode("hall", 2, tuple(HyperNodeMember("HyperNode", exact=rack.name) for rack in racks))
    queues = [Queue(name, weight=weight, uid=name) for name, weight in _QUEUES]
    classes = [PriorityClass("urgent", 1000), PriorityClass("normal", 100, global_default=True)]
    specs = {gpus: _spec(gpus) for gpus in (1, 2)}
    return Scene((*classes, *queues, *nodes, *racks, top), tuple(_job(j, specs) for j in range(jobs)))


def _job(j: int, specs: dict[int, PodSpec]) -> SimJob:
    """Return job number ``j``. Every fifth requests two GPUs per pod, every seventh is urgent, and big gangs must stay
    within a rack or the hall."""
    workers = _WORKERS[(5 * j) % len(_WORKERS)]
    queue = _QUEUES[(j * j + j // 3) % len(_QUEUES)][0]
    topology = NetworkTopology("hard", 1 if workers <= 16 else 2) if workers >= 8 else None
    gpus = 2 if j % 5 == 4 and workers < 8 else 1
    tasks: tuple[SimTask, ...] = (SimTask("worker", workers, specs[gpus]),)
    return SimJob(
        NAMESPACE,
        f"{queue}-{j:03d}",
        queue,
        tasks,
        min_available=workers,
        duration_s=60.0 * _MINUTES[(7 * j) % len(_MINUTES)],
        arrival_s=240.0 * j + 37.0 * (j % 11),
        priority_class="urgent" if j % 7 == 3 else "normal",
        topology=topology,
    )


def _spec(gpus: int) -> PodSpec:
    request = Resource(4000.0 * gpus, 32 * _GI * gpus, {_GPU: 1000.0 * gpus, PODS: 1.0})
    return PodSpec(request, nonzero_milli_cpu=request.milli_cpu, nonzero_memory=request.memory)
