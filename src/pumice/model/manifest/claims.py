"""Decode ResourceClaims, their templates, DeviceClasses and ResourceSlices."""

from __future__ import annotations

from collections.abc import Iterator

from pumice.model.devices.claims import (
    AllocatedDevice,
    Allocation,
    Amounts,
    CapacityPolicy,
    CounterUse,
    Device,
    DeviceAttribute,
    DeviceClass,
    DeviceOption,
    DeviceRequest,
    DeviceTaint,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    SameAttribute,
)
from pumice.model.devices.extended import CLAIM_ANNOTATION
from pumice.model.manifest.pods import controller_of, namespace_of
from pumice.model.manifest.reading.fields import (
    INT64_MAX,
    FieldError,
    Obj,
    at,
    choice,
    flag,
    instant,
    listing,
    maybe_table,
    name,
    quantities,
    shown,
    table,
    tables,
    text,
    text_map,
    texts,
    whole,
    wrong,
)
from pumice.model.manifest.terms import node_selector, tolerations
from pumice.model.quantity import milli_value
from pumice.model.resources import is_extended

_EXACT, _ALL = "ExactCount", "All"
#: Longer than any list that an API server accepts.
_LISTED_MAX = 4_096
#: Counters of one set. Kubernetes accepts 32 in all sets of a slice.
COUNTERS_MAX = 64
_TAINT_EFFECTS = ("None", "NoSchedule", "NoExecute")
_KINDS = ("string", "int", "bool", "version")


def read_resource_claim(obj: Obj) -> ResourceClaim:
    metadata = table(obj, "metadata", "")
    spec, status = table(obj, "spec", ""), table(obj, "status", "")
    return ResourceClaim(
        namespace_of(metadata),
        name(metadata, "name", "metadata"),
        *_asked(spec, "spec"),
        labels=text_map(metadata, "labels", "metadata"),
        uid=text(metadata, "uid", "metadata"),
        allocation=_allocation(status),
        reserved_for=tuple(
            text(user, "uid", f"status.reservedFor[{i}]")
            for i, user in enumerate(_few(status, "reservedFor", "status"))
        ),
        unknown=_unknown(spec, "spec"),
        for_pod=_for_pod(metadata),
    )


def _for_pod(metadata: Obj) -> str:
    """Return the UID of the pod for whose extended resources a scheduler made a claim, or ""."""
    if text_map(metadata, "annotations", "metadata").get(CLAIM_ANNOTATION) != "true":
        return ""
    owner = controller_of(metadata)
    return owner[2] if owner is not None and owner[0] == "Pod" else ""


def read_resource_claim_template(obj: Obj) -> ResourceClaimTemplate:
    metadata = table(obj, "metadata", "")
    inner = table(obj, "spec", "")
    spec = table(inner, "spec", "spec")
    return ResourceClaimTemplate(
        namespace_of(metadata),
        name(metadata, "name", "metadata"),
        *_asked(spec, "spec.spec"),
        labels=text_map(table(inner, "metadata", "spec"), "labels", "spec.metadata"),
        unknown=_unknown(spec, "spec.spec"),
    )


def read_device_class(obj: Obj) -> DeviceClass:
    metadata = table(obj, "metadata", "")
    # Its configuration is left out: it is for the driver on the node.
    spec = table(obj, "spec", "")
    return DeviceClass(
        name(metadata, "name", "metadata"),
        _selectors(spec, "spec"),
        _extended_resource(spec),
        instant(metadata, "creationTimestamp", "metadata") or 0.0,
    )


def _extended_resource(spec: Obj) -> str:
    """Return the extended resource that a class names, or ""."""
    found = text(spec, "extendedResourceName", "spec")
    # Another resource would be counted by the node as well, and a pod given it twice.
    if found and not is_extended(found):
        raise wrong(spec, "extendedResourceName", "spec", "the name of an extended resource, as example.com/gpu")
    return found


def read_resource_slice(obj: Obj) -> ResourceSlice:
    metadata, spec = table(obj, "metadata", ""), table(obj, "spec", "")
    pool = table(spec, "pool", "spec")
    own, everywhere = text(spec, "nodeName", "spec"), flag(spec, "allNodes", "spec")
    terms = () if own or everywhere else node_selector(spec, "nodeSelector", "spec") or ()
    devices = tuple(_device(device, f"spec.devices[{i}]") for i, device in enumerate(_few(spec, "devices", "spec")))
    # Slices in which each device names its own nodes are not supported yet, so they offer nothing.
    if not (own or everywhere or terms):
        devices = ()
    return ResourceSlice(
        name(metadata, "name", "metadata"),
        text(spec, "driver", "spec"),
        text(pool, "name", "spec.pool"),
        own,
        terms,
        devices,
        whole(pool, "generation", "spec.pool", 0, 0, INT64_MAX),
        # 1 where it is missing: a slice by itself is then the whole pool.
        whole(pool, "resourceSliceCount", "spec.pool", 1, 0, INT64_MAX),
        _counters(spec, "sharedCounters", "name", "spec"),
    )


