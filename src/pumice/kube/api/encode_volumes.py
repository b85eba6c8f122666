"""Encode volumes, claims and storage classes as objects of the API: the inverse of ``model.manifest.volumes``."""

from __future__ import annotations

from pumice.kube.api.encode_terms import node_selector_object, nonempty, selector_object
from pumice.model.manifest.reading.fields import Obj
from pumice.model.manifest.volumes import BIND_COMPLETED, SELECTED_NODE
from pumice.model.volumes import CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass

_STORAGE = "storage.k8s.io/v1"


def volume_claim_object(claim: PersistentVolumeClaim) -> Obj:
    annotations = {SELECTED_NODE: claim.node, BIND_COMPLETED: "yes" if claim.bound else ""}
    metadata = nonempty(
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        annotations={name: value for name, value in annotations.items() if value},
        deletionTimestamp="2000-01-01T00:00:00Z" if claim.deleting else "",
    )
    spec = nonempty(
        storageClassName=claim.class_name,
        volumeName=claim.volume,
        accessModes=list(claim.modes),
        volumeMode=claim.volume_mode,
        resources={"requests": {"storage": _bytes(claim.size)}},
        selector=selector_object(claim.selector),
    )
    phase = "Lost" if claim.lost else "Bound" if claim.bound else "Pending"
    return _object("v1", "PersistentVolumeClaim", metadata, spec=spec, status={"phase": phase})


def volume_object(volume: PersistentVolume) -> Obj:
    namespace, _, name = volume.claim.partition("/")
    spec = nonempty(
        storageClassName=volume.class_name,
        claimRef=nonempty(namespace=namespace, name=name, uid=volume.claim_uid),
        accessModes=list(volume.modes),
        volumeMode=volume.volume_mode,
        capacity={"storage": _bytes(volume.size)},
        csi=nonempty(driver=volume.driver, volumeHandle=volume.handle),
    )
    if volume.nodes is not None:
        spec["nodeAffinity"] = {"required": node_selector_object(volume.nodes)}
    phase = ("Bound" if volume.claim else "Available") if volume.available else "Released"
    metadata = nonempty(name=volume.name, labels=dict(volume.labels))
    return _object("v1", "PersistentVolume", metadata, spec=spec, status={"phase": phase})


def storage_class_object(found: StorageClass) -> Obj:
    fields = nonempty(provisioner=found.provisioner, volumeBindingMode="WaitForFirstConsumer" if found.waits else "")
    if found.nodes is not None:
        fields["allowedTopologies"] = [
            {"matchLabelExpressions": [{"key": each.key, "values": list(each.values)} for each in term.labels]}
            for term in found.nodes
        ]
    return _object(_STORAGE, "StorageClass", {"name": found.name}, **fields)


def csi_node_object(found: CSINode) -> Obj:
    drivers = [
        {"name": driver, "nodeID": found.name, "allocatable": {"count": count}} for driver, count in found.limits
    ]
    return _object(_STORAGE, "CSINode", {"name": found.name}, spec={"drivers": drivers})


def storage_capacity_object(found: CSIStorageCapacity) -> Obj:
    fields = nonempty(
        storageClassName=found.class_name,
        capacity=_bytes(found.capacity),
        maximumVolumeSize=None if found.largest is None else _bytes(found.largest),
        nodeTopology=selector_object(found.nodes),
    )
    return _object(_STORAGE, "CSIStorageCapacity", {"namespace": found.namespace, "name": found.name}, **fields)


def _object(api_version: str, kind: str, metadata: Obj, **parts: object) -> Obj:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def _bytes(amount: float) -> str:
    return str(int(amount))
