"""Encode claims of devices, and slices of devices, as objects of the API: the inverse of ``model.manifest.claims``."""

from __future__ import annotations

from typing import Any
from uuid import NAMESPACE_OID, uuid5

from pumice.kube.api.encode_terms import instant_object, node_selector_object, toleration_objects
from pumice.model.devices.claims import (
    AllocatedDevice,
    Allocation,
    CapacityPolicy,
    CounterUse,
    Device,
    DeviceClass,
    DeviceOption,
    DeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from pumice.model.devices.extended import CLAIM_ANNOTATION, ExtendedRequests
from pumice.model.manifest.reading.fields import Obj

API_VERSION = "resource.k8s.io/v1"

#: The field of a constraint, by whether attributes must differ.
_CONSTRAINTS = {False: "matchAttribute", True: "distinctAttribute"}


def claim_object(claim: ResourceClaim | ResourceClaimTemplate) -> Obj:
    """Return a claim with its status, or a template."""
    devices: dict[str, Any] = {"requests": [_request(each) for each in claim.requests]}
    if claim.same:
        devices["constraints"] = [
            {
                _CONSTRAINTS[each.distinct]: each.attribute,
                **({"requests": list(each.requests)} if each.requests else {}),
            }
            for each in claim.same
        ]
    metadata = {"namespace": claim.namespace, "name": claim.name}
    labels: Obj = {"labels": dict(claim.labels)} if claim.labels else {}
    spec: Obj = {"devices": devices}
    if isinstance(claim, ResourceClaimTemplate):
        inner = {"metadata": labels, "spec": spec} if labels else {"spec": spec}
        return _object("ResourceClaimTemplate", metadata, inner)
    if claim.uid:
        metadata["uid"] = claim.uid
    if claim.for_pod:
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "", "uid": claim.for_pod, "controller": True}
        labels |= {"annotations": {CLAIM_ANNOTATION: "true"}, "ownerReferences": [owner]}
    users = [{"resource": "pods", "uid": uid} for uid in claim.reserved_for]
    status = {
        **({"allocation": allocation_object(claim.allocation, claim.key)} if claim.allocation is not None else {}),
        **({"reservedFor": users} if users else {}),
    }
    return _object("ResourceClaim", {**metadata, **labels}, spec, status)


def extended_claim_object(pod: str, uid: str, requests: tuple[DeviceRequest, ...]) -> Obj:
    """Return a new claim for the extended resources of a pod (``namespace/name``), which owns it."""
    namespace, _, name = pod.partition("/")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}
    metadata = {
        "namespace": namespace,
        "generateName": f"{name}-extended-resources-",
        "annotations": {CLAIM_ANNOTATION: "true"},
        # With it, the claim is deleted when its pod is.
        "ownerReferences": [{**owner, "blockOwnerDeletion": True}],
    }
    return _object("ResourceClaim", metadata, {"devices": {"requests": [_request(each) for each in requests]}})


def extended_allocation_object(given: Allocation, extended: ExtendedRequests, mappings: list[Obj], pod: str) -> Obj:
    """Return ``extendedResourceClaimAllocation`` of KAI's BindRequest. ``pod``: its UID."""
    return {
        "allocation": allocation_object(given, pod),
        "deviceRequests": [_request(each) for each in extended.requests],
        "containerMappings": mappings,
    }


def allocation_object(given: Allocation, of: str = "") -> Obj:
    """Return ``status.allocation`` of a claim. ``of``: the claim and the pod that it is written for."""
    results = [_allocated(each, f"{of}/{i}") for i, each in enumerate(given.devices)]
    found: Obj = {"devices": {"results": results}}
    if given.nodes is not None:
        found["nodeSelector"] = node_selector_object(given.nodes)
    return found


def _allocated(given: AllocatedDevice, place: str) -> Obj:
    found: Obj = {"request": given.request, "driver": given.driver, "pool": given.pool, "device": given.device}
    if given.consumed is not None:
        # Different for all shares of a device, also for two that one claim has. Named by what it is, so that the same
        # decision is written in the same bytes again.
        name = "/".join((given.driver, given.pool, given.device, place))
        found["shareID"] = str(uuid5(NAMESPACE_OID, name))
        found["consumedCapacity"] = {name: _amount(amount) for name, amount in given.consumed}
    return found


