"""JSON merge patch (RFC 7386), JSON patch (RFC 6902), and Kubernetes' strategic merge patch."""

from __future__ import annotations

from typing import Any

import msgspec

from pumice.apiserver.api.lists import Shape, identity
from pumice.apiserver.bounds import COPIED_BYTES_MAX, MOVED_ITEMS_MAX, Work, check_object
from pumice.apiserver.refusals import Refusal, bad_request
from pumice.model.manifest.reading.fields import Obj
from pumice.runtime.controllers.writes import merged

OPERATIONS_MAX = 10_000
_PATCH, _RETAIN, _ORDER, _DELETE = "$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/"
_GONE = object()
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def merge_patched(obj: Obj, patch: Any) -> Obj:
    """Return the object after a merge patch. Raises: Refusal 400 for a patch that is not an object."""
    if not isinstance(patch, dict):
        raise bad_request("a merge patch is an object")
    found: Obj = merged(obj, patch)
    return found


# -- JSON patch


def json_patched(obj: Obj, patch: Any) -> Obj:
    """Return the object after a JSON patch. Raises: Refusal 400 for an invalid patch, 422 for one that does not fit the
    object, 413 for too much work."""
    if not isinstance(patch, list) or len(patch) > OPERATIONS_MAX:
        raise bad_request(f"a JSON patch is a list of at most {OPERATIONS_MAX} operations")
    document = _Document(obj)
    for i, operation in enumerate(patch):
        if not isinstance(operation, dict):
            raise bad_request(f"operation {i} of the JSON patch is not an object")
        try:
            document.operate(operation)
        except (KeyError, IndexError, ValueError, TypeError, RecursionError) as error:
            what = f"operation {i} ({str(operation.get('op'))[:20]} {str(operation.get('path'))[:100]})"
            why = str(error)[:200]
            raise Refusal(422, "Invalid", f"the server rejected our request: {what} does not fit: {why}", {}) from None
    found = document.value
    if not isinstance(found, dict):
        raise bad_request("the JSON patch leaves no object")
    check_object(found)  # before any other use, because it may be deeper than its source
    return found


class _Document:
    """A copy of an object that a JSON patch changes. Copied bytes and moved items are counted."""

    def __init__(self, obj: Obj) -> None:
        self._holder: Obj = {"": _decode(_encode(obj))}
        self._copied = Work(COPIED_BYTES_MAX, "what the JSON patch copies")
        self._moved = Work(MOVED_ITEMS_MAX, "what the JSON patch moves")

    @property
    def value(self) -> Any:
        """The object, or None if it was removed."""
        return self._holder.get("")

    def operate(self, operation: Obj) -> None:
        path = _pointer(operation["path"])
        match operation["op"]:
            case "add":
                self._add(path, _copy(operation["value"]))
            case "remove":
                self._take(path)
            case "replace":
                self._take(path)
                self._add(path, _copy(operation["value"]))
            case "move":
                self._add(path, self._take(_pointer(operation["from"])))
            case "copy":
                raw = _encode(self._at(_pointer(operation["from"])))
                self._copied.spend(len(raw))
                self._add(path, _decode(raw))
            case "test":
                if self._at(path) != operation["value"]:
                    raise ValueError("the test failed")
            case other:
                raise ValueError(f"no operation {other!r:.20}")

    def _at(self, path: list[str]) -> Any:
        found: Any = self._holder
        for part in path:
            found = found[_index(found, part)] if isinstance(found, list) else found[part]
        return found

    def _add(self, path: list[str], value: Any) -> None:
        parent = self._at(path[:-1])
        if isinstance(parent, list):
            place = _index(parent, path[-1], at_end=True)
            self._moved.spend(len(parent) - place)
            parent.insert(place, value)
        elif isinstance(parent, dict):
            parent[path[-1]] = value
        else:
            raise TypeError("cannot add to a scalar value")

    def _take(self, path: list[str]) -> Any:
        parent = self._at(path[:-1])
        if isinstance(parent, list):
            place = _index(parent, path[-1])
            self._moved.spend(len(parent) - place)
            return parent.pop(place)
        if not isinstance(parent, dict):
            raise TypeError("cannot remove from a scalar value")
        return parent.pop(path[-1])


