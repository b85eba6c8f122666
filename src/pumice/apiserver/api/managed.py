"""Server-side apply: owners of fields, conflicts between owners, and fields that are removed when their owner drops
them.

Owners are kept from the first server-side apply to an object on. An object that is only written in the older way has no
``managedFields``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import msgspec

from pumice.apiserver.api.lists import Shape, identity
from pumice.apiserver.kinds.metadata import metadata_of
from pumice.apiserver.kinds.resources import Resource
from pumice.apiserver.refusals import Cause, Refusal, bad_request
from pumice.model.manifest.reading.fields import Obj

Path = tuple[
    str, ...
]  # as in FieldsV1: f:name of a field, k:{…} of an item, v:… of a value in a set, "." the item itself

MANAGERS_MAX = 64
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_IDENTITY = frozenset(
    {"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"}
    | {"generateName", "deletionTimestamp", "deletionGracePeriodSeconds"}
)
_ITSELF = "."
_ABSENT = object()


class Writer(Protocol):
    """The writer. ``applied``: what was applied, None for any other write."""

    @property
    def manager(self) -> str: ...
    @property
    def force(self) -> bool: ...
    @property
    def applied(self) -> Obj | None: ...


def applied_to(resource: Resource, old: Obj, config: Obj, writer: Writer) -> Obj:
    """Return the present object, with the configuration merged in and without what its owner dropped.

    Raises: Refusal 409 that names every field of another owner, unless forced.
    """
    shape = Shape.of(resource)
    owners = _owners(old)
    wanted = dict(_values(config, shape))
    if not writer.force:
        _check_conflicts(resource, dict(_values(old, shape)), wanted, owners, writer.manager)
    found: Obj = _laid_over(old, config, shape)
    dropped = owners.get((writer.manager, "Apply", ""), set()) - wanted.keys()
    for owner, fields in owners.items():
        if owner != (writer.manager, "Apply", ""):
            dropped -= fields
    kept: Obj = _without(found, shape, _nested(dropped))
    return kept


def keep_owners(resource: Resource, old: Obj | None, new: Obj, writer: Writer, now: str, subresource: str = "") -> Obj:
    """Return the new state with its ``managedFields`` after this write."""
    before = old["metadata"].get("managedFields") if old is not None else None
    if writer.applied is None and not before:
        return new
    shape = Shape.of(resource)
    owners = {} if old is None else _owners(old)
    times = {_owner_of(entry): entry.get("time", now) for entry in before or ()}
    there = dict(_values(new, shape))
    was = dict(_values(old, shape)) if old is not None else {}
    if writer.applied is not None:
        mine, written = (writer.manager, "Apply", ""), {path for path, _ in _values(writer.applied, shape)}
        owners[mine] = written
        # Fields that an apply did not change are shared with their previous owners.
        taken = {path for path in written if was.get(path, _ABSENT) != there.get(path, _ABSENT)}
    else:
        mine = (writer.manager or "unknown", "Update", subresource)
        taken = written = {path for path, value in there.items() if was.get(path, _ABSENT) != value}
        owners[mine] = owners.get(mine, set()) | written
    for owner, fields in owners.items():
        if owner != mine:
            fields -= taken
        fields &= there.keys()
    if written:
        times[mine] = now
    entries = [_entry(resource, owner, fields, times.get(owner, now)) for owner, fields in owners.items() if fields]
    return {**new, "metadata": {**new["metadata"], "managedFields": entries[-MANAGERS_MAX:]}}


def check_config(config: Obj, manager: str) -> None:
    """Raise Refusal 400 for a configuration that cannot be applied."""
    if not manager:
        raise bad_request(
            "PatchOptions.meta.k8s.io is invalid: fieldManager: Required value: is required for apply patch"
        )
    if metadata_of(config).get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")


def _check_conflicts(
    resource: Resource,
    there: dict[Path, Any],
    wanted: dict[Path, Any],
    owners: dict[tuple[str, str, str], set[Path]],
    manager: str,
) -> None:
    causes = []
    listed = []
    for owner, fields in owners.items():
        if owner == (manager, "Apply", ""):
            continue
        differing = [
            p for p in sorted(fields & wanted.keys()) if p[-1] != _ITSELF and there.get(p, _ABSENT) != wanted[p]
        ]
        if differing:
            with_whom = f'"{owner[0]}" using {resource.api_version}'
            listed.append(f"{with_whom}:\n" + "\n".join(f"- {_dotted(path)}" for path in differing))
            causes += [Cause(_dotted(p), f"conflict with {with_whom}", "FieldManagerConflict") for p in differing]
    if len(causes) == 1:
        raise _conflicts(causes, f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}")
    if causes:
        raise _conflicts(
            causes, f"Apply failed with {len(causes)} conflicts: conflicts with " + "\nconflicts with ".join(listed)
        )


def _conflicts(causes: list[Cause], message: str) -> Refusal:
    details = {"causes": [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]}
    return Refusal(409, "Conflict", message, details)


# -- fields of an object


def _values(obj: Obj, shape: Shape) -> Iterator[tuple[Path, Any]]:
    """Yield (path, value) of each field that can have an owner."""
    for key, value in obj.items():
        if key == "metadata":
            named = {k: v for k, v in value.items() if k not in _IDENTITY}
            yield from _below(("f:metadata",), named, shape.below("metadata"))
        elif key not in ("apiVersion", "kind"):
            yield from _below((f"f:{key}",), value, shape.below(key))


def _below(path: Path, value: Any, shape: Shape) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and value and not shape.is_atomic:
        for key, part in value.items():
            yield from _below((*path, f"f:{key}"), part, shape.below(key))
    elif isinstance(value, list) and shape.is_set:
        for item in value:
            yield (*path, f"v:{_encode(item).decode()}"), item
    elif isinstance(value, list) and value and (keys := shape.keys(value)):
        for item in value:
            place = (*path, _key_of(item, keys))
            yield (*place, _ITSELF), None
            for key, part in item.items():
                yield from _below((*place, f"f:{key}"), part, shape.item().below(key))
    elif not (isinstance(value, dict) and path == ("f:metadata",)):
        yield path, value


def _key_of(item: Obj, keys: Sequence[str]) -> str:
    return "k:" + _encode({key: item.get(key, _KEY_DEFAULTS.get(key)) for key in keys}).decode()


_KEY_DEFAULTS = {"protocol": "TCP"}


def _laid_over(old: Any, config: Any, shape: Shape) -> Any:
    """Return the configuration merged into the object: objects and lists with keys are merged, others are replaced."""
    if isinstance(old, dict) and isinstance(config, dict) and not shape.is_atomic:
        found = dict(old)
        for key, value in config.items():
            if value is not None:
                found[key] = _laid_over(old.get(key), value, shape.below(key))
        return found
    if not (isinstance(old, list) and isinstance(config, list)):
        return config
    if shape.is_set:
        known = set(map(identity, old))
        return [*old, *(item for item in config if identity(item) not in known)]
    keys = shape.keys([*old, *config])
    if not keys:
        return config
    wanted = {_key_of(item, keys): item for item in config}
    merged = [_laid_over(item, wanted.pop(_key_of(item, keys), {}), shape.item()) for item in old]
    return [*merged, *wanted.values()]


def _without(obj: Any, shape: Shape, gone: Obj) -> Any:
    """Return what is left without the fields of a tree of paths. What becomes empty by that is removed, too."""
    if isinstance(obj, dict):
        return _object_without(obj, shape, gone)
    if not isinstance(obj, list):
        return obj
    values = {identity(_decode(part[2:])) for part in gone if part.startswith("v:")}
    keys = shape.keys(obj)
    found = []
    for item in obj:
        below = gone.get(_key_of(item, keys)) if keys else None
        if below is None:
            if not values or identity(item) not in values:
                found.append(item)
        elif _ITSELF not in below:
            found.append(_without(item, shape.item(), below))
    return found


def _object_without(obj: Obj, shape: Shape, gone: Obj) -> Obj:
    found = dict(obj)
    for part, below in gone.items():
        name = part[2:]
        if not part.startswith("f:") or name not in found:
            continue
        if below:
            left = _without(found[name], shape.below(name), below)
            if left in (None, {}, []):
                del found[name]
            else:
                found[name] = left
        elif not (isinstance(found[name], dict) and found[name]):  # it was empty when it was applied, and still is
            del found[name]
    return found


# -- managedFields


def _owners(obj: Obj) -> dict[tuple[str, str, str], set[Path]]:
    """Return (manager, operation, subresource) -> the fields that it owns."""
    return {
        _owner_of(entry): set(_flat(entry.get("fieldsV1") or {}, ()))
        for entry in obj["metadata"].get("managedFields") or ()
    }


def _owner_of(entry: Obj) -> tuple[str, str, str]:
    return entry.get("manager", ""), entry.get("operation", ""), entry.get("subresource", "")


def _flat(fields: Obj, path: Path) -> Iterator[Path]:
    for key, below in fields.items():
        if below:
            yield from _flat(below, (*path, key))
        else:
            yield (*path, key)


def _nested(paths: set[Path]) -> Obj:
    """Return paths as the tree of FieldsV1."""
    tree: Obj = {}
    for path in sorted(paths):
        at = tree
        for part in path:
            at = at.setdefault(part, {})
    return tree


def _entry(resource: Resource, owner: tuple[str, str, str], fields: set[Path], time: str) -> Obj:
    manager, operation, subresource = owner
    found = {
        "manager": manager,
        "operation": operation,
        "apiVersion": resource.api_version,
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": _nested(fields),
    }
    return found | ({"subresource": subresource} if subresource else {})


def _dotted(path: Path) -> str:
    text = ""
    for part in path:
        if part.startswith("f:"):
            text += f".{part[2:]}"
        elif part.startswith("k:"):
            text += "[" + ",".join(f"{key}={_encode(value).decode()}" for key, value in _decode(part[2:]).items()) + "]"
        elif part.startswith("v:"):
            text += f"[={part[2:]}]"
    return text