def device_class_object(found: DeviceClass) -> Obj:
    spec: Obj = {"selectors": _selectors(found.selectors)}
    if found.extended_resource:
        spec["extendedResourceName"] = found.extended_resource
    metadata: Obj = {"name": found.name}
    if found.creation:
        metadata["creationTimestamp"] = instant_object(found.creation)
    return _object("DeviceClass", metadata, spec)


def resource_slice_object(found: ResourceSlice) -> Obj:
    where: Obj = {"allNodes": True}
    if found.node_name:
        where = {"nodeName": found.node_name}
    elif found.nodes:
        where = {"nodeSelector": node_selector_object(found.nodes)}
    pool = {"name": found.pool, "generation": found.generation, "resourceSliceCount": found.slice_count}
    spec = {"driver": found.driver, "pool": pool, **where, "devices": [_device(each) for each in found.devices]}
    if found.counters:
        spec["sharedCounters"] = _counters(found.counters, "name")
    return _object("ResourceSlice", {"name": found.name}, spec)


def _object(kind: str, metadata: Obj, spec: Obj, status: Obj | None = None) -> Obj:
    found = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
    return {**found, "status": status} if status else found


def _request(request: DeviceRequest) -> Obj:
    if len(request.options) > 1 or request.options[0].name:
        return {"name": request.name, "firstAvailable": [_option(each) for each in request.options]}
    return {"name": request.name, "exactly": _option(request.options[0])}


def _option(option: DeviceOption) -> Obj:
    found: Obj = {"deviceClassName": option.device_class, "count": option.count}
    if option.name:
        found["name"] = option.name
    if option.every:
        found["allocationMode"] = "All"
    if option.selectors:
        found["selectors"] = _selectors(option.selectors)
    if option.capacity:
        found["capacity"] = {"requests": {name: _amount(amount) for name, amount in option.capacity}}
    if option.tolerations:
        found["tolerations"] = toleration_objects(option.tolerations)
    if option.admin:
        found["adminAccess"] = True
    return found


def _selectors(selectors: tuple[str, ...]) -> list[Obj]:
    return [{"cel": {"expression": expression}} for expression in selectors]


def _device(device: Device) -> Obj:
    found: Obj = {"name": device.name}
    if device.attributes:
        found["attributes"] = {each.name: {each.kind: _typed(each.kind, each.value)} for each in device.attributes}
    if device.capacity:
        policies = dict(device.policies)
        found["capacity"] = {
            name: {"value": _amount(amount), **({"requestPolicy": _policy(policies[name])} if name in policies else {})}
            for name, amount in device.capacity
        }
    if device.multiple:
        found["allowMultipleAllocations"] = True
    if device.taints:
        found["taints"] = [{"key": t.key, "value": t.value, "effect": t.effect} for t in device.taints]
    if device.unknown:
        found["bindingConditions"] = ["unknown"]
    if device.consumes:
        found["consumesCounters"] = _counters(device.consumes, "counterSet")
    return found


def _policy(policy: CapacityPolicy) -> Obj:
    found: Obj = {}
    if policy.default is not None:
        found["default"] = _amount(policy.default)
    if policy.values:
        found["validValues"] = [_amount(each) for each in policy.values]
    if policy.minimum is not None:
        bounds = {"min": policy.minimum, "max": policy.maximum, "step": policy.step}
        found["validRange"] = {name: _amount(amount) for name, amount in bounds.items() if amount is not None}
    return found


def _counters(uses: tuple[CounterUse, ...], own_name: str) -> list[Obj]:
    """Return sets of counters. ``own_name``: the field with the name of a set."""
    sets: dict[str, Obj] = {}
    for each in uses:
        sets.setdefault(each.counter_set, {})[each.counter] = {"value": _amount(each.amount / 1000.0)}
    return [{own_name: name, "counters": counters} for name, counters in sets.items()]


def _typed(kind: str, value: str) -> bool | int | str:
    return bool(value) if kind == "bool" else int(value) if kind == "int" else value


def _amount(amount: float) -> str:
    milli = round(amount * 1000)
    return f"{milli}m" if milli % 1000 else str(milli // 1000)
