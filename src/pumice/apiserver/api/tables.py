"""What ``kubectl get`` prints: columns of each kind, and lists and objects as Tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

import msgspec

from pumice.apiserver.api.jsonpath import lookup
from pumice.apiserver.kinds.resources import Column, Resource
from pumice.model.manifest.reading.fields import Obj

_NAME = Column("Name", "string", "", description="The name, unique within a namespace.")
_AGE = Column("Age", "date", ".metadata.creationTimestamp", description="Time since it was created.")
_ABSENT = "<none>"
Cells = Callable[[Obj, float], list[Any]]


def table(
    resource: Resource, objects: Iterable[Obj], list_metadata: Obj, now: float, include: str, head: bool = True
) -> Obj:
    """Return a Table of rows. ``include``: Metadata, Object or None, what each row has of its object."""
    columns, cells = _printer(resource)
    rows = []
    for obj in objects:
        row: Obj = {"cells": cells(obj, now)}
        if include == "Object":
            row["object"] = obj
        elif include != "None":
            row["object"] = partial(obj)
        rows.append(row)
    shown = [
        {"name": c.name, "type": c.type, "format": "name" if c is _NAME else "", "description": c.description}
        | {"priority": c.priority}
        for c in columns
    ]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_metadata,
        "columnDefinitions": shown if head else None,
        "rows": rows,
    }


def partial(obj: Obj) -> Obj:
    """Return the metadata of an object only."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def age(stamp: Any, now: float) -> str:
    """Return an age as kubectl writes it: 45s, 10m, 3h12m, 5d."""
    try:
        seconds = int(now - datetime.fromisoformat(stamp).timestamp())
    except (TypeError, ValueError, OverflowError):
        return "<unknown>"
    return _span(max(seconds, 0))


def _span(s: int) -> str:
    minutes, hours, days = s // 60, s // 3600, s // 86400
    if s < 120:
        return f"{s}s"
    if minutes < 10:
        return f"{minutes}m{s % 60}s" if s % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    return f"{days}d" if days < 730 else f"{days // 365}y{days % 365}d"


def _printer(resource: Resource) -> tuple[tuple[Column, ...], Cells]:
    found = _PRINTERS.get(resource.full_name)
    if found is not None:
        return found
    columns = resource.columns or _PATHS.get(resource.full_name) or (_AGE,)

    def cells(obj: Obj, now: float) -> list[Any]:
        return [obj["metadata"]["name"], *(_cell(obj, column, now) for column in columns)]

    return (_NAME, *columns), cells


def _cell(obj: Obj, column: Column, now: float) -> Any:
    found = lookup(obj, column.path)
    if not found:
        return None
    if column.type == "date":
        return age(found[0], now)
    value = found[0] if len(found) == 1 else ",".join(map(str, found))
    if column.type == "boolean" or isinstance(value, int | float | str):
        return value
    return msgspec.json.encode(value).decode() if isinstance(value, dict | list) else str(value)


# -- kinds of Kubernetes' own


def _column(name: str, path: str = "", priority: int = 0, type_: str = "string") -> Column:
    return Column(name, type_, path, priority)


def _pod(obj: Obj, now: float) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    states = status.get("containerStatuses") or []
    ready = sum(bool(each.get("ready")) for each in states)
    restarts = sum(each.get("restartCount", 0) for each in states)
    gates = f"0/{len(spec['readinessGates'])}" if spec.get("readinessGates") else _ABSENT
    return [
        obj["metadata"]["name"],
        f"{ready}/{len(spec.get('containers') or ())}",
        _pod_word(obj, status),
        restarts,
        age(obj["metadata"].get("creationTimestamp"), now),
        status.get("podIP") or _ABSENT,
        spec.get("nodeName") or _ABSENT,
        status.get("nominatedNodeName") or _ABSENT,
        gates,
    ]


