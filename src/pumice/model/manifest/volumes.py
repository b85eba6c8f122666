"""Decode PersistentVolumes, their claims, and storage classes."""

from __future__ import annotations

from pumice.model.manifest.pods import namespace_of
from pumice.model.manifest.reading.fields import (
    INT64_MAX,
    FieldError,
    Obj,
    at,
    maybe_table,
    maybe_whole,
    name,
    shown,
    table,
    tables,
    text,
    text_map,
    texts,
)
from pumice.model.manifest.terms import maybe_label_selector, node_selector
from pumice.model.pod import NodeSelectorTerm, Requirement
from pumice.model.quantity import QuantityError, whole_value
from pumice.model.volumes import CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
#: Annotation with the storage class, from before there was a field for it.
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"


def read_volume_claim(obj: Obj) -> PersistentVolumeClaim:
    metadata, spec, status = table(obj, "metadata", ""), table(obj, "spec", ""), table(obj, "status", "")
    annotations = text_map(metadata, "annotations", "metadata")
    volume, phase = text(spec, "volumeName", "spec"), text(status, "phase", "status")
    return PersistentVolumeClaim(
        namespace_of(metadata),
        name(metadata, "name", "metadata"),
        text(metadata, "uid", "metadata"),
        # The old annotation goes first, as in Kubernetes.
        annotations.get(_OLD_CLASS) or text(spec, "storageClassName", "spec"),
        volume,
        # A claim may name a volume before the volume names the claim.
        bool(volume) and (BIND_COMPLETED in annotations or phase == "Bound"),
        phase == "Lost",
        annotations.get(SELECTED_NODE, ""),
        texts(spec, "accessModes", "spec"),
        text(spec, "volumeMode", "spec") or "Filesystem",
        _bytes(table(table(spec, "resources", "spec"), "requests", "spec.resources"), "storage", "spec.resources"),
        maybe_label_selector(spec, "selector", "spec"),
        metadata.get("deletionTimestamp") is not None,
    )


def read_volume(obj: Obj) -> PersistentVolume:
    metadata, spec, status = table(obj, "metadata", ""), table(obj, "spec", ""), table(obj, "status", "")
    claim = maybe_table(spec, "claimRef", "spec") or {}
    csi = table(spec, "csi", "spec")
    key = text(claim, "name", "spec.claimRef")
    affinity = table(spec, "nodeAffinity", "spec")
    return PersistentVolume(
        name(metadata, "name", "metadata"),
        text(spec, "storageClassName", "spec"),
        f"{text(claim, 'namespace', 'spec.claimRef')}/{key}" if key else "",
        text(claim, "uid", "spec.claimRef"),
        texts(spec, "accessModes", "spec"),
        text(spec, "volumeMode", "spec") or "Filesystem",
        _bytes(table(spec, "capacity", "spec"), "storage", "spec.capacity"),
        node_selector(affinity, "required", "spec.nodeAffinity"),
        text_map(metadata, "labels", "metadata"),
        text(csi, "driver", "spec.csi"),
        text(csi, "volumeHandle", "spec.csi"),
        # A released or failed volume has data of another claim, or none that can be used.
        text(status, "phase", "status") in ("", "Available", "Bound", "Pending")
        and metadata.get("deletionTimestamp") is None,
    )


def read_storage_class(obj: Obj) -> StorageClass:
    metadata = table(obj, "metadata", "")
    allowed = tables(obj, "allowedTopologies", "")
    # An empty list allows all nodes.
    terms = tuple(_topology(term, f"allowedTopologies[{i}]") for i, term in enumerate(allowed))
    return StorageClass(
        name(metadata, "name", "metadata"),
        text(obj, "provisioner", ""),
        text(obj, "volumeBindingMode", "") == "WaitForFirstConsumer",
        terms or None,
    )


def read_csi_node(obj: Obj) -> CSINode:
    metadata, spec = table(obj, "metadata", ""), table(obj, "spec", "")
    limits = {}
    for i, driver in enumerate(tables(spec, "drivers", "spec")):
        where = f"spec.drivers[{i}]"
        count = maybe_whole(table(driver, "allocatable", where), "count", f"{where}.allocatable", 0)
        # A driver without a count has no limit.
        if count is not None:
            limits[text(driver, "name", where)] = count
    return CSINode(name(metadata, "name", "metadata"), tuple(sorted(limits.items())))


def read_storage_capacity(obj: Obj) -> CSIStorageCapacity:
    metadata = table(obj, "metadata", "")
    return CSIStorageCapacity(
        namespace_of(metadata),
        name(metadata, "name", "metadata"),
        text(obj, "storageClassName", ""),
        maybe_label_selector(obj, "nodeTopology", ""),
        _bytes(obj, "capacity", ""),
        # None differs from 0: without it, the capacity is the only bound.
        _bytes(obj, "maximumVolumeSize", "") if obj.get("maximumVolumeSize") is not None else None,
    )


def _topology(term: Obj, path: str) -> NodeSelectorTerm:
    expressions = tables(term, "matchLabelExpressions", path)
    return NodeSelectorTerm(
        tuple(
            Requirement(text(each, "key", where), "In", texts(each, "values", where))
            for i, each in enumerate(expressions)
            for where in (f"{at(path, 'matchLabelExpressions')}[{i}]",)
        )
    )


def _bytes(obj: Obj, key: str, path: str) -> float:
    value = obj.get(key)
    if value is None:
        return 0.0
    try:
        if type(value) not in (str, int, float) or not 0 <= (found := whole_value(value)) <= INT64_MAX:
            raise FieldError(at(path, key), shown(value), "a quantity >= 0")
    except QuantityError as error:
        raise FieldError(at(path, key), shown(value), str(error)) from None
    return float(found)
