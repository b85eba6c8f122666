"""Read single fields of a decoded object. Errors name the JSON path, what was found, and what is wanted.

A reader takes the object that holds the field, the key, and the path of that object ("" at the top). The full path is
composed only for an error. As in Kubernetes, null is the same as absent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pumice.model.instants import epoch_of
from pumice.model.pod import EMPTY_MAP
from pumice.model.quantity import QuantityError, QuantityTooLarge, milli_value, whole_value
from pumice.model.resources import Resource

Obj = dict[str, Any]

INT32_MAX = 2**31 - 1
_OF_EVERY_NODE = ("cpu", "memory", "pods")
#: The largest amount of a resource, in its own unit, whose thousandths fit an int64.
_LARGEST = str((2**63 - 1) // 1000)
INT32_MIN = -(2**31)
INT64_MAX = 2**63 - 1
# Kubernetes' bound for a DNS subdomain, which most names are.
NAME_MAX = 253
#: Kinds of resources that one object may name. Bounded, because each is a column over all nodes.
RESOURCES_MAX = 128
_RESOURCE_NAME_MAX = 317  # a domain, a slash, a name

_SHOWN_MAX = 80
_INSTANT_MAX = 40


# Path, found and wanted apart, because callers compose the text, and repairs look the path up.
class FieldError(ValueError):
    """An invalid field, with its path inside the object."""

    def __init__(self, path: str, found: str, wanted: str) -> None:
        super().__init__(path, found, wanted)
        self.path, self.found, self.wanted = path, found, wanted

    def __str__(self) -> str:
        return f"{self.path}: found {self.found}, wanted {self.wanted}"


class ManifestError(ValueError):
    """An object that cannot be used. ``where``: kind, namespace/name and the path of the field."""

    def __init__(self, where: str, found: str, wanted: str) -> None:
        super().__init__(where, found, wanted)
        self.where, self.found, self.wanted = where, found, wanted

    def __str__(self) -> str:
        return f"{self.where}: found {self.found}, wanted {self.wanted}"


class UnsupportedKind(ManifestError):
    """A kind that Pumice does not read. ``kind``: ``apiVersion Kind``."""

    def __init__(self, where: str, kind: str) -> None:
        super().__init__(where, kind, "a kind that Pumice reads")
        self.kind = kind


def shown(value: object) -> str:
    """Return a value as JSON, short enough for one line of an error message."""
    match value:
        case None:
            return "nothing"
        case str():
            cut = value if len(value) <= _SHOWN_MAX else f"{value[:_SHOWN_MAX]}…"
            # Escaped if it has control characters, which a terminal would obey.
            text = json.dumps(cut, ensure_ascii=not cut.isprintable())
            return text if cut is value else f"{text} ({len(value)} characters)"
        # In this order, because True is an int in Python.
        case bool() | float():
            return json.dumps(value)
        case int():
            # Python refuses to print very long integers.
            return str(value) if value.bit_length() <= 256 else f"an integer of {value.bit_length()} bits"
        # Not its contents: they may be long, and may hold secrets.
        case dict():
            return "an object" if value else "an empty object"
        case list() | tuple():
            return f"a list of {len(value)}"
        case _:
            return f"a {type(value).__name__}"


def at(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


# One form for all errors, so that a reader of a file finds the place by the same words in each.
def wrong(obj: Obj, key: str, path: str, wanted: str) -> FieldError:
    """Return the error for ``obj[key]``."""
    return FieldError(at(path, key), shown(obj.get(key)), wanted)


def text(obj: Obj, key: str, path: str, default: str = "") -> str:
    value = obj.get(key)
    if value is None:
        return default
    if type(value) is not str:
        raise wrong(obj, key, path, "a string")
    return value


def name(obj: Obj, key: str, path: str) -> str:
    """Return a name, which must be present. Wider than Kubernetes' rule, since old clusters have ``_`` and capitals."""
    value = obj.get(key)
    if type(value) is not str or not value or len(value) > NAME_MAX or not is_name(value):
        raise wrong(obj, key, path, f"a name of 1 to {NAME_MAX} characters without spaces or /")
    return value


def is_name(value: str) -> bool:
    # A slash would make two keys ``namespace/name`` equal that belong to different objects.
    return value.isprintable() and "/" not in value and " " not in value


def short_text(obj: Obj, key: str, path: str, default: str = "") -> str:
    """Return a reference by name, which may be absent, and is bounded like a name."""
    value = text(obj, key, path) or default
    if len(value) > NAME_MAX:
        raise wrong(obj, key, path, f"at most {NAME_MAX} characters")
    return value


def whole(obj: Obj, key: str, path: str, default: int, low: int = INT32_MIN, high: int = INT32_MAX) -> int:
    value = maybe_whole(obj, key, path, low, high)
    return default if value is None else value


def maybe_whole(obj: Obj, key: str, path: str, low: int = INT32_MIN, high: int = INT32_MAX) -> int | None:
    value = obj.get(key)
    if value is None:
        return None
    # The exact type: bool is a subclass of int, and ``true`` is not a number.
    if type(value) is not int or not low <= value <= high:
        raise wrong(obj, key, path, f"an integer from {low} to {high}")
    return value


def amount(obj: Obj, key: str, path: str, default: float, low: float, high: float, *, or_else: float) -> float:
    """Return a number within bounds, or the special value ``or_else`` outside of them."""
    value = obj.get(key)
    if value is None:
        return default
    if type(value) not in (int, float) or not (low <= value <= high or value == or_else):
        raise wrong(obj, key, path, f"a number from {low:g} to {high:g}, or {or_else:g}")
    return float(value)


