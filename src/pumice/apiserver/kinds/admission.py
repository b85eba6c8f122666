"""Admission of new and changed objects of each kind: defaults, and what is forbidden or may not change."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable, Iterator

from pumice.apiserver.api.lists import identity
from pumice.apiserver.kinds import ephemeral
from pumice.apiserver.kinds.metadata import DNS_LABEL
from pumice.apiserver.kinds.pod_defaults import fill_pod
from pumice.apiserver.kinds.resources import BUILT_IN, CRDS, Resource
from pumice.apiserver.kinds.schema import schema_problem
from pumice.apiserver.kinds.workloads import filled, protected_group
from pumice.apiserver.refusals import Cause, forbidden, invalid
from pumice.apiserver.store import Store
from pumice.model.manifest.nodes import read_node
from pumice.model.manifest.pod_spec import SpecCache
from pumice.model.manifest.pods import read_pod
from pumice.model.manifest.qos import qos_class
from pumice.model.manifest.reading.fields import FieldError, Obj
from pumice.model.quantity import milli_value

_PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
_SYSTEM_PRIORITIES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_PODS_PER_NODE = "110"
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
NO_EXECUTE = "NoExecute"
_STAYS_S = 300
#: Bounds of definitions: every object, list and discovery document is processed by them.
_DEFINITIONS_MAX, _VERSIONS_MAX, _COLUMNS_MAX, _SELECTABLE_MAX = 500, 32, 64, 8
_LABEL_MAX = 63
_OWN_GROUPS = frozenset(resource.group for resource in BUILT_IN)


def admitted_new(resource: Resource, obj: Obj, store: Store, now: str) -> Obj:
    """Return a new object as it is stored. Raises: Refusal."""
    fill = _NEW.get(resource.full_name)
    if fill is not None:
        return fill(resource, obj, store, now)
    if resource.status:
        return {key: value for key, value in obj.items() if key != "status"}
    return obj


def admitted_change(resource: Resource, old: Obj, new: Obj, part: str = "") -> Obj:
    """Return the new state of an object as it is stored. ``part``: the subresource of the request. Raises: Refusal."""
    if resource.full_name == "pods" and part == ephemeral.PART:
        if causes := ephemeral.problems(old, new):
            raise _wrong(resource, new, *causes)
    elif resource.full_name == "pods":
        _check_pod_change(resource, old, new)
    if resource.full_name == "nodes" and _differ(old, new):
        _check_readable(resource, new, lambda: read_node(new))
        new = _whole_node(new)
    if resource.full_name == "secrets":
        new = _with_string_data(new)
    if resource.full_name == CRDS:
        _check_definition(resource, new)
        if old["spec"].get("scope") != new["spec"].get("scope"):
            raise _wrong(resource, new, Cause("spec.scope", "Invalid value: field is immutable"))
        return _established(new, "")
    return new


def _differ(old: Obj, new: Obj) -> bool:
    """Return True if more than metadata differs: an object that was unreadable before may still lose its last
    finalizer."""
    return any(old.get(key) != new.get(key) for key in ("spec", "status"))


# -- pods


def _new_pod(resource: Resource, obj: Obj, store: Store, now: str) -> Obj:
    _check_readable(resource, obj, lambda: read_pod(obj, SpecCache(1), ""))
    obj = copy.deepcopy(obj)
    spec = obj.get("spec")
    if not spec or not spec.get("containers"):
        raise _wrong(resource, obj, Cause("spec.containers", "Required value", "FieldValueRequired"))
    _check_containers(resource, obj, spec)
    fill_pod(spec)
    spec.setdefault("enableServiceLinks", True)
    _set_priority(resource, obj, spec, store)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    _tolerate_for_a_while(spec)
    obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        why = {"reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates"}
        obj["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "lastTransitionTime": now, **why}]
    return obj


def _check_containers(resource: Resource, obj: Obj, spec: Obj) -> None:
    causes = []
    seen: set[object] = set()
    for key in ("initContainers", "containers"):
        for i, container in enumerate(spec.get(key) or ()):
            if not isinstance(container, dict):
                raise _wrong(resource, obj, Cause(f"spec.{key}[{i}]", "Invalid value: wanted an object"))
            for field in ("name", "image"):
                if not container.get(field) or not isinstance(container[field], str):
                    causes.append(Cause(f"spec.{key}[{i}].{field}", "Required value", "FieldValueRequired"))
            causes += _below_requests(container, f"spec.{key}[{i}].resources.requests")
            name = str(container.get("name"))
            if name in seen:
                causes.append(Cause(f"spec.{key}[{i}].name", f'Duplicate value: "{name}"', "FieldValueDuplicate"))
            seen.add(name)
    if causes:
        raise _wrong(resource, obj, *causes)


def _below_requests(container: Obj, path: str) -> Iterator[Cause]:
    """Yield amounts that a container requests above its limits."""
    resources = container.get("resources")
    if not isinstance(resources, dict):
        return
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name in requests:
        limit = limits.get(name)
        if limit is not None and milli_value(requests[name]) > milli_value(limit):
            what = f"must be less than or equal to {name} limit of {limit}"
            yield Cause(f"{path}", f'Invalid value: "{requests[name]}": {what}')


def _tolerate_for_a_while(spec: Obj) -> None:
    """Add tolerations, unless given: a pod stays five minutes on a node that is not ready, or cannot be reached.
    Source: Kubernetes' admission plugin DefaultTolerationSeconds."""
    given = spec.get("tolerations") or []
    added = [
        {"key": key, "operator": "Exists", "effect": NO_EXECUTE, "tolerationSeconds": _STAYS_S}
        for key in (NOT_READY, UNREACHABLE)
        if not any(t.get("key") in (key, None, "") and t.get("effect") in (NO_EXECUTE, None, "") for t in given)
    ]
    if added:
        spec["tolerations"] = [*given, *added]


