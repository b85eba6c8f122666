"""Which CPUs of a node are near to each other, and what a pod wants of that."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

POLICY_ANNOTATION = "volcano.sh/numa-topology-policy"
NONE, BEST_EFFORT, RESTRICTED, SINGLE = "none", "best-effort", "restricted", "single-numa-node"
#: NUMA nodes of a machine: every set of them is looked at. Kubelets know no more either.
NUMA_NODES_MAX = 8
CPUS_MAX = 4096


class Cpu(Struct, frozen=True):
    """A logical CPU, and where it is."""

    id: int
    numa: int
    socket: int
    core: int


class Numatopology(Struct, frozen=True):
    """What the agent of a node says of its CPUs. ``free``: CPUs that no pod has for itself, None where nothing is said;
    ``reserved``: how many are set aside for the system; ``assigned``: (uid, ``namespace/name``) of pods whose CPUs are
    not among the free ones any more. ``unread``: what of it could not be read, and why: nothing is free then."""

    name: str
    cpu_policy: str = ""
    topology_policy: str = ""
    cpus: tuple[Cpu, ...] = ()
    free: tuple[int, ...] | None = None
    reserved: int = 0
    assigned: tuple[tuple[str, str], ...] = ()
    unread: tuple[str, ...] = ()


class NumaAsk(Struct, frozen=True):
    """What a pod of quality Guaranteed wants: its ``policy``, empty for none of its own; ``containers``: name and
    milli-cores of each."""

    policy: str = ""
    containers: tuple[tuple[str, float], ...] = ()


def numa_policy(annotations: Mapping[str, str]) -> str:
    """The policy that annotations name; one that is not known is as none."""
    found = annotations.get(POLICY_ANNOTATION, "")
    return found if found in (BEST_EFFORT, RESTRICTED, SINGLE) else ""
