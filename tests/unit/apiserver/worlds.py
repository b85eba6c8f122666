"""Small clusters behind the API: a clock that is moved by hand, uids that count."""

from __future__ import annotations

import itertools
from typing import Any

from pumice.apiserver.cluster import Cluster, make_cluster
from pumice.apiserver.kinds.definitions import own_definitions
from pumice.apiserver.objects import Options, Target
from pumice.apiserver.store import Store

DEFINITIONS = own_definitions()
START = 1_800_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


def cluster(clock: Clock | None = None, store: Store | None = None, speed: float = 1.0) -> Cluster:
    numbers = itertools.count(1)
    made = make_cluster(
        store or Store(),
        DEFINITIONS,
        now=clock or Clock(),
        uid=lambda: f"uid-{next(numbers)}",
        seed=1,
        speed=speed,
    )
    settle(made)
    return made


def settle(world: Cluster) -> None:
    """Let nodes, jobs and the collector do all that is to be done now."""
    before = -1
    while before != world.store.version:
        before = world.store.version
        world.kubelets.step()
        world.node_life.step()
        world.cron_jobs.step()
        world.jobs.step()
        world.claims.step()
        while world.collector.step() or world.group_protection.step():
            pass


def target(world: Cluster, full_name: str, name: str = "", namespace: str = "", part: str = "") -> Target:
    resource = world.registry.of_table(full_name)
    assert resource is not None, full_name
    return Target(resource, namespace or ("default" if resource.namespaced else ""), name, part)


def pod(name: str, **more: Any) -> dict[str, Any]:
    """``more``: labels, annotations, owners (uids), or fields of the spec."""
    metadata: dict[str, Any] = {"name": name}
    for key in ("labels", "annotations"):
        if key in more:
            metadata[key] = more.pop(key)
    if owners := more.pop("owners", None):
        metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": uid} for uid in owners]
    spec = {"containers": [{"name": "c", "image": "i:1"}], **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def node(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"capacity": {"cpu": "8"}}}


def queue(name: str, **spec: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}}
    return found | ({"spec": spec} if spec else {})


def group(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}


def create(world: Cluster, obj: dict[str, Any], namespace: str = "default", **options: Any) -> dict[str, Any]:
    resource = world.registry.of_kind(obj["apiVersion"], obj["kind"])
    assert resource is not None
    where = Target(resource, namespace if resource.namespaced else "")
    return world.objects.create(where, obj, Options(**options))


def found(world: Cluster, table: str, key: str) -> dict[str, Any] | None:
    row = world.store.find(table, key)
    return None if row is None else row.obj