def _set_priority(resource: Resource, obj: Obj, spec: Obj, store: Store) -> None:
    """Set the number of the priority class, or of the default one."""
    name = spec.get("priorityClassName")
    if not name:
        chosen = _default_class(store)
        if chosen is None:
            spec.setdefault("priority", 0)
            return
        spec["priorityClassName"] = chosen["metadata"]["name"]
        spec["priority"] = chosen.get("value", 0)
        spec.setdefault("preemptionPolicy", chosen.get("preemptionPolicy", "PreemptLowerPriority"))
        return
    if name in _SYSTEM_PRIORITIES:
        spec["priority"] = _SYSTEM_PRIORITIES[name]
        return
    found = store.find(_PRIORITY_CLASSES, str(name))
    if found is None:
        pod = str(obj["metadata"].get("name"))
        raise forbidden(resource.full_name, pod, f"no PriorityClass with name {name} was found")
    spec["priority"] = found.obj.get("value", 0)
    spec.setdefault("preemptionPolicy", found.obj.get("preemptionPolicy", "PreemptLowerPriority"))


def _default_class(store: Store) -> Obj | None:
    """Return the global default. Of several, that with the lowest value, as in Kubernetes."""
    found = [row.obj for row in store.rows(_PRIORITY_CLASSES) if row.obj.get("globalDefault")]
    return min(found, key=lambda obj: obj.get("value", 0), default=None)


def _check_pod_change(resource: Resource, old: Obj, new: Obj) -> None:
    """Check that a pod's spec stays, except for images, more tolerations, fewer scheduling gates and a shorter life."""
    if not _differ(old, new):
        return
    _check_readable(resource, new, lambda: read_pod(new, SpecCache(1), ""))
    _check_containers(resource, new, new.get("spec") or {})
    before, after = _fixed(old["spec"]), _fixed(new.get("spec") or {})
    if before != after:
        differing = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
        allowed = "image, tolerations (only additions), schedulingGates (only removals) and activeDeadlineSeconds"
        message = f"Forbidden: pod updates may not change {', '.join(differing)}; what may change is {allowed}"
        raise _wrong(resource, new, Cause("spec", message, "FieldValueForbidden"))
    causes = []
    tolerated = set(map(identity, new["spec"].get("tolerations") or ()))
    if any(identity(each) not in tolerated for each in old["spec"].get("tolerations") or ()):
        causes.append(
            Cause("spec.tolerations", "Forbidden: existing toleration can not be modified except its tolerationSeconds")
        )
    gates = {str(g.get("name")) for g in new["spec"].get("schedulingGates") or ()}
    if gates - {str(g.get("name")) for g in old["spec"].get("schedulingGates") or ()}:
        causes.append(Cause("spec.schedulingGates", "Forbidden: only deletion is allowed", "FieldValueForbidden"))
    if causes:
        raise _wrong(resource, new, *causes)


