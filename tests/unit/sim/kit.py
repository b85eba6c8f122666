"""What the tests of this folder share: small objects, a first-fit scheduler, the place of the shared data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from pumice.model.decisions import Bind, Decision, PodGroupUpdate
from pumice.model.events import PodsSeen, Seen
from pumice.model.node import Node
from pumice.model.pod import Pod, PodSpec
from pumice.model.queue import Queue
from pumice.model.resources import PODS, Resource
from pumice.model.status import PodGroupPhase
from pumice.sim.cluster import SimCluster
from pumice.sim.controller import Controller
from pumice.sim.engine import Engine
from pumice.sim.workloads.work import SimJob, SimTask
from pumice.sim.world import CycleReport, Simulation

SHARED = Path(os.environ.get("PUMICE_SHARED") or Path(__file__).parents[4] / "shared")
WITHOUT_SHARED = f"no shared data at {SHARED}: put `shared` beside the checkout or set PUMICE_SHARED"


def resource(cpu: float, pods: float = 1.0) -> Resource:
    return Resource(1000.0 * cpu, 0.0, {PODS: pods}, int(pods) if pods > 1 else 0)


SPECS = {cpu: PodSpec(resource(cpu)) for cpu in (1, 2, 4)}


def node(name: str, cpu: float = 4) -> Node:
    return Node(name, resource(cpu, 110), resource(cpu, 110), uid=name)


def pod(name: str, cpu: int = 1, **changes: object) -> Pod:
    return Pod("ns", name, f"uid-{name}", SPECS[cpu], **changes)  # type: ignore[arg-type]


def job(
    name: str,
    size: int,
    *,
    seconds: float = 60,
    at: float = 0,
    cpu: int = 1,
    minimum: int | None = None,
    waits: bool = False,
) -> SimJob:
    """``waits``: its pods are made when its PodGroup is admitted."""
    tasks = (SimTask("worker", size, SPECS[cpu]),)
    least = size if minimum is None else minimum
    return SimJob("ns", name, "default", tasks, least, seconds, at, waits_for_admission=waits)


def world(*nodes: Node, **options: float) -> tuple[SimCluster, Controller]:
    """A cluster of these nodes and the queue ``default``, and its controller."""
    cluster = SimCluster(Engine(), **options)
    for each in nodes:
        cluster.put(each)
    cluster.put(Queue("default"))
    return cluster, Controller(cluster)


def bind(cluster: SimCluster, key: str, to: str) -> None:
    """Bind a pod, which must work."""
    found = cluster.pods[key]
    assert not cluster.submit([Bind(key, found.uid, to, found.group_key)])


class FirstFit:
    """A scheduler of few words: whole gangs in order of arrival, by cpu, on the first nodes with room.

    The first that does not fit ends it. A job without pods is admitted.

    It looks at the cluster itself, so events that arrive late cannot confuse it.
    """

    def __init__(self, cluster: SimCluster) -> None:
        self.cluster = cluster
        self.moments: list[float] = []
        self.reports: list[object] = []

    def __call__(self, now: float) -> CycleReport:
        self.moments.append(now)
        self.reports += self.cluster.drain()
        decisions: list[Decision] = []
        for key, group in list(self.cluster.groups.items()):
            pods = [p for p in self.cluster.pods.values() if p.group_key == key]
            if not pods:
                status = replace(group.status, phase=PodGroupPhase.INQUEUE.value)
                self.cluster.write_group(PodGroupUpdate(key, status))
                continue
            waiting = [p for p in pods if not p.node_name]
            places = self._places(waiting)
            if len(places) + len(pods) - len(waiting) < group.min_member:
                break
            for waiter, place in zip(waiting, places, strict=False):
                decision = Bind(waiter.key, waiter.uid, place, key)
                if not self.cluster.submit([decision]):
                    decisions.append(decision)
        return CycleReport(decisions)

    def _places(self, pods: Sequence[Pod]) -> list[str]:
        free = {name: each.allocatable.milli_cpu for name, each in self.cluster.nodes.items()}
        for held in self.cluster.pods.values():
            if held.node_name and held.phase in ("Pending", "Running"):
                free[held.node_name] -= held.spec.request.milli_cpu
        places = []
        for each in pods:
            found = next((name for name, room in free.items() if room >= each.spec.request.milli_cpu), None)
            if found is None:
                break
            free[found] -= each.spec.request.milli_cpu
            places.append(found)
        return places


def simulation(cluster: SimCluster, controller: Controller, **options: object) -> tuple[Simulation, FirstFit]:
    scheduler = FirstFit(cluster)
    return Simulation(cluster, controller, scheduler, **options), scheduler  # type: ignore[arg-type]


def seen(events: Sequence[object], kind: type) -> list[object]:
    """The objects of one kind among events."""
    found: list[object] = []
    for event in events:
        match event:
            case PodsSeen(pods):
                found += pods.values()
            case Seen(obj):
                found.append(obj)
    return [obj for obj in found if isinstance(obj, kind)]
