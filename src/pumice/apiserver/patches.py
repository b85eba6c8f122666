"""The three patches: JSON merge patch (RFC 7386), JSON patch (RFC 6902), and Kubernetes' strategic merge patch."""

from __future__ import annotations

import copy
from typing import Any

from pumice.apiserver.lists import Shape
from pumice.apiserver.refusals import Refusal, bad_request
from pumice.model.manifest.fields import Obj
from pumice.runtime.controllers.writes import merged

OPERATIONS_MAX = 10_000
_PATCH, _RETAIN, _ORDER, _DELETE = "$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/"


def merge_patched(obj: Obj, patch: Any) -> Obj:
    """Raises: Refusal 400 for a patch that is no object."""
    if not isinstance(patch, dict):
        raise bad_request("a merge patch is an object")
    found: Obj = merged(obj, patch)
    return found


# -- JSON patch


def json_patched(obj: Obj, patch: Any) -> Obj:
    """Raises: Refusal 400 for what is no patch, 422 for one that does not fit the object."""
    if not isinstance(patch, list) or len(patch) > OPERATIONS_MAX:
        raise bad_request(f"a JSON patch is a list of at most {OPERATIONS_MAX} operations")
    holder = {"": copy.deepcopy(obj)}
    for i, operation in enumerate(patch):
        if not isinstance(operation, dict):
            raise bad_request(f"operation {i} of the JSON patch is no object")
        try:
            _operate(holder, operation)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            what = f"operation {i} ({str(operation.get('op'))[:20]} {str(operation.get('path'))[:100]})"
            raise Refusal(422, "Invalid", f"the server rejected our request: {what} does not fit: {error}") from None
    found = holder[""]
    if not isinstance(found, dict):
        raise bad_request("the JSON patch leaves no object")
    return found


def _operate(holder: Obj, operation: Obj) -> None:
    path = _pointer(operation["path"])
    match operation["op"]:
        case "add":
            _add(holder, path, copy.deepcopy(operation["value"]))
        case "remove":
            _take(holder, path)
        case "replace":
            _take(holder, path)
            _add(holder, path, copy.deepcopy(operation["value"]))
        case "move":
            _add(holder, path, _take(holder, _pointer(operation["from"])))
        case "copy":
            _add(holder, path, copy.deepcopy(_at(holder, _pointer(operation["from"]))))
        case "test":
            if _at(holder, path) != operation["value"]:
                raise ValueError("the test failed")
        case other:
            raise ValueError(f"no operation {other!r:.20}")


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise ValueError("a path begins with /")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")]


def _at(holder: Any, path: list[str]) -> Any:
    for part in path:
        holder = holder[_index(holder, part)] if isinstance(holder, list) else holder[part]
    return holder


def _index(items: list[Any], part: str, at_end: bool = False) -> int:
    if at_end and part == "-":
        return len(items)
    if not (part.isascii() and part.isdigit()) or int(part) > len(items) - (0 if at_end else 1):
        raise IndexError(f"no item {part[:20]}")
    return int(part)


def _add(holder: Obj, path: list[str], value: Any) -> None:
    parent = _at(holder, path[:-1])
    if isinstance(parent, list):
        parent.insert(_index(parent, path[-1], at_end=True), value)
    elif isinstance(parent, dict):
        parent[path[-1]] = value
    else:
        raise TypeError("nothing can be added to a plain value")


def _take(holder: Obj, path: list[str]) -> Any:
    parent = _at(holder, path[:-1])
    if isinstance(parent, list):
        return parent.pop(_index(parent, path[-1]))
    if not isinstance(parent, dict):
        raise TypeError("nothing can be removed from a plain value")
    return parent.pop(path[-1])


# -- strategic merge patch


def strategic_patched(obj: Obj, patch: Any, shape: Shape) -> Obj:
    """Lists whose items have a key are merged item by item. Raises: Refusal 400."""
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
        found = {key: value for key, value in found.items() if key in retained}
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
        return [*before, *(item for item in value if item not in before)]
    plain = [item for item in value if not (isinstance(item, dict) and item.get(_PATCH) == "replace")]
    if len(plain) < len(value):
        return plain
    key = shape.merge_key([*before, *(item for item in value if not _is_delete(item))])
    return _merge_items(before, value, key, shape) if key else value


def _is_delete(item: Any) -> bool:
    return isinstance(item, dict) and item.get(_PATCH) == "delete"


def _merge_items(old: list[Any], patch: list[Any], key: str, shape: Shape) -> list[Any]:
    found = list(old)
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise bad_request(f"map: {str(item)[:80]} does not contain declared merge key: {key}")
        place = next((i for i, each in enumerate(found) if each.get(key) == item[key]), None)
        if _is_delete(item):
            found = [each for each in found if each.get(key) != item[key]]
        elif place is None:
            found.append(_merge({}, item, shape.item()))
        else:
            found[place] = _merge(found[place], item, shape.item())
    return found


def _drop(found: Obj, name: str, values: Any) -> None:
    if isinstance(found.get(name), list) and isinstance(values, list):
        found[name] = [item for item in found[name] if item not in values]


def _put_in_order(found: Obj, name: str, order: list[Any], shape: Shape) -> None:
    """Items that the order names come in that order; the others stay behind them."""
    items = found.get(name)
    if not isinstance(items, list):
        return
    key = shape.merge_key(items)
    wanted = [item.get(key) if isinstance(item, dict) else item for item in order]
    places = {repr(each): i for i, each in enumerate(wanted)}

    def place(item: Any) -> int:
        return places.get(repr(item.get(key) if key and isinstance(item, dict) else item), len(places))

    found[name] = sorted(items, key=place)
