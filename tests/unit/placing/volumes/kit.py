"""Two nodes in two zones, two classes of storage, volumes, claims, and pods that use them."""

from __future__ import annotations

from typing import Any

from pumice.model.pod import NodeSelectorTerm, Pod, Requirement
from pumice.model.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.state.store import Store
from pumice.testing.build import cluster, node, pod, podgroup, run

CONF = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]"
GI = 2.0**30
ZONE = "topology.kubernetes.io/zone"
FAST = StorageClass("fast", "csi.example.com", waits=True)
LOCAL = StorageClass("local", waits=True)


def at(*names: str) -> tuple[NodeSelectorTerm, ...]:
    return (NodeSelectorTerm(fields=(Requirement("metadata.name", "In", names),)),)


def zone(name: str) -> tuple[NodeSelectorTerm, ...]:
    return (NodeSelectorTerm((Requirement(ZONE, "In", (name,)),)),)


def using(name: str, *claims: str, **more: Any) -> Pod:
    return pod(name, name, claim_names=claims, **more)


def pvc(name: str, of: str = "fast", size: float = GI, **more: Any) -> PersistentVolumeClaim:
    return PersistentVolumeClaim("ns", name, f"u-{name}", of, size=size, modes=("ReadWriteOnce",), **more)


def bound(name: str, volume: str) -> PersistentVolumeClaim:
    return pvc(name, volume=volume, bound=True)


def pv(name: str, of: str = "local", size: float = GI, **more: Any) -> PersistentVolume:
    return PersistentVolume(name, of, size=size, modes=("ReadWriteOnce",), **more)


def world(*objects: Any, names: str = "a") -> Store:
    groups = [podgroup(name, 1, phase="Inqueue", creation=float(i)) for i, name in enumerate(names)]
    there = node("n1", labels={ZONE: "z1"}), node("n2", labels={ZONE: "z2"})
    return cluster(there, FAST, LOCAL, *objects, groups)


def binds(store: Store) -> dict[str, str]:
    return dict(run(store, CONF).binds)


def why(store: Store) -> str:
    ran = run(store, CONF)
    assert not ran.binds
    return str(list(ran.outcome.notices()))
