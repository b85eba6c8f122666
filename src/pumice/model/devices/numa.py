"""NUMA topology of nodes, what a pod asks of it, and what it holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from pumice.model.quantity import QuantityError
from pumice.model.resources import Resource

POLICY_ANNOTATION = "volcano.sh/numa-topology-policy"
NONE, BEST_EFFORT, RESTRICTED, SINGLE = "none", "best-effort", "restricted", "single-numa-node"
#: NUMA nodes of a machine. Bounded, because every set of them is examined; the kubelet has the same bound.
NUMA_NODES_MAX = 8
CPUS_MAX = 4096
#: Annotations with the zones that a pod holds: as an exporter on the node reads them, and as the scheduler expected
#: them. Source: KAI.
OBSERVED_ANNOTATION = "kai.scheduler/numa-placement-observed"
PREDICTED_ANNOTATION = "kai.scheduler/numa-placement-predicted"
_CHARACTERS_MAX = 1 << 14


class Cpu(Struct, frozen=True):
    """A logical CPU with its place."""

    id: int
    numa: int
    socket: int
    core: int


class Numatopology(Struct, frozen=True):
    """The CPUs of a node, as its agent reports them.

    ``free``: CPUs that no pod uses exclusively, None if not reported. ``reserved``: how many are reserved for the
    system. ``assigned``: (UID, ``namespace/name``) of pods whose CPUs are no longer among the free ones.
    ``unparsable``: fields that could not be read, and why; then nothing is free.
    """

    name: str
    cpu_policy: str = ""
    topology_policy: str = ""
    cpus: tuple[Cpu, ...] = ()
    free: tuple[int, ...] | None = None
    reserved: int = 0
    assigned: tuple[tuple[str, str], ...] = ()
    unparsable: tuple[str, ...] = ()


# By container, because kubelet's CPU manager assigns CPUs to containers and not to pods.
class NumaAsk(Struct, frozen=True):
    """What a pod of QoS class Guaranteed asks for: its ``policy``, "" for none of its own, and name and milli-cores of
    each of its ``containers``."""

    policy: str = ""
    containers: tuple[tuple[str, float], ...] = ()


def numa_policy(annotations: Mapping[str, str]) -> str:
    """Return the policy in annotations, "" if there is none or it is unknown."""
    found = annotations.get(POLICY_ANNOTATION, "")
    # ``none`` and texts that are unknown restrict nothing.
    return found if found in (BEST_EFFORT, RESTRICTED, SINGLE) else ""


class NumaZone(Struct, frozen=True):
    """A NUMA zone of a node, with what pods may hold of it and what is left."""

    name: str
    allocatable: Resource
    available: Resource


class NodeResourceTopology(Struct, frozen=True):
    """The NUMA zones of a node, in the order of their numbers. Source: topology.node.k8s.io, as KAI reads it.

    ``policy``: the kubelet's Topology Manager policy. ``by_pod``: its scope is the pod, and not the container.
    ``unparsable``: fields that could not be read, and why; then there are no zones.
    """

    name: str
    policy: str = NONE
    by_pod: bool = False
    zones: tuple[NumaZone, ...] = ()
    unparsable: tuple[str, ...] = ()


class ContainerRequests(Struct, frozen=True):
    """Requests of the containers of a pod: ``apps``, and ``inits`` in order, each with whether it is a sidecar."""

    apps: tuple[Resource, ...]
    inits: tuple[tuple[Resource, bool], ...] = ()


ZoneAmounts = tuple[tuple[str, Resource], ...]


@lru_cache(maxsize=65_536)
def zone_amounts(text: str) -> ZoneAmounts:
    """Return the amounts by zone in an annotation, () for one that cannot be read."""
    # Bounded before it is parsed, because the annotation comes from the cluster and may be of any size.
    if not text or len(text) > _CHARACTERS_MAX:
        return ()
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(given, list) or len(given) > NUMA_NODES_MAX:
        return ()
    try:
        return tuple((str(each["zone"]), Resource.from_list(each["amount"])) for each in given)
    # A damaged annotation must not stop the cycle.
    except (QuantityError, KeyError, TypeError, AttributeError):
        return ()


def text_of_zones(amounts: ZoneAmounts) -> str:
    """Return the annotation for amounts by zone."""
    listed = [
        {"zone": zone, "amount": {name: text for name, text in amount.to_list().items() if amount.get(name)}}
        for zone, amount in amounts
    ]
    # Without spaces, as Go writes it, so that equal amounts are equal texts.
    return json.dumps(listed, separators=(",", ":"))
