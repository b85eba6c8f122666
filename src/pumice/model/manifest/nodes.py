"""Decode nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pumice.model.manifest.reading.fields import (
    INT64_MAX,
    Obj,
    flag,
    instant,
    maybe_offer,
    name,
    table,
    tables,
    text,
    text_map,
    texts,
    whole,
)
from pumice.model.manifest.terms import effect, required_text
from pumice.model.node import Node, NodeImage, Taint
from pumice.model.resources import EMPTY, Resource

_OVERSUBSCRIPTION_CPU = "volcano.sh/oversubscription-cpu"
_OVERSUBSCRIPTION_MEMORY = "volcano.sh/oversubscription-memory"


def read_node(obj: Obj) -> Node:
    metadata = table(obj, "metadata", "")
    spec = table(obj, "spec", "")
    status = table(obj, "status", "")
    annotations = text_map(metadata, "annotations", "metadata")
    return Node(
        name=name(metadata, "name", "metadata"),
        # A node without a status offers nothing yet: it has just been created.
        allocatable=maybe_offer(status, "allocatable", "status") or EMPTY,
        capacity=maybe_offer(status, "capacity", "status") or EMPTY,
        oversubscription=_oversubscription(annotations),
        uid=text(metadata, "uid", "metadata"),
        creation=instant(metadata, "creationTimestamp", "metadata") or 0.0,
        labels=text_map(metadata, "labels", "metadata"),
        annotations=annotations,
        taints=tuple(_taint(item, f"spec.taints[{i}]") for i, item in enumerate(tables(spec, "taints", "spec"))),
        unschedulable=flag(spec, "unschedulable", "spec"),
        images=tuple(_image(item, f"status.images[{i}]") for i, item in enumerate(tables(status, "images", "status"))),
        resource_version=text(metadata, "resourceVersion", "metadata"),
    )


def _taint(item: Obj, path: str) -> Taint:
    return Taint(required_text(item, "key", path), text(item, "value", path), effect(item, path, default=None))


def _image(item: Obj, path: str) -> NodeImage:
    # All names, since a pod may write an image by tag or by digest.
    return NodeImage(texts(item, "names", path), whole(item, "sizeBytes", path, 0, 0, INT64_MAX))


def _oversubscription(annotations: Mapping[str, str]) -> Resource:
    """Return what an agent offers in addition to allocatable: milli-cores and bytes.

    Source: Volcano ``setNodeOthersResource``. Unreadable values count as 0.
    """
    # The common case, in which the shared empty amount saves an object per node.
    if _OVERSUBSCRIPTION_CPU not in annotations and _OVERSUBSCRIPTION_MEMORY not in annotations:
        return EMPTY
    return Resource(_float(annotations.get(_OVERSUBSCRIPTION_CPU)), _float(annotations.get(_OVERSUBSCRIPTION_MEMORY)))


def _float(written: str | None) -> float:
    try:
        # ``float`` accepts nan and infinity, which are excluded below.
        value = float(written or 0)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) and value > 0 else 0.0