def flag(obj: Obj, key: str, path: str, default: bool = False) -> bool:
    value = obj.get(key)
    if value is None:
        return default
    # 0, 1 and texts are not accepted, as the API server accepts none of them.
    if type(value) is not bool:
        raise wrong(obj, key, path, "true or false")
    return value


def choice(obj: Obj, key: str, path: str, accepted: tuple[str, ...], default: str | None = None) -> str:
    """Return one of the accepted words. Without a default the field must be present. "" counts as absent."""
    value = obj.get(key)
    # Go writes an empty text for a field that is not set.
    if default is not None and (value is None or value == ""):
        return default
    if type(value) is not str or value not in accepted:
        raise wrong(obj, key, path, f"one of {', '.join(accepted)}")
    return value


def table(obj: Obj, key: str, path: str) -> Obj:
    value = obj.get(key)
    if value is None:
        return {}
    if type(value) is not dict:
        raise wrong(obj, key, path, "an object")
    return value


def maybe_table(obj: Obj, key: str, path: str) -> Obj | None:
    return None if obj.get(key) is None else table(obj, key, path)


def listing(obj: Obj, key: str, path: str) -> list[Any]:
    value = obj.get(key)
    if value is None:
        return []
    if type(value) is not list:
        raise wrong(obj, key, path, "a list")
    return value


def tables(obj: Obj, key: str, path: str) -> list[Obj]:
    items = listing(obj, key, path)
    for i, item in enumerate(items):
        if type(item) is not dict:
            raise FieldError(f"{at(path, key)}[{i}]", shown(item), "an object")
    return items


def texts(obj: Obj, key: str, path: str) -> tuple[str, ...]:
    items = listing(obj, key, path)
    for i, item in enumerate(items):
        if type(item) is not str:
            raise FieldError(f"{at(path, key)}[{i}]", shown(item), "a string")
    return tuple(items)


def text_map(obj: Obj, key: str, path: str) -> Mapping[str, str]:
    """Return a copy of labels, annotations and the like. A null value is "", as in Kubernetes."""
    found = table(obj, key, path)
    if not found:
        return EMPTY_MAP
    # A plain loop and a copy: every object that is read comes through here, and null values are rare.
    for k, value in found.items():
        if type(value) is not str or type(k) is not str:
            return _text_map_slowly(found, at(path, key))
    # Copied, so that a value does not change if its raw object does.
    return found.copy()


def _text_map_slowly(found: Obj, path: str) -> Mapping[str, str]:
    for k, value in found.items():
        if type(k) is not str:
            raise FieldError(path, f"a key {shown(k)}", "keys that are strings")
        if value is not None and type(value) is not str:
            raise FieldError(at(path, k), shown(value), "a string")
    return {k: value or "" for k, value in found.items()}


def quantities(obj: Obj, key: str, path: str) -> Obj | None:
    """Return a resource list whose amounts are all valid quantities of at least 0, or None if it is absent."""
    found = maybe_table(obj, key, path)
    if found is None:
        return None
    if len(found) > RESOURCES_MAX:
        raise FieldError(at(path, key), f"{len(found)} resources", f"at most {RESOURCES_MAX}")
    for k, value in found.items():
        problem = _amount_problem(k, value)
        if problem is not None:
            raise FieldError(at(at(path, key), str(k)[:_RESOURCE_NAME_MAX]), *problem)
    return found


def maybe_resource(obj: Obj, key: str, path: str) -> Resource | None:
    """Return a resource list as an amount, or None if it is absent."""
    found = quantities(obj, key, path)
    return None if found is None else Resource.from_list(found)


def maybe_offer(obj: Obj, key: str, path: str) -> Resource | None:
    """Return what a node offers as an amount, or None if it is absent. An amount of a device or another extended
    resource that an int64 does not hold counts as the largest one: it is more than any pods request."""
    found = obj.get(key)
    if isinstance(found, dict):
        # Cores and memory of that size are a mistake, and a node would get all pods by it.
        extended = ((name, value) for name, value in found.items() if name not in _OF_EVERY_NODE)
        large = {name: _LARGEST for name, value in extended if _is_too_large(value)}
        obj = {**obj, key: {**found, **large}} if large else obj
    return maybe_resource(obj, key, path)


def _is_too_large(value: object) -> bool:
    if type(value) not in (str, int, float):
        return False
    try:
        milli_value(value)  # type: ignore[arg-type]
    except QuantityTooLarge:
        return True
    except QuantityError:
        return False
    return False


def _amount_problem(key: object, value: object) -> tuple[str, str] | None:
    """Return what is wrong with one entry of a resource list (found, wanted), or None."""
    if type(key) is not str:
        return f"a key {shown(key)}", "keys that are strings"
    if len(key) > _RESOURCE_NAME_MAX:
        return f"a name of {len(key)} characters", f"at most {_RESOURCE_NAME_MAX}"
    if type(value) not in (str, int, float):
        return shown(value), "a quantity >= 0"
    try:
        # With the unit in which it is stored, because the bound of an int64 depends on it.
        amount = whole_value(value) if key in ("memory", "pods") else milli_value(value)  # type: ignore[arg-type]
    except QuantityError as error:
        return shown(value), f"a quantity >= 0 ({error})"
    return (shown(value), "a quantity >= 0") if amount < 0 else None


def instant(obj: Obj, key: str, path: str) -> float | None:
    """Return an RFC 3339 text as seconds since the epoch, or None if it is absent."""
    value = obj.get(key)
    if value is None or value == "":
        return None
    # Bounded before it is parsed, since any client may write any text here.
    seconds = epoch_of(value) if type(value) is str and len(value) <= _INSTANT_MAX else None
    if seconds is None:
        raise wrong(obj, key, path, "an RFC 3339 time such as 2024-01-01T00:00:00Z")
    return seconds
