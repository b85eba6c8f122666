"""Decode the part of a pod that decides where it can run, as an interned value.

Reading a spec is the expensive part of decoding a pod, and pods of a job share theirs. Therefore the raw fields that
matter are packed into a key first; for a known key the existing ``PodSpec`` is returned without reading again.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from msgspec.structs import astuple

from pumice.model.devices.gpu import GpuShare, gpu_share
from pumice.model.devices.numa import ContainerRequests, NumaAsk, numa_policy
from pumice.model.devices.shared_devices import (
    DEVICE_DOMAINS,
    DeviceAsk,
    Limits,
    counted_in_sums,
    device_annotations,
    is_shared_device,
)
from pumice.model.manifest.defaults.requests import with_requests
from pumice.model.manifest.qos import qos_class
from pumice.model.manifest.reading.bounds import check_gates, check_lists
from pumice.model.manifest.reading.fields import (
    INT32_MAX,
    INT32_MIN,
    RESOURCES_MAX,
    FieldError,
    Obj,
    at,
    choice,
    flag,
    listing,
    maybe_whole,
    quantities,
    shown,
    table,
    tables,
    text,
    text_map,
    whole,
)
from pumice.model.manifest.terms import Owner, affinity, spread, tolerations
from pumice.model.pod import EMPTY_MAP, HostPort, PodSpec
from pumice.model.pod_request import CONTAINER_STATUSES, declared, nonzero_request, pod_limit, pod_request
from pumice.model.quantity import QuantityError, whole_value
from pumice.model.resources import IGNORED_SCALARS, Resource
from pumice.model.strategy import ResourceStrategy, resource_strategy

#: If a key contains one of these, the pod may ask for shared devices.
#: Searched in the packed key, which costs one pass of C code and not a walk through all containers.
_DEVICE_DOMAINS = tuple(domain.encode() for domain in DEVICE_DOMAINS)


class SpecCache:
    """Makes equal specs one object, for the last ``size`` different ones. Belongs to a decoder; not for several
    threads."""

    __slots__ = ("_by_key", "_by_value", "_size")

    def __init__(self, size: int = 65_536) -> None:
        self._size = size
        self._by_key: dict[bytes, PodSpec] = {}
        self._by_value: dict[PodSpec, PodSpec] = {}

    def known(self, key: bytes | None) -> PodSpec | None:
        return None if key is None else self._by_key.get(key)

    def intern(self, spec: PodSpec, key: bytes | None = None) -> PodSpec:
        """Return the object that represents ``spec``, and remember it under ``key``."""
        # By value too, because equal specs may have different raw fields.
        kept = self._by_value.setdefault(spec, spec)
        # The oldest goes first, because a dict keeps the order of insertion. The bound keeps a tenant who writes ever
        # new specs from filling the memory.
        if len(self._by_value) > self._size:
            del self._by_value[next(iter(self._by_value))]
        if key is not None:
            self._by_key[key] = kept
            if len(self._by_key) > self._size:
                del self._by_key[next(iter(self._by_key))]
        return kept


class AnnotationTerms(NamedTuple):
    """What annotations say that decides where a pod can run."""

    share: GpuShare | None
    strategy: ResourceStrategy | None
    numa_policy: str


class RawPodSpec(NamedTuple):
    """The raw fields of a pod or of a pod template.

    ``spec`` was found at ``path``. ``pod_name``: for the names of claims of ephemeral volumes. ``annotations`` may ask
    for shares of GPUs, or say how nodes should be scored.
    """

    spec: Obj
    status: Obj
    path: str
    owner: Owner
    pod_name: str = ""
    annotations: Mapping[str, str] = EMPTY_MAP


def read_pod_spec(raw: RawPodSpec, cache: SpecCache) -> PodSpec:
    """Return the interned value. Raises: FieldError."""
    annotations = raw.annotations
    noted = AnnotationTerms(gpu_share(annotations), resource_strategy(annotations), numa_policy(annotations))
    key = _key(raw, noted)
    # Found in all but the first pod of a job; nothing below this line runs then.
    known = cache.known(key)
    if known is not None:
        return known
    return cache.intern(_read(raw, noted), key)


# -- the key


def _key(raw: RawPodSpec, noted: AnnotationTerms) -> bytes | None:
    """Return a digest of the raw fields that matter, or None if they contain what JSON cannot.

    Equal values may have different keys (fields in another order), but different values never have the same key.
    """
    spec, status, path, owner, pod_name, annotations = raw
    volumes = [
        (volume.get("persistentVolumeClaim"), volume.get("ephemeral") is not None and (pod_name, volume.get("name")))
        # Only volumes with claims: the others have no effect on where a pod can run.
        for volume in tables(spec, "volumes", path)
        if volume.get("persistentVolumeClaim") is not None or volume.get("ephemeral") is not None
    ]
    terms = spec.get("affinity")
    parts = (
        [_container_part(container) for container in tables(spec, "containers", path)],
        [_container_part(container) for container in tables(spec, "initContainers", path)],
        volumes,
        spec.get("nodeSelector"),
        # Terms without namespaces mean the pod's own, so equal terms in two namespaces differ.
        terms and (owner.namespace, terms),
        spec.get("tolerations"),
        spec.get("topologySpreadConstraints"),
        spec.get("resources"),
        spec.get("overhead"),
        spec.get("resourceClaims"),
        spec.get("hostNetwork"),
        spec.get("priority"),
        spec.get("priorityClassName"),
        spec.get("preemptionPolicy"),
        # Of the status only this: all else changes during the life of a pod, and would make a new key each time.
        _resizes(status),
        None if noted.share is None else astuple(noted.share),
        None if noted.strategy is None else astuple(noted.strategy),
        noted.numa_policy,
    )
    try:
        # Version 0 writes no references to objects seen before, so equal values give equal bytes.
        key = marshal.dumps(parts, 0)
        if b"atchLabelKeys" in key:  # matchLabelKeys and mismatchLabelKeys refer to the pod's own labels
            key += marshal.dumps(dict(owner.labels), 0)
        if any(domain in key for domain in _DEVICE_DOMAINS):
            key += marshal.dumps(device_annotations(annotations), 0)
    except ValueError:
        return None
    # A digest, since packed specs would fill the memory: some have kilobytes of terms.
    return blake2b(key, digest_size=16).digest()


def _container_part(container: Obj) -> tuple[Any, ...]:
    get = container.get
    # Only fields that decide placement; commands and environments differ from pod to pod.
    return get("name"), get("image"), get("resources"), get("ports"), get("restartPolicy")


def _resizes(status: Obj) -> list[Any]:
    """Return what in a status changes the request: resources in force, and a resize that is infeasible."""
    held: list[Any] = [
        (key, each.get("name"), each.get("resources"), each.get("allocatedResources"))
        for key in CONTAINER_STATUSES
        if status.get(key)
        for each in tables(status, key, "status")
        # Kubelets without in-place resize write no resources, and then the request is that of the spec.
        if each.get("resources") is not None
    ]
    if held:
        held += [c.get("reason") for c in tables(status, "conditions", "status") if c.get("type") == "PodResizePending"]
    return held


# -- the value


def _read(raw: RawPodSpec, noted: AnnotationTerms) -> PodSpec:
    spec, status, path, owner, pod_name, annotations = raw
    check_lists(spec, path)
    # Amounts are checked before they are summed up, so that an error names the path of its field.
    _check_amounts(spec, status, path)
    spec = with_requests(spec)
    containers = tables(spec, "containers", path)
    first = tables(spec, "initContainers", path)
    try:
        request, limit = pod_request(spec, status), pod_limit(spec, status)
        nonzero_milli_cpu, nonzero_memory = nonzero_request(spec)
    except QuantityError as error:  # each amount was checked; what is left is a rule that lives there
        raise FieldError(path, str(error), "quantities that can be summed") from None
    # Every name becomes a column over all nodes.
    names = {*(request.scalars or ()), *(limit.scalars or ())}
    if len(names) > RESOURCES_MAX:
        raise FieldError(at(path, "containers"), f"{len(names)} resources together", f"at most {RESOURCES_MAX}")
    # Kubernetes writes sidecars as init containers that never end.
    sidecars = [c for c in first if c.get("restartPolicy") == "Always"]
    return PodSpec(
        request=counted_in_sums(request),
        limit=counted_in_sums(limit),
        nonzero_milli_cpu=nonzero_milli_cpu,
        nonzero_memory=nonzero_memory,
        node_selector=tuple(sorted(text_map(spec, "nodeSelector", path).items())),
        affinity=affinity(spec, path, owner),
        tolerations=tolerations(spec, path),
        spread=spread(spec, path, owner),
        host_ports=_host_ports(spec, path),
        images=tuple(_images(spec, path)),
        container_count=len(containers) + len(first),
        claim_names=_claim_names(spec, path, pod_name),
        resource_claims=_resource_claims(spec, path),
        priority=maybe_whole(spec, "priority", path, INT32_MIN, INT32_MAX),
        priority_class_name=text(spec, "priorityClassName", path),
        preemption_policy=choice(spec, "preemptionPolicy", path, ("Never", "PreemptLowerPriority"), ""),
        qos=qos_class(spec),
        has_sidecar=bool(sidecars),
        gpu_share=noted.share,
        strategy=noted.strategy,
        numa=_numa(spec, path, noted.numa_policy),
        containers=_container_requests(spec, containers, first, request),
        devices=_devices(containers, first, annotations),
    )


def _devices(containers: Iterable[Obj], first: Sequence[Obj], annotations: Mapping[str, str]) -> DeviceAsk | None:
    """Return what containers may use of shared devices, or None. Preferences of a pod that uses none have no effect."""
    each, before = tuple(map(_device_limits, containers)), tuple(map(_device_limits, first))
    if not any(each) and not any(before):
        return None
    sidecars = tuple(i for i, container in enumerate(first) if container.get("restartPolicy") == "Always")
    # Sidecars only where an init container uses devices: otherwise it makes no difference when they run.
    return DeviceAsk(each, before, device_annotations(annotations), sidecars if any(before) else ())


def _device_limits(container: Obj) -> Limits:
    # Limits and not requests: of extended resources both are equal, and Volcano's plugins read limits.
    limits = (container.get("resources") or {}).get("limits") or {}
    return tuple((name, whole_value(limits[name])) for name in sorted(limits) if is_shared_device(name))


def _numa(spec: Obj, path: str, policy: str) -> NumaAsk | None:
    """Return the request for exclusive CPUs, or None. Only containers of QoS class Guaranteed that ask for whole CPUs
    have them."""
    # Kubelet's static policy gives exclusive CPUs to no other class.
    if qos_class(spec) != "Guaranteed":
        return None
    each = tuple((text(c, "name", path), declared(c).milli_cpu) for c in tables(spec, "containers", path))
    return NumaAsk(policy, each) if any(milli and milli % 1000 == 0 for _, milli in each) else None


def _container_requests(
    spec: Obj, containers: Sequence[Obj], first: Sequence[Obj], request: Resource
) -> ContainerRequests | None:
    """Return the requests by container, or None if one asks for all or the kubelet aligns none of them."""
    # Only devices are aligned for other classes than Guaranteed. Most pods are then equal, however they are divided.
    if qos_class(spec) != "Guaranteed" and not set(request.scalars or ()) - IGNORED_SCALARS:
        return None
    # One container asks for the request of the pod, unless overhead or the pod itself adds to it.
    if len(containers) + len(first) <= 1 and not spec.get("overhead") and not spec.get("resources"):
        return None
    return ContainerRequests(
        tuple(map(declared, containers)),
        tuple((declared(each), each.get("restartPolicy") == "Always") for each in first),
    )


def _check_amounts(spec: Obj, status: Obj, path: str) -> None:
    """Raise FieldError for the first invalid amount of the request, with its own path."""
    quantities(spec, "overhead", path)
    _check_resources(spec, path)
    for key in ("containers", "initContainers"):
        for i, container in enumerate(tables(spec, key, path)):
            _check_resources(container, f"{at(path, key)}[{i}]")
    for key in CONTAINER_STATUSES:
        for i, each in enumerate(tables(status, key, "status")):
            here = f"status.{key}[{i}]"
            _check_resources(each, here)
            quantities(each, "allocatedResources", here)
            text(each, "name", here)


def _check_resources(owner: Obj, path: str) -> None:
    found = table(owner, "resources", path)
    quantities(found, "requests", at(path, "resources"))
    quantities(found, "limits", at(path, "resources"))


def _images(spec: Obj, path: str) -> list[str]:
    found = []
    # In the order in which containers run, which is that of kube-scheduler's sum of images.
    for key in ("initContainers", "containers"):
        for i, container in enumerate(tables(spec, key, path)):
            here = f"{at(path, key)}[{i}]"
            text(container, "name", here)
            text(container, "restartPolicy", here)
            image = text(container, "image", here)
            if image:
                found.append(image)
    return found


def _host_ports(spec: Obj, path: str) -> tuple[HostPort, ...]:
    """Return ports that the pod occupies on the node, of containers and sidecars. With hostNetwork every container port
    is one."""
    on_host = flag(spec, "hostNetwork", path)
    found: dict[HostPort, None] = {}
    for key in ("containers", "initContainers"):
        for i, container in enumerate(tables(spec, key, path)):
            for j, port in enumerate(tables(container, "ports", f"{at(path, key)}[{i}]")):
                value = _host_port(port, f"{at(path, key)}[{i}].ports[{j}]", on_host)
                # An init container has ended before the pod's other containers run, so its port is free again.
                if value.port and (key == "containers" or container.get("restartPolicy") == "Always"):
                    found[value] = None
    return tuple(found)


def _host_port(port: Obj, path: str, on_host: bool) -> HostPort:
    inside = whole(port, "containerPort", path, 0, 0, 65_535)
    outside = whole(port, "hostPort", path, 0, 0, 65_535)
    return HostPort(
        outside or (inside if on_host else 0),
        choice(port, "protocol", path, ("TCP", "UDP", "SCTP"), "TCP"),
        text(port, "hostIP", path) or "0.0.0.0",
    )


def _claim_names(spec: Obj, path: str, pod_name: str) -> tuple[str, ...]:
    """Return the PersistentVolumeClaims: named ones, and those of ephemeral volumes, named ``<pod>-<volume>``."""
    found: dict[str, None] = {}
    for i, volume in enumerate(tables(spec, "volumes", path)):
        here = f"{at(path, 'volumes')}[{i}]"
        claim = text(table(volume, "persistentVolumeClaim", here), "claimName", f"{here}.persistentVolumeClaim")
        if not claim and volume.get("ephemeral") is not None:
            claim = f"{pod_name}-{text(volume, 'name', here)}"
        if claim:
            found[claim] = None
    return tuple(found)


def _resource_claims(spec: Obj, path: str) -> tuple[str, ...]:
    """Return names of ResourceClaims, ``template/<name>`` for a claim made from a template."""
    # The template and not the claim, whose name differs for every pod: so pods of a job have equal specs.
    found = []
    for i, claim in enumerate(tables(spec, "resourceClaims", path)):
        here = f"{at(path, 'resourceClaims')}[{i}]"
        own, template = text(claim, "resourceClaimName", here), text(claim, "resourceClaimTemplateName", here)
        # Kubernetes demands exactly one of the two.
        if bool(own) == bool(template):
            raise FieldError(here, shown(claim), "one of resourceClaimName and resourceClaimTemplateName")
        found.append(own or f"template/{template}")
    return tuple(found)


def gates(spec: Obj, path: str) -> tuple[str, ...]:
    """Return the names of the scheduling gates."""
    if not listing(spec, "schedulingGates", path):
        return ()
    check_gates(spec, path)
    return tuple(
        text(item, "name", f"{at(path, 'schedulingGates')}[{i}]")
        for i, item in enumerate(tables(spec, "schedulingGates", path))
    )
