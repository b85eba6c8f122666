"""Fill in what Kubernetes' admission fills in of a pod: the defaults of LimitRanges, and what its RuntimeClass adds.

An API server has done so for every pod that it serves, but a pod or a template in a file has not passed one. Source:
Kubernetes' admission plugins LimitRanger (``mergePodResourceRequirements``) and RuntimeClass, and
``SetDefaults_LimitRangeItem``. What these plugins refuse (minimum, maximum, ratio) is not checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from pumice.model.manifest.defaults.requests import with_requests
from pumice.model.manifest.pods import namespace_of
from pumice.model.manifest.reading.fields import Obj, name, quantities, table, tables, text, text_map

# Only these two add to a pod's request. Source: Kubernetes' default admission plugins.
LIMIT_RANGE = ("v1", "LimitRange")
RUNTIME_CLASS = ("node.k8s.io/v1", "RuntimeClass")

#: Where the pod specs of an object are: keys, with a "*" for each item of a list.
_SPECS: dict[tuple[str, str], tuple[str, ...]] = {
    ("v1", "Pod"): ("spec",),
    ("batch/v1", "Job"): ("spec", "template", "spec"),
    ("batch.volcano.sh/v1alpha1", "Job"): ("spec", "tasks", "*", "template", "spec"),
    ("batch.volcano.sh/v1alpha1", "CronJob"): ("spec", "jobTemplate", "spec", "tasks", "*", "template", "spec"),
    ("flow.volcano.sh/v1alpha1", "JobTemplate"): ("spec", "tasks", "*", "template", "spec"),
}


class ContainerDefaults(Struct, frozen=True):
    """Amounts that each container gets which does not name them."""

    requests: Mapping[str, Any] = {}
    limits: Mapping[str, Any] = {}


class RuntimeDefaults(Struct, frozen=True):
    """What a RuntimeClass adds to a pod."""

    overhead: Mapping[str, Any] = {}
    node_selector: Mapping[str, str] = {}
    tolerations: tuple[Obj, ...] = ()


class AdmissionDefaults:
    """LimitRanges by namespace and RuntimeClasses by name."""

    __slots__ = ("_limits", "_runtimes")

    def __init__(self) -> None:
        self._limits: dict[str, dict[str, ContainerDefaults]] = {}
        self._runtimes: dict[str, RuntimeDefaults] = {}

    # False for most folders, and then no object is looked at.
    def __bool__(self) -> bool:
        return bool(self._limits or self._runtimes)

    def note(self, kind: tuple[str, str], obj: Obj) -> None:
        """Add a LimitRange or a RuntimeClass; others are ignored. Raises: FieldError."""
        if kind == LIMIT_RANGE:
            metadata = table(obj, "metadata", "")
            of_namespace = self._limits.setdefault(namespace_of(metadata), {})
            of_namespace[name(metadata, "name", "metadata")] = _container_defaults(obj)
        elif kind == RUNTIME_CLASS:
            own_name = name(table(obj, "metadata", ""), "name", "metadata")
            self._runtimes[own_name] = _runtime_defaults(obj)

    def admitted(self, kind: tuple[str, str], obj: Obj) -> Obj:
        """Return the object with the defaults in its pod specs. A pod with a resourceVersion comes from an API server,
        which has admitted it."""
        metadata = obj.get("metadata")
        path = _SPECS.get(kind)
        if path is None or not self or not isinstance(metadata, dict):
            return obj
        # Jobs are filled in although they have one: an API server admits their pods and not their templates.
        if kind == ("v1", "Pod") and metadata.get("resourceVersion"):
            return obj
        # By name, because admission merges them one after another and the first one that names an amount decides.
        ranges = self._limits.get(str(metadata.get("namespace") or "default"), {})
        filled: Obj = self._filled(obj, path, [ranges[each] for each in sorted(ranges)])
        return filled

    def _filled(self, value: Any, path: tuple[str, ...], ranges: list[ContainerDefaults]) -> Any:
        # What has a wrong type is returned as it is: the reader of its kind says so, with the path of the field.
        if not path:
            return self._spec(value, ranges) if isinstance(value, dict) else value
        key, rest = path[0], path[1:]
        if key == "*":
            return [self._filled(each, rest, ranges) for each in value] if isinstance(value, list) else value
        if not isinstance(value, dict) or value.get(key) is None:
            return value
        return {**value, key: self._filled(value[key], rest, ranges)}

    def _spec(self, spec: Obj, ranges: list[ContainerDefaults]) -> Obj:
        runtime = self._runtimes.get(str(spec.get("runtimeClassName") or ""))
        if runtime is not None:
            spec = _with_runtime(spec, runtime)
        if not ranges or not _has_readable_containers(spec):
            return spec
        # A limit becomes a request before admission, so a default request does not replace it.
        spec = with_requests(spec)
        lists = {
            key: [_with_defaults(container, ranges) for container in spec[key]]
            for key in ("containers", "initContainers")
            if spec.get(key)
        }
        return {**spec, **lists}


def _container_defaults(obj: Obj) -> ContainerDefaults:
    """Return the defaults of the items for containers. Where none is given, a maximum is the default limit, and a
    limit, or else a minimum, the default request."""
    requests, limits = dict[str, Any](), dict[str, Any]()
    for i, item in enumerate(tables(table(obj, "spec", ""), "limits", "spec")):
        path = f"spec.limits[{i}]"
        # Items for pods and claims bound what is admitted and give no defaults.
        if text(item, "type", path) != "Container":
            continue
        most, least = quantities(item, "max", path) or {}, quantities(item, "min", path) or {}
        limit = {**most, **(quantities(item, "default", path) or {})}
        request = {**least, **limit, **(quantities(item, "defaultRequest", path) or {})}
        limits, requests = {**limit, **limits}, {**request, **requests}
    return ContainerDefaults(requests, limits)


def _runtime_defaults(obj: Obj) -> RuntimeDefaults:
    scheduling = table(obj, "scheduling", "")
    return RuntimeDefaults(
        quantities(table(obj, "overhead", ""), "podFixed", "overhead") or {},
        text_map(scheduling, "nodeSelector", "scheduling"),
        tuple(tables(scheduling, "tolerations", "scheduling")),
    )


def _with_runtime(spec: Obj, runtime: RuntimeDefaults) -> Obj:
    """Return the spec with what its RuntimeClass adds. An overhead or label of its own stays."""
    added: dict[str, Any] = {}
    # An overhead of its own would be refused by the API server if it differed; here it is believed.
    if runtime.overhead and not spec.get("overhead"):
        added["overhead"] = dict(runtime.overhead)
    selector, tolerations = spec.get("nodeSelector") or {}, spec.get("tolerations") or []
    if runtime.node_selector and isinstance(selector, dict):
        added["nodeSelector"] = {**runtime.node_selector, **selector}
    if runtime.tolerations and isinstance(tolerations, list):
        added["tolerations"] = [*tolerations, *(each for each in runtime.tolerations if each not in tolerations)]
    return {**spec, **added} if added else spec


def _has_readable_containers(spec: Obj) -> bool:
    """Return True if lists, containers and their amounts have the right types, as ``with_requests`` needs."""
    owners = [spec]
    for key in ("containers", "initContainers"):
        found = spec.get(key)
        if not isinstance(found, list | None):
            return False
        owners += found or ()
    for owner in owners:
        resources = owner.get("resources", {}) if isinstance(owner, dict) else ()
        if not isinstance(resources, dict | None):
            return False
        if not all(isinstance((resources or {}).get(key), dict | None) for key in ("requests", "limits")):
            return False
    return True


def _with_defaults(container: Obj, ranges: list[ContainerDefaults]) -> Obj:
    resources = container.get("resources") or {}
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for each in ranges:
        requests, limits = {**each.requests, **requests}, {**each.limits, **limits}
    # A copy at each level, because the object belongs to the caller.
    return {**container, "resources": {**resources, "requests": requests, "limits": limits}}
