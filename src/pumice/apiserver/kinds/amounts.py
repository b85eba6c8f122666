"""Quantities in canonical form, in all places where Kubernetes' own kinds have one.

``1`` and ``1000m`` are ``"1"``, ``1.5Gi`` is ``"1536Mi"``: the largest suffix, of the same family as in the text, with
which the number is whole. Typed clients read nothing else. Source: apimachinery resource.Quantity.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation
from typing import Any

from pumice.apiserver.kinds.resources import Resource
from pumice.model.manifest.reading.fields import Obj

_TEXT = re.compile(r"([+-]?[0-9]{0,40}(?:\.[0-9]{0,40})?)(n|u|m|[kMGTPE]i?|Ki|[eE][+-]?[0-9]{1,3}|)")
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_EXACT = Context(prec=120)
_NANO = Decimal("1e-9")


def canonical(quantity: Any) -> Any:
    """Return the canonical text. A value that is not a quantity is unchanged, and refused elsewhere."""
    if isinstance(quantity, bool) or not isinstance(quantity, int | float | str):
        return quantity
    found = _TEXT.fullmatch(str(quantity).strip()) if isinstance(quantity, str) else _TEXT.fullmatch(repr(quantity))
    if found is None or not any(map(str.isdigit, found[1])):
        return quantity
    suffix = found[2]
    try:
        value = Decimal(found[1]) * _factor(suffix)
        if value % _NANO:
            value = value.quantize(_NANO, ROUND_CEILING, _EXACT)
    except InvalidOperation:
        return quantity
    if suffix in _BINARY[1:] and abs(value) >= 1024 and value == value.to_integral_value():
        return _whole_in(int(value), 1024, _BINARY)
    if suffix[:1] in ("e", "E") and len(suffix) > 1:
        return _with_exponent(int(value / _NANO))
    return _whole_in(int(value / _NANO), 1000, _DECIMAL)


def _factor(suffix: str) -> Decimal:
    if suffix in _BINARY[1:]:
        return Decimal(1024) ** _BINARY.index(suffix)
    if suffix in _DECIMAL:
        return Decimal(1000) ** (_DECIMAL.index(suffix) - _DECIMAL.index(""))
    return Decimal(10) ** max(-40, min(int(suffix[1:]), 40))


def _whole_in(amount: int, step: int, suffixes: tuple[str, ...]) -> str:
    if amount == 0:
        return "0"
    level = 0
    while amount % step == 0 and level < len(suffixes) - 1:
        amount, level = amount // step, level + 1
    return f"{amount}{suffixes[level]}"


def _with_exponent(nanos: int) -> str:
    if nanos == 0:
        return "0"
    exponent = -9
    while nanos % 1000 == 0:
        nanos, exponent = nanos // 1000, exponent + 3
    return f"{nanos}e{exponent}" if exponent else str(nanos)


# -- where there are quantities


def with_canonical_amounts(resource: Resource, obj: Obj) -> Obj:
    """Return the object with every quantity in canonical form, the same object if nothing changes."""
    where = None if resource.custom else _PLACES.get(resource.full_name)
    if where is None:
        return obj
    found: Obj = copy.deepcopy(obj)
    for amounts in where(found):
        for key, value in amounts.items():
            amounts[key] = canonical(value)
    return found


def _of_pod_spec(spec: Any) -> Iterator[Obj]:
    if not isinstance(spec, dict):
        return
    lists = [spec.get(key) for key in ("containers", "initContainers", "ephemeralContainers")]
    containers = [container for each in lists if isinstance(each, list) for container in each]
    for holder in (spec, *containers):
        resources = holder.get("resources") if isinstance(holder, dict) else None
        yield from _parts(resources, "requests", "limits")
    yield from _parts(spec, "overhead")


def _parts(holder: Any, *keys: str) -> Iterator[Obj]:
    for key in keys:
        found = holder.get(key) if isinstance(holder, dict) else None
        if isinstance(found, dict):
            yield found


def _of_pod(obj: Obj) -> Iterator[Obj]:
    yield from _of_pod_spec(obj.get("spec"))


def _of_template(obj: Obj) -> Iterator[Obj]:
    for spec in _parts(obj, "spec"):
        for inner in (spec, *_parts(_first(spec, "jobTemplate"), "spec")):
            yield from _of_pod_spec(_first(inner, "template").get("spec"))


def _first(holder: Obj, key: str) -> Obj:
    found = holder.get(key)
    return found if isinstance(found, dict) else {}


def _of_node(obj: Obj) -> Iterator[Obj]:
    yield from _parts(obj.get("status"), "capacity", "allocatable")


def _of_quota(obj: Obj) -> Iterator[Obj]:
    yield from _parts(obj.get("spec"), "hard")
    yield from _parts(obj.get("status"), "hard", "used")


_PLACES: dict[str, Callable[[Obj], Iterator[Obj]]] = {
    "pods": _of_pod,
    "nodes": _of_node,
    "resourcequotas": _of_quota,
    "replicationcontrollers": _of_template,
    "deployments.apps": _of_template,
    "daemonsets.apps": _of_template,
    "replicasets.apps": _of_template,
    "statefulsets.apps": _of_template,
    "jobs.batch": _of_template,
    "cronjobs.batch": _of_template,
}