def _few(obj: Obj, key: str, path: str) -> list[Obj]:
    found = tables(obj, key, path)
    if len(found) > _LISTED_MAX:
        raise FieldError(at(path, key), f"a list of {len(found)}", f"at most {_LISTED_MAX}")
    return found


# -- what is asked for


def _asked(spec: Obj, path: str) -> tuple[tuple[DeviceRequest, ...], tuple[SameAttribute, ...]]:
    asked, here = table(spec, "devices", path), at(path, "devices")
    requests = tuple(_request(each, f"{here}.requests[{i}]") for i, each in enumerate(_few(asked, "requests", here)))
    same = tuple(
        SameAttribute(attribute, texts(each, "requests", where), distinct=key == "distinctAttribute")
        for i, each in enumerate(_few(asked, "constraints", here))
        for where in (f"{here}.constraints[{i}]",)
        for key in ("matchAttribute", "distinctAttribute")
        if (attribute := text(each, key, where))
    )
    return requests, same


def _request(obj: Obj, path: str) -> DeviceRequest:
    """Return a request. v1 writes ``exactly`` or ``firstAvailable``; v1beta1 has the fields of ``exactly`` in the
    request itself."""
    own_name = text(obj, "name", path)
    several = _few(obj, "firstAvailable", path)
    # One of several options: each has a name, by which the allocation says which one was chosen.
    if several:
        options = tuple(
            _option(each, where, text(each, "name", where))
            for i, each in enumerate(several)
            for where in (f"{path}.firstAvailable[{i}]",)
        )
        return DeviceRequest(own_name, options)
    # v1beta1 has no ``exactly``, and writes its fields directly into the request.
    exactly = maybe_table(obj, "exactly", path)
    return DeviceRequest(own_name, (_option(obj, path) if exactly is None else _option(exactly, at(path, "exactly")),))


def _option(obj: Obj, path: str, own_name: str = "") -> DeviceOption:
    mode = choice(obj, "allocationMode", path, (_EXACT, _ALL), _EXACT)
    capacity = quantities(table(obj, "capacity", path), "requests", at(path, "capacity")) or {}
    return DeviceOption(
        text(obj, "deviceClassName", path),
        whole(obj, "count", path, 1, 0, INT64_MAX),
        own_name,
        every=mode == _ALL,
        selectors=_selectors(obj, path),
        # Sorted, so that equal requests are equal values.
        capacity=tuple(sorted((key, milli_value(value) / 1000.0) for key, value in capacity.items())),
        tolerations=tolerations(obj, path),
        admin=flag(obj, "adminAccess", path),
    )


def _selectors(obj: Obj, path: str) -> tuple[str, ...]:
    return tuple(
        text(table(each, "cel", where), "expression", f"{where}.cel")
        for i, each in enumerate(_few(obj, "selectors", path))
        for where in (f"{at(path, 'selectors')}[{i}]",)
    )


def _unknown(spec: Obj, path: str) -> str:
    """Return the first feature that a claim needs and Pumice does not support, or ""."""
    asked = table(spec, "devices", path)
    constraints = tables(asked, "constraints", at(path, "devices"))
    # Such a claim is kept with this text instead of being refused: its pod then waits with a reason that users see.
    if any(each.get("matchAttribute") is None and each.get("distinctAttribute") is None for each in constraints):
        return "a constraint other than matchAttribute and distinctAttribute"
    if any(each.admin for request in _asked(spec, path)[0] for each in request.options):
        # Such a claim may use devices that others hold, which the ledger of devices cannot express.
        return "adminAccess"
    return ""


# -- what was given


def _allocation(status: Obj) -> Allocation | None:
    found = maybe_table(status, "allocation", "status")
    if found is None:
        return None
    path = "status.allocation"
    devices = tuple(
        _allocated(each, where)
        for i, each in enumerate(_few(table(found, "devices", path), "results", f"{path}.devices"))
        for where in (f"{path}.devices.results[{i}]",)
    )
    return Allocation(devices, node_selector(found, "nodeSelector", path))


def _allocated(result: Obj, path: str) -> AllocatedDevice:
    request, driver, pool, device = (text(result, key, path) for key in _RESULT)
    return AllocatedDevice(request, driver, pool, device, _consumed(result, path))


def _consumed(result: Obj, path: str) -> Amounts | None:
    if result.get("consumedCapacity") is None:
        return None
    return tuple(_capacity(table(result, "consumedCapacity", path), f"{path}.consumedCapacity"))


# In the order of the fields of ``AllocatedDevice``.
_RESULT = ("request", "driver", "pool", "device")


# -- what there is