def _copy(value: Any) -> Any:
    """Return a copy of a value in the patch, because the object must not contain what another operation changes."""
    return _decode(_encode(value)) if isinstance(value, dict | list) else value


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise ValueError("a path begins with /")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")]


def _index(items: list[Any], part: str, at_end: bool = False) -> int:
    if at_end and part == "-":
        return len(items)
    if not (part.isascii() and part.isdigit() and len(part) < 10) or int(part) > len(items) - (0 if at_end else 1):
        raise IndexError(f"no item {part[:20]}")
    return int(part)


# -- strategic merge patch


def strategic_patched(obj: Obj, patch: Any, shape: Shape) -> Obj:
    """Return the object after a strategic merge patch, in which lists with a key are merged item by item. Raises:
    Refusal 400."""
    if not isinstance(patch, dict):
        raise bad_request("a strategic merge patch is an object")
    return _merge(obj, patch, shape)


def _merge(old: Obj, patch: Obj, shape: Shape) -> Obj:
    how = patch.get(_PATCH)
    if how == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if how == "delete":
        return {}
    found = dict(old)
    if isinstance(retained := patch.get(_RETAIN), list):
        kept = {key for key in retained if isinstance(key, str)}
        found = {key: value for key, value in found.items() if key in kept}
    for key, value in patch.items():
        if key.startswith(_DELETE):
            _drop(found, key.removeprefix(_DELETE), value)
        elif key in (_PATCH, _RETAIN) or key.startswith(_ORDER):
            continue
        elif value is None:
            found.pop(key, None)
        else:
            found[key] = _merged_value(found.get(key), value, shape.below(key))
    for key, order in patch.items():
        if key.startswith(_ORDER) and isinstance(order, list):
            name = key.removeprefix(_ORDER)
            _put_in_order(found, name, order, shape.below(name))
    return found


def _merged_value(old: Any, value: Any, shape: Shape) -> Any:
    if isinstance(value, dict):
        return _merge(old if isinstance(old, dict) else {}, value, shape)
    if not isinstance(value, list):
        return value
    before = old if isinstance(old, list) else []
    if shape.is_set:
        known = set(map(identity, before))
        return [*before, *(item for item in value if identity(item) not in known)]
    plain = [item for item in value if not (isinstance(item, dict) and item.get(_PATCH) == "replace")]
    if len(plain) < len(value):
        return plain
    key = shape.merge_key([*before, *(item for item in value if not _is_delete(item))])
    return _merge_items(before, value, key, shape) if key else value


def _is_delete(item: Any) -> bool:
    return isinstance(item, dict) and item.get(_PATCH) == "delete"


def _merge_items(old: list[Any], patch: list[Any], key: str, shape: Shape) -> list[Any]:
    found = list(old)
    places: dict[object, list[int]] = {}
    for i, each in enumerate(old):
        places.setdefault(identity(each.get(key)), []).append(i)
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise bad_request(f"map: {str(item)[:80]} does not contain declared merge key: {key}")
        name = identity(item[key])
        if _is_delete(item):
            for place in places.pop(name, ()):
                found[place] = _GONE
        elif name in places:
            found[places[name][0]] = _merge(found[places[name][0]], item, shape.item())
        else:
            places[name] = [len(found)]
            found.append(_merge({}, item, shape.item()))
    return [item for item in found if item is not _GONE]


def _drop(found: Obj, name: str, values: Any) -> None:
    if isinstance(found.get(name), list) and isinstance(values, list):
        dropped = set(map(identity, values))
        found[name] = [item for item in found[name] if identity(item) not in dropped]


def _put_in_order(found: Obj, name: str, order: list[Any], shape: Shape) -> None:
    """Put items in the given order. Other items stay behind them."""
    items = found.get(name)
    if not isinstance(items, list):
        return
    key = shape.merge_key(items)
    wanted = [item.get(key) if isinstance(item, dict) else item for item in order]
    places = {repr(each): i for i, each in enumerate(wanted)}

    def place(item: Any) -> int:
        return places.get(repr(item.get(key) if key and isinstance(item, dict) else item), len(places))

    found[name] = sorted(items, key=place)
