"""NUMA topology of nodes, and what a pod asks of it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

POLICY_ANNOTATION = "volcano.sh/numa-topology-policy"
NONE, BEST_EFFORT, RESTRICTED, SINGLE = "none", "best-effort", "restricted", "single-numa-node"
#: NUMA nodes of a machine. Bounded, because every set of them is examined; the kubelet has the same bound.
NUMA_NODES_MAX = 8
CPUS_MAX = 4096


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