def _fixed(spec: Obj) -> Obj:
    loose = ("tolerations", "schedulingGates", "activeDeadlineSeconds", "terminationGracePeriodSeconds")
    found = {key: value for key, value in spec.items() if key not in loose}
    for key in ("containers", "initContainers"):
        if isinstance(found.get(key), list):
            found[key] = [
                {k: v for k, v in c.items() if k != "image"} if isinstance(c, dict) else c for c in found[key]
            ]
    return found


# -- other kinds


def _new_node(resource: Resource, obj: Obj, store: Store, now: str) -> Obj:
    """Admit a node. Without a number of pods it takes as many as a kubelet does by default."""
    _check_readable(resource, obj, lambda: read_node(obj))
    status = dict(obj.get("status") or {})
    capacity = {"pods": _PODS_PER_NODE, **(status.get("capacity") or {}), **(status.get("allocatable") or {})}
    status["capacity"] = {**capacity, **(status.get("capacity") or {})}
    status["allocatable"] = {**status["capacity"], **(status.get("allocatable") or {})}
    return _whole_node({**obj, "spec": obj.get("spec") or {}, "status": status})


#: Fields that a node always has, even if empty: typed clients require them.
_NODE_INFO = (
    *("architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "kubeletVersion"),
    *("machineID", "operatingSystem", "osImage", "systemUUID"),
)


def _whole_node(obj: Obj) -> Obj:
    """Return the node with the fields of its status that an API server always has."""
    status = obj.get("status") or {}
    about = {**dict.fromkeys(_NODE_INFO, ""), **(status.get("nodeInfo") or {})}
    endpoints = status.get("daemonEndpoints") or {"kubeletEndpoint": {"Port": 0}}
    return {**obj, "status": {**status, "daemonEndpoints": endpoints, "nodeInfo": about}}


def _new_secret(resource: Resource, obj: Obj, store: Store, now: str) -> Obj:
    return {"type": "Opaque", **_with_string_data(obj)}


def _with_string_data(obj: Obj) -> Obj:
    """Move plain texts of a Secret to its data. They are never returned."""
    texts = obj.get("stringData")
    if not isinstance(texts, dict):
        return obj
    data = {key: base64.b64encode(str(value).encode()).decode() for key, value in texts.items()}
    kept = {key: value for key, value in obj.items() if key != "stringData"}
    return kept | {"data": {**(obj.get("data") or {}), **data}}


def _new_namespace(resource: Resource, obj: Obj, store: Store, now: str) -> Obj:
    metadata = obj["metadata"]
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    return {
        **obj,
        "metadata": {**metadata, "labels": labels},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _new_priority_class(resource: Resource, obj: Obj, store: Store, now: str) -> Obj:
    value = obj.get("value", 0)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > 2_000_001_000:
        raise _wrong(
            resource, obj, Cause("value", f"Invalid value: {value!r:.40}: wanted a whole number to 2000001000")
        )
    return {"preemptionPolicy": "PreemptLowerPriority", **obj, "value": value}


def _new_crd(resource: Resource, obj: Obj, store: Store, now: str) -> Obj:
    _check_definition(resource, obj)
    if store.count(CRDS) >= _DEFINITIONS_MAX:
        raise forbidden(
            resource.full_name, obj["metadata"]["name"], f"there are {_DEFINITIONS_MAX} definitions already"
        )
    return _established(obj, now)


def _check_definition(resource: Resource, obj: Obj) -> None:
    """Check a definition, whose types are right, for completeness and consistency."""
    spec = obj.get("spec") or {}
    names, versions = spec.get("names") or {}, spec.get("versions") or []
    needed = {"group": spec.get("group"), "names.plural": names.get("plural"), "names.kind": names.get("kind")}
    causes = [
        Cause(f"spec.{key}", "Required value", "FieldValueRequired") for key, value in needed.items() if not value
    ]
    for key in ("kind", "listKind", "singular"):
        if len(names.get(key) or "") > _LABEL_MAX:
            causes.append(Cause(f"spec.names.{key}", f"Too long: may not be more than {_LABEL_MAX} bytes"))
    if spec.get("group") in _OWN_GROUPS:
        causes.append(Cause("spec.group", f"Invalid value: {spec['group']} is a group of Kubernetes' own"))
    if len(versions) > _VERSIONS_MAX:
        causes.append(Cause("spec.versions", f"Too many: must have at most {_VERSIONS_MAX} items"))
    if not any(version.get("served") for version in versions):
        causes.append(Cause("spec.versions", "Required value: one that is served", "FieldValueRequired"))
    for i, version in enumerate(versions):
        where = f"spec.versions[{i}]"
        if not version.get("name"):
            causes.append(Cause(f"{where}.name", "Required value", "FieldValueRequired"))
        elif len(version["name"]) > _LABEL_MAX or not DNS_LABEL.fullmatch(version["name"]):
            causes.append(Cause(f"{where}.name", "Invalid value: wanted a lowercase RFC 1123 label"))
        for key, wanted, most in _LISTED:
            if len(version.get(key) or ()) > most:
                causes.append(Cause(f"{where}.{key}", f"Too many: must have at most {most} items"))
            if not all(each.get(name) for each in version.get(key) or () for name in wanted):
                causes.append(Cause(f"{where}.{key}", f"Required value: {', '.join(wanted)}", "FieldValueRequired"))
        problem = schema_problem((version.get("schema") or {}).get("openAPIV3Schema") or {}, f"{where}.schema")
        if problem:
            causes.append(Cause(f"{where}.schema", f"Invalid value: {problem}"))
    if not causes and obj["metadata"]["name"] != f"{names['plural']}.{spec['group']}":
        causes.append(Cause("metadata.name", f'Invalid value: wanted "{names["plural"]}.{spec["group"]}"'))
    if causes:
        raise _wrong(resource, obj, *causes)


#: Lists of a version: required fields of items, and their largest number.
_LISTED = (
    ("additionalPrinterColumns", ("name", "jsonPath"), _COLUMNS_MAX),
    ("selectableFields", ("jsonPath",), _SELECTABLE_MAX),
)


def _established(obj: Obj, now: str) -> Obj:
    """Return a definition as established: it is served at once."""
    names = {"singular": obj["spec"]["names"]["kind"].lower(), **obj["spec"]["names"]}
    names.setdefault("listKind", f"{names['kind']}List")
    status = obj.get("status") or {}
    conditions = status.get("conditions") or [
        {"type": kind, "status": "True", "reason": reason, "message": text, "lastTransitionTime": now}
        for kind, reason, text in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    stored = [v["name"] for v in obj["spec"]["versions"] if v.get("storage")]
    status = {"conditions": conditions, "acceptedNames": names, "storedVersions": stored}
    return {**obj, "spec": {"conversion": {"strategy": "None"}, **obj["spec"], "names": names}, "status": status}


_WORKLOADS = (
    *("deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps"),
    *("jobs.batch", "cronjobs.batch"),
)
_NEW: dict[str, Callable[[Resource, Obj, Store, str], Obj]] = {
    "pods": _new_pod,
    "nodes": _new_node,
    "namespaces": _new_namespace,
    "secrets": _new_secret,
    "resourcequotas": lambda resource, obj, store, now: {**obj, "status": {}},
    _PRIORITY_CLASSES: _new_priority_class,
    CRDS: _new_crd,
    "services": lambda resource, obj, store, now: _new_service(obj),
    "podgroups.scheduling.k8s.io": lambda resource, obj, store, now: protected_group(obj),
    **dict.fromkeys(_WORKLOADS, lambda resource, obj, store, now: filled(resource.kind, obj)),
}


def _new_service(obj: Obj) -> Obj:
    """Admit a service. It has no address, because nothing serves it here."""
    spec: Obj = {
        "clusterIP": "None",
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
        "type": "ClusterIP",
    }
    spec |= {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"], **(obj.get("spec") or {})}
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    if ports := spec.get("ports"):
        spec["ports"] = [_whole_port(port) for port in ports]
    return {**obj, "spec": spec, "status": {"loadBalancer": {}}}


def _whole_port(port: Obj) -> Obj:
    return {"protocol": "TCP", **({"targetPort": port["port"]} if "port" in port else {}), **port}


def _check_readable(resource: Resource, obj: Obj, read: Callable[[], object]) -> None:
    """Refuse an object that the scheduler could not read."""
    try:
        read()
    except FieldError as error:
        raise _wrong(resource, obj, Cause(error.path, f"Invalid value: {error.found}: wanted {error.wanted}")) from None


def _wrong(resource: Resource, obj: Obj, *causes: Cause) -> Exception:
    return invalid(resource.kind, resource.group, str(obj["metadata"].get("name", "")), causes)