def _device(obj: Obj, path: str) -> Device:
    # Attributes are under ``basic`` in v1beta1, and in the device itself since.
    inner = table(obj, "basic", path) if "basic" in obj else obj  # as v1beta1 writes it
    return Device(
        name(obj, "name", path),
        tuple(_attributes(table(inner, "attributes", path), at(path, "attributes"))),
        tuple(_capacity(table(inner, "capacity", path), at(path, "capacity"))),
        tuple(
            DeviceTaint(
                text(each, "key", where), text(each, "value", where), choice(each, "effect", where, _TAINT_EFFECTS)
            )
            for i, each in enumerate(tables(inner, "taints", path))
            for where in (f"{path}.taints[{i}]",)
        ),
        # Kept with a reason and not left out: the device exists, and users see why it is not used.
        _unusable(inner, path),
        _counters(inner, "consumesCounters", "counterSet", path),
        flag(inner, "allowMultipleAllocations", path),
        tuple(_policies(table(inner, "capacity", path), at(path, "capacity"))),
    )


def _unusable(inner: Obj, path: str) -> str:
    """Return why a device is never given, or ""."""
    if texts(inner, "bindingConditions", path):
        return "must be prepared before a pod is bound"
    # The first share would take the counters, and the ones after it none. No driver is known to offer such devices.
    if inner.get("consumesCounters") and flag(inner, "allowMultipleAllocations", path):
        return "consumes counters and can be given several times"
    return ""


def _policies(found: Obj, path: str) -> Iterator[tuple[str, CapacityPolicy]]:
    for key, value in sorted(found.items()):
        here = f"{at(path, str(key))}.requestPolicy"
        policy = value.get("requestPolicy") if isinstance(value, dict) else None
        if policy is None:
            continue
        if not isinstance(policy, dict):
            raise FieldError(here, shown(policy), "an object")
        within = table(policy, "validRange", here)
        minimum, step = _amount(within, "min", f"{here}.validRange"), _amount(within, "step", f"{here}.validRange")
        if step is not None and step <= 0:
            raise FieldError(f"{here}.validRange.step", shown(within["step"]), "more than 0")
        listed = enumerate(listing(policy, "validValues", here)[:_LISTED_MAX])
        yield (
            key,
            CapacityPolicy(
                _amount(policy, "default", here),
                tuple(sorted(_quantity(each, f"{here}.validValues[{i}]") for i, each in listed)),
                # A range without a minimum starts at nothing.
                (minimum or 0.0) if within else None,
                _amount(within, "max", f"{here}.validRange"),
                step,
            ),
        )


def _amount(obj: Obj, key: str, path: str) -> float | None:
    return None if obj.get(key) is None else _quantity(obj[key], at(path, key))


def _quantity(value: object, path: str) -> float:
    try:
        return milli_value(value) / 1000.0  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise FieldError(path, shown(value), "a quantity") from None


def _attributes(found: Obj, path: str) -> Iterator[DeviceAttribute]:
    # Sorted, because a JSON object has no order, and equal devices should be equal values.
    for key, value in sorted(found.items()):
        here = at(path, str(key))
        if not isinstance(value, dict):
            raise FieldError(here, shown(value), "an object")
        # Exactly one is set. Source: Kubernetes' DeviceAttribute.
        kind = next((each for each in _KINDS if value.get(each) is not None), "")
        if kind == "bool":
            yield DeviceAttribute(key, kind, "true" if flag(value, kind, here) else "")
        elif kind == "int":
            yield DeviceAttribute(key, kind, str(whole(value, kind, here, 0, -INT64_MAX, INT64_MAX)))
        elif kind:
            yield DeviceAttribute(key, kind, text(value, kind, here))


def _counters(obj: Obj, key: str, own_name: str, path: str) -> tuple[CounterUse, ...]:
    """Return the counters of sets of counters. ``own_name``: the field with the name of a set."""
    found = []
    for i, each in enumerate(_few(obj, key, path)):
        where = f"{at(path, key)}[{i}]"
        counters = table(each, "counters", where)
        if len(counters) > COUNTERS_MAX:
            raise FieldError(f"{where}.counters", f"{len(counters)} counters", f"at most {COUNTERS_MAX}")
        of_set = text(each, own_name, where)
        amounts = _capacity(counters, f"{where}.counters")
        found += [CounterUse(of_set, counter, 1000.0 * amount) for counter, amount in amounts]
    return tuple(found)


def _capacity(found: Obj, path: str) -> Iterator[tuple[str, float]]:
    for key, value in sorted(found.items()):
        # v1beta1 and later write ``{value: ...}``, earlier versions the quantity itself.
        amount = value.get("value") if isinstance(value, dict) else value
        try:
            yield key, milli_value(amount) / 1000.0  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise wrong({key: amount}, key, path, "a quantity") from None