def _pod_word(obj: Obj, status: Obj) -> str:
    if "deletionTimestamp" in obj["metadata"]:
        return "Terminating"
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    phase = status.get("reason") or status.get("phase") or "Unknown"
    if phase == "Succeeded":
        return "Completed"
    if phase == "Failed":
        return "Error"
    waiting = obj["spec"].get("nodeName") and phase == "Pending"
    return "ContainerCreating" if waiting else str(phase)


def _node(obj: Obj, now: float) -> list[Any]:
    status, labels = obj.get("status") or {}, obj["metadata"].get("labels") or {}
    ready = next((c.get("status") for c in status.get("conditions") or () if c.get("type") == "Ready"), "")
    word = {"True": "Ready", "False": "NotReady"}.get(str(ready), "Unknown")
    if (obj.get("spec") or {}).get("unschedulable"):
        word += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    roles = ",".join(sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix)))
    addresses = {each.get("type"): each.get("address") for each in status.get("addresses") or ()}
    about = status.get("nodeInfo") or {}
    return [
        obj["metadata"]["name"],
        word,
        roles or _ABSENT,
        age(obj["metadata"].get("creationTimestamp"), now),
        about.get("kubeletVersion", ""),
        addresses.get("InternalIP") or _ABSENT,
        addresses.get("ExternalIP") or _ABSENT,
        about.get("osImage") or "<unknown>",
        about.get("kernelVersion") or "<unknown>",
        about.get("containerRuntimeVersion") or "<unknown>",
    ]


def _event(obj: Obj, now: float) -> list[Any]:
    involved = obj.get("involvedObject") or {}
    series = obj.get("series") or {}
    first = obj.get("firstTimestamp") or obj.get("eventTime")
    last = series.get("lastObservedTime") or obj.get("lastTimestamp") or obj.get("eventTime")
    place = f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}"
    source = (obj.get("source") or {}).get("component") or obj.get("reportingComponent", "")
    return [
        age(last, now),
        obj.get("type", ""),
        obj.get("reason", ""),
        place,
        involved.get("fieldPath", ""),
        source,
        str(obj.get("message", "")).strip(),
        age(first, now),
        series.get("count") or obj.get("count") or 1,
        obj["metadata"]["name"],
    ]


_POD_COLUMNS = (
    _NAME,
    _column("Ready"),
    _column("Status"),
    _column("Restarts"),
    _column("Age"),
    *(_column(name, priority=1) for name in ("IP", "Node", "Nominated Node", "Readiness Gates")),
)
_NODE_COLUMNS = (
    _NAME,
    *(_column(name) for name in ("Status", "Roles", "Age", "Version")),
    *(
        _column(n, priority=1)
        for n in ("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime")
    ),
)
_EVENT_COLUMNS = (
    *(_column(name) for name in ("Last Seen", "Type", "Reason", "Object")),
    *(_column(name, priority=1) for name in ("Subobject", "Source")),
    _column("Message"),
    *(_column(name, priority=1) for name in ("First Seen", "Count")),
    Column("Name", "string", "", 1),
)
_PRINTERS: dict[str, tuple[tuple[Column, ...], Cells]] = {
    "pods": (_POD_COLUMNS, _pod),
    "nodes": (_NODE_COLUMNS, _node),
    "events": (_EVENT_COLUMNS, _event),
}
_PATHS: dict[str, tuple[Column, ...]] = {
    "namespaces": (_column("Status", ".status.phase"), _AGE),
    "leases.coordination.k8s.io": (_column("Holder", ".spec.holderIdentity"), _AGE),
    "priorityclasses.scheduling.k8s.io": (
        _column("Value", ".value", type_="integer"),
        _column("Global-Default", ".globalDefault", type_="boolean"),
        _AGE,
        _column("PreemptionPolicy", ".preemptionPolicy"),
    ),
    "customresourcedefinitions.apiextensions.k8s.io": (Column("Created At", "string", ".metadata.creationTimestamp"),),
    "poddisruptionbudgets.policy": (
        _column("Min Available", ".spec.minAvailable"),
        _column("Max Unavailable", ".spec.maxUnavailable"),
        _AGE,
    ),
    "secrets": (_column("Type", ".type"), _AGE),
}
