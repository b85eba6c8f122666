"""Volumes and devices that pods of random clusters claim."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pumice.answers.world import key_of
from pumice.model.decisions import Bind, Decision
from pumice.model.devices.claims import Device, DeviceAttribute, ResourceClaim
from pumice.model.events import Object
from pumice.model.volumes import PersistentVolume, PersistentVolumeClaim
from pumice.runtime.files.known_objects import all_objects_in
from pumice.testing.build import cluster

Raw = dict[str, Any]
_DRIVER, _CLASS = "csi.example.com", "gpu.example.com"
_MODELS = ("a", "b")
#: What a bind writes on.
_CLAIMED = (ResourceClaim, PersistentVolume, PersistentVolumeClaim)


def claimed(dice: random.Random, nodes: Sequence[Raw], jobs: Sequence[list[Raw]], *, is_kai: bool) -> list[Raw]:
    """Let some jobs claim volumes, devices or parts of GPUs. Return the claims and what they can be given."""
    kinds: list[Callable[[random.Random, Raw], list[Raw]]] = [_volume, _devices, *([_part_of_gpu] if is_kai else [])]
    found: list[Raw] = []
    for _, *pods in jobs:
        if dice.random() >= 0.35:
            continue
        claim = dice.choice(kinds)
        # One spec is that of all pods of a job, and claims are of each.
        state = dice.getstate()
        for pod in pods:
            dice.setstate(state)  # equal pods claim equal things
            pod["spec"] = {**pod["spec"]}
            found += claim(dice, pod)
        if dice.random() < 0.2 and pods:
            _share(pods)
    return [*_offered(dice, nodes), *found]


def after(binds: Iterable[Decision], objects: Sequence[Object]) -> list[Object]:
    """Return objects in which the claims of pods that were bound have what they were given."""
    store = cluster(objects)
    store.snapshot()
    store.assume([each for each in binds if isinstance(each, Bind)])
    shown = all_objects_in(store.snapshot(), 0.0)
    given = {(type(obj), key_of(obj)): obj for obj in shown if isinstance(obj, _CLAIMED)}
    return [given.get((type(obj), key_of(obj)), obj) for obj in objects]


def _raw(version: str, kind: str, name: str, namespace: str = "", **more: Any) -> Raw:
    metadata = {"name": name, "uid": f"{kind}-{name}", **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def _volume(dice: random.Random, pod: Raw) -> list[Raw]:
    name = f"data-{pod['metadata']['name']}"
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
    size = {"requests": {"storage": dice.choice(("5Gi", "5Gi", "50Gi"))}}
    kind = {"storageClassName": dice.choice(("local", "zonal", "any")), "accessModes": ["ReadWriteOnce"]}
    return [_raw("v1", "PersistentVolumeClaim", name, "ns", spec={**kind, "resources": size})]


def _devices(dice: random.Random, pod: Raw) -> list[Raw]:
    name = f"devices-{pod['metadata']['name']}"
    pod["spec"]["resourceClaims"] = [{"name": "devices", "resourceClaimName": name}]
    exactly: Raw = {"deviceClassName": _CLASS, "count": dice.choice((1, 1, 2))}
    if dice.random() < 0.3:
        exactly["selectors"] = [{"cel": {"expression": f'device.attributes["{_CLASS}"].model == "{_MODELS[0]}"'}}]
    requests = [{"name": "gpu", "exactly": exactly}]
    return [_raw("resource.k8s.io/v1", "ResourceClaim", name, "ns", spec={"devices": {"requests": requests}})]


def device_that_all_select(name: str) -> Device:
    """Return a device that satisfies each claim of these worlds."""
    return Device(name, (DeviceAttribute("model", "string", _MODELS[0]),))


def _part_of_gpu(dice: random.Random, pod: Raw) -> list[Raw]:
    pod["metadata"]["annotations"]["gpu-fraction"] = dice.choice(("0.5", "0.7"))
    container = {**pod["spec"]["containers"][0]}
    requests = {name: amount for name, amount in container["resources"]["requests"].items() if "gpu" not in name}
    pod["spec"]["containers"] = [{**container, "resources": {"requests": requests}}]
    return []


def _share(pods: Sequence[Raw]) -> None:
    """Let all pods of a job use the claims of the first."""
    for pod in pods[1:]:
        pod["spec"] = pods[0]["spec"]


def _offered(dice: random.Random, nodes: Sequence[Raw]) -> list[Raw]:
    zone = {"matchLabelExpressions": [{"key": "zone", "values": ["z0"]}]}
    late = {"volumeBindingMode": "WaitForFirstConsumer"}
    found = [
        _raw("storage.k8s.io/v1", "StorageClass", "local", provisioner="kubernetes.io/no-provisioner", **late),
        _raw("storage.k8s.io/v1", "StorageClass", "zonal", provisioner=_DRIVER, allowedTopologies=[zone], **late),
        _raw("storage.k8s.io/v1", "StorageClass", "any", provisioner=_DRIVER, **late),
        _raw("resource.k8s.io/v1", "DeviceClass", _CLASS, spec={}),
    ]
    for node in nodes:
        name = node["metadata"]["name"]
        on_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}
        for number in range(dice.choice((0, 1, 2))):
            spec = {
                "storageClassName": "local",
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "10Gi"},
                "local": {"path": "/data"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}},
            }
            found.append(_raw("v1", "PersistentVolume", f"{name}-{number}", spec=spec, status={"phase": "Available"}))
        driver = {"name": _DRIVER, "nodeID": name, "allocatable": {"count": dice.choice((1, 2, 8))}}
        found.append(_raw("storage.k8s.io/v1", "CSINode", name, spec={"drivers": [driver]}))
        found += _slices(dice, name)
    return found


def _slices(dice: random.Random, node: str) -> list[Raw]:
    count = dice.choice((0, 1, 2, 4))
    if not count:
        return []
    devices = [
        {"name": f"d{number}", "attributes": {"model": {"string": dice.choice(_MODELS)}}} for number in range(count)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": _CLASS, "nodeName": node, "pool": pool, "devices": devices}
    return [_raw("resource.k8s.io/v1", "ResourceSlice", node, spec=spec)]
