"""Encode what the NUMA topology of nodes decides by: the inverse of ``model.manifest.numa``."""

from __future__ import annotations

from typing import Any

from pumice.model.devices.numa import NodeResourceTopology, Numatopology
from pumice.model.manifest.reading.fields import Obj
from pumice.model.pod import PodSpec
from pumice.model.resources import PODS, Resource


def divided_containers(containers: list[Obj], spec: PodSpec) -> tuple[list[Obj], list[Obj]]:
    """Return app containers and init containers with the requests of each. ``containers``: as many, with what else they
    say."""
    assert spec.containers is not None
    apps, inits = spec.containers.apps, spec.containers.inits
    found = [_with_request(each, amount, spec) for each, amount in zip(containers, apps, strict=False)]
    before = zip(containers[len(apps) :], inits, strict=False)
    first = [
        _with_request(each, amount, spec) | ({"restartPolicy": "Always"} if is_sidecar else {})
        for each, (amount, is_sidecar) in before
    ]
    return found, first


def _with_request(container: Obj, amount: Resource, spec: PodSpec) -> Obj:
    requests = {name: text for name, text in amount.to_list().items() if name != PODS and amount.get(name)}
    # A pod is Guaranteed only if each of its containers is limited to what it requests.
    limits = requests if spec.qos == "Guaranteed" else (container.get("resources") or {}).get("limits")
    resources: dict[str, Any] = {"requests": requests} | ({"limits": limits} if limits else {})
    return {**container, "resources": resources}


def numa_topology_object(found: Numatopology) -> Obj:
    free = None if found.free is None else {"allocatable": ",".join(map(str, found.free)), "capacity": len(found.cpus)}
    assigned = [
        dict(zip(("namespace", "name"), key.split("/"), strict=True)) | {"uid": uid} for uid, key in found.assigned
    ]
    policies = {"CPUManagerPolicy": found.cpu_policy, "TopologyManagerPolicy": found.topology_policy}
    cpus = {str(cpu.id): {"numa": cpu.numa, "socket": cpu.socket, "core": cpu.core} for cpu in found.cpus}
    spec = {"policies": policies, "cpuDetail": cpus, "resReserved": {"cpu": str(found.reserved)}}
    return {
        "apiVersion": "nodeinfo.volcano.sh/v1alpha1",
        "kind": "Numatopology",
        "metadata": {"name": found.name},
        "spec": spec
        | ({} if free is None else {"numares": {"cpu": free}})
        | ({"podAllocations": assigned} if assigned else {}),
    }


def node_resource_topology_object(found: NodeResourceTopology) -> Obj:
    zones = [
        {"name": zone.name, "type": "Node", "resources": _zone_resources(zone.allocatable, zone.available)}
        for zone in found.zones
    ]
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": found.name},
        "attributes": [
            {"name": "topologyManagerPolicy", "value": found.policy},
            {"name": "topologyManagerScope", "value": "pod" if found.by_pod else "container"},
        ],
        "zones": zones,
    }


def _zone_resources(allocatable: Resource, available: Resource) -> list[Obj]:
    whole, free = allocatable.to_list(), available.to_list()
    return [
        {
            "name": name,
            "allocatable": (most := whole.get(name, "0")),
            "capacity": most,
            "available": free.get(name, "0"),
        }
        for name in sorted({*whole, *free})
    ]
