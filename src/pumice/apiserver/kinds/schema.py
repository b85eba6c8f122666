"""Validate objects by the schema of their kind: defaults are filled in, unknown fields are removed and named.

This is what Kubernetes does with structural schemas. Rules in CEL (``x-kubernetes-validations``) are not evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sized
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import msgspec

from pumice.algorithms.patterns import Pattern, PatternError, compile_pattern
from pumice.apiserver.bounds import JUDGING_STEPS_MAX, Work
from pumice.apiserver.kinds.core_fields import fields_of
from pumice.apiserver.kinds.resources import Resource
from pumice.apiserver.refusals import Cause, Refusal, invalid
from pumice.model.instants import epoch_of
from pumice.model.manifest.reading.fields import Obj, shown
from pumice.model.manifest.reading.keys import unknown_keys

CAUSES_MAX = 32
_LISTED_MAX = 50  # values of an enum in a message
_TIME_MAX = 64
_KEY_SHOWN = 100  # characters of a field's name in a path
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_ROOT = ("apiVersion", "kind", "metadata")


class RequestOptions(Protocol):
    """How unknown fields are treated: Strict, Warn or Ignore; warnings are added to a list."""

    @property
    def unknown_fields(self) -> str: ...
    @property
    def warnings(self) -> list[str]: ...


def conformed(resource: Resource, obj: Obj, options: RequestOptions) -> Obj:
    """Return the object as its kind's schema has it.

    Raises: Refusal 422 for invalid fields, 400 for unknown ones if strict, 413 if validation is too much work.
    """
    schema = resource.schema if resource.custom else fields_of(resource.kind)
    if schema is None:
        # Kubernetes' own groups have no schema here, but it is known which fields they have.
        named = {**obj, "apiVersion": resource.api_version, "kind": resource.kind}
        _report([each.path for each in unknown_keys(named)], resource, options)
        return obj
    judge = _Judge(Work(JUDGING_STEPS_MAX, "judging this object by the schema of its kind"))
    root = {key: obj[key] for key in _ROOT if key in obj}
    rest = judge.value(schema, {key: value for key, value in obj.items() if key not in _ROOT}, "")
    _report(judge.unknown, resource, options)
    if judge.causes:
        raise invalid(resource.kind, resource.group, str(obj["metadata"].get("name", "")), judge.causes)
    found: Obj = root | rest
    return found


def _report(unknown: Collection[str], resource: Resource, options: RequestOptions) -> None:
    """Name unknown fields as the request wants it. Raises: Refusal 400."""
    if unknown and options.unknown_fields == "Strict":
        listed = ", ".join(f'unknown field "{path}"' for path in unknown)
        kind = f'{resource.kind} in version "{resource.version}"'
        raise Refusal(
            400, "BadRequest", f"{kind} cannot be handled as a {resource.kind}: strict decoding error: {listed}"
        )
    if options.unknown_fields != "Ignore":
        options.warnings.extend(f'unknown field "{path}"' for path in unknown)


@dataclass(slots=True)
class _Judge:
    """Validates values until enough problems are known. Its work is counted, because a client wrote the schema."""

    work: Work
    causes_max: int = CAUSES_MAX
    causes: list[Cause] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def value(self, schema: Obj, value: Any, path: str) -> Any:
        """Return the value with defaults and without unknown fields; problems are noted."""
        self.work.spend(1)
        if len(self.causes) >= self.causes_max:
            return value
        if schema.get("x-kubernetes-int-or-string"):
            if not isinstance(value, int | str) or isinstance(value, bool):
                self._wrong(
                    path, f"Invalid value: {shown(value)}: wanted an integer or a string", "FieldValueTypeInvalid"
                )
                return value
        elif not self._has_type(schema, value, path):
            return value
        if isinstance(value, dict):
            value = self._object(schema, value, path)
        elif isinstance(value, list):
            value = [self.value(schema.get("items") or {}, item, f"{path}[{i}]") for i, item in enumerate(value)]
        for text, reason in _problems(schema, value, self.work):
            self._wrong(path, text, reason)
        return value

    def _has_type(self, schema: Obj, value: Any, path: str) -> bool:
        wanted = schema.get("type")
        allowed = _TYPES.get(str(wanted))
        if allowed is None:
            return True
        if isinstance(value, float) and wanted == "integer" and value.is_integer():
            return True
        if isinstance(value, allowed) and (wanted == "boolean" or not isinstance(value, bool)):
            return True
        text = (
            f'Invalid value: "{_kind_of(value)}": {path or "the object"} must be of type {wanted}: "{_kind_of(value)}"'
        )
        self._wrong(path, text, "FieldValueTypeInvalid")
        return False

    def _object(self, schema: Obj, value: Obj, path: str) -> Obj:
        properties: Obj = schema.get("properties") or {}
        others = schema.get("additionalProperties")
        open_ = bool(schema.get("x-kubernetes-preserve-unknown-fields")) or others is True or "type" not in schema
        found: Obj = {}
        self.work.spend(len(properties) >> 3)
        for key, part in value.items():
            below = f"{path}.{key[:_KEY_SHOWN]}" if path else key[:_KEY_SHOWN]
            if key in properties:
                if part is None and not properties[key].get("nullable"):
                    continue  # null counts as absent
                found[key] = part if part is None else self.value(properties[key], part, below)
            elif isinstance(others, dict):
                found[key] = self.value(others, part, below)
            elif open_ or (schema.get("x-kubernetes-embedded-resource") and key in _ROOT):
                found[key] = part
            elif len(self.unknown) < CAUSES_MAX:
                self.unknown.append(below)
        for key, part in properties.items():
            if key not in found and "default" in part and not (not path and key in _ROOT):
                raw = _encode(part["default"])
                self.work.spend(len(raw) >> 3)
                found[key] = self.value(part, _decode(raw), f"{path}.{key}" if path else key)
        return found

    def _wrong(self, path: str, text: str, reason: str) -> None:
        if len(self.causes) < self.causes_max:
            self.causes.append(Cause(path or "<nil>", text, reason))


def _problems(schema: Obj, value: Any, work: Work) -> Iterator[tuple[str, str]]:
    """Yield (message, reason) of each problem with a value of the right type."""
    if "enum" in schema:
        work.spend(len(schema["enum"]) >> 3)
        if value not in schema["enum"]:
            listed = ", ".join(f'"{each!s:.{_KEY_SHOWN}}"' for each in schema["enum"][:_LISTED_MAX])
            yield f"Unsupported value: {shown(value)}: supported values: {listed}", "FieldValueNotSupported"
    if isinstance(value, dict):
        work.spend(len(schema.get("required") or ()) >> 3)
        for key in schema.get("required") or ():
            if key not in value and key not in _ROOT:
                yield f"Required value: {key}", "FieldValueRequired"
    for key, measure, worse, text in _LIMITS:
        if key in schema:
            found = measure(value)
            if found is not None and worse(found, schema[key]):
                yield f"Invalid value: {shown(value)}: {text} {schema[key]}", "FieldValueInvalid"
    if isinstance(value, str) and "pattern" in schema:
        pattern = _pattern(schema["pattern"])
        work.spend(len(value) * pattern.size >> 8 if pattern is not None else 1)
        if pattern is not None and not pattern.search(value):
            yield f"Invalid value: {shown(value)}: should match '{schema['pattern']}'", "FieldValueInvalid"
    if isinstance(value, str) and schema.get("format") == "date-time" and epoch_of(value[:_TIME_MAX]) is None:
        yield f"Invalid value: {shown(value)}: must be a time such as 2026-01-01T00:00:00Z", "FieldValueInvalid"
    if isinstance(value, list):
        yield from _double_items(schema, value, work)
    yield from _combined(schema, value, work)


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _length(kind: type[Sized]) -> Callable[[Any], int | None]:
    return lambda value: len(value) if isinstance(value, kind) else None


def _above(found: float, most: float) -> bool:
    return found > most


def _below(found: float, least: float) -> bool:
    return found < least


#: (keyword, measured size, comparison that finds a problem, message).
_LIMITS: tuple[tuple[str, Callable[[Any], float | None], Callable[[float, float], bool], str], ...] = (
    ("minimum", _number, _below, "should be greater than or equal to"),
    ("maximum", _number, _above, "should be less than or equal to"),
    ("minLength", _length(str), _below, "length should be at least"),
    ("maxLength", _length(str), _above, "length may not be more than"),
    ("minItems", _length(list), _below, "number of items should be at least"),
    ("maxItems", _length(list), _above, "number of items may not be more than"),
    ("minProperties", _length(dict), _below, "number of fields should be at least"),
    ("maxProperties", _length(dict), _above, "number of fields may not be more than"),
)


def _double_items(schema: Obj, value: list[Any], work: Work) -> Iterator[tuple[str, str]]:
    kind = schema.get("x-kubernetes-list-type")
    names = schema.get("x-kubernetes-list-map-keys") or ()
    if kind == "map":
        keys = [_encode([item.get(name) for name in names]) for item in value if isinstance(item, dict)]
    elif kind == "set" or schema.get("uniqueItems"):
        keys = list(map(_encode, value))
    else:
        return
    work.spend(sum(map(len, keys)) >> 6)
    if len(set(keys)) < len(keys):
        yield "Duplicate value: this list contains an item twice", "FieldValueDuplicate"


def _combined(schema: Obj, value: Any, work: Work) -> Iterator[tuple[str, str]]:
    """Evaluate ``anyOf``, ``allOf``, ``oneOf`` and ``not``, which change nothing."""

    def fits(part: Obj) -> bool:
        judge = _Judge(work, 1)
        judge.value(part, value, "")
        return not judge.causes

    for key in ("allOf", "anyOf", "oneOf"):
        parts = schema.get(key)
        if not parts:
            continue
        count = sum(map(fits, parts))
        if count not in {"allOf": (len(parts),), "anyOf": range(1, len(parts) + 1), "oneOf": (1,)}[key]:
            yield f"Invalid value: {shown(value)}: must validate {key} of its schemas", "FieldValueInvalid"
    if schema.get("not") and fits(schema["not"]):
        yield f"Invalid value: {shown(value)}: must not validate the schema (not)", "FieldValueInvalid"


@lru_cache(maxsize=256)
def _pattern(text: str) -> Pattern | None:
    """Return a pattern, None if it is invalid: then it forbids nothing."""
    try:
        return compile_pattern(text)
    except PatternError:
        return None


def _kind_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return next((name for name, types in _TYPES.items() if isinstance(value, types)), "unknown")


# -- schemas themselves


def schema_problem(schema: Any, path: str = "schema", depth: int = 0) -> str:
    """Return why a schema cannot be used, or ""."""
    if not isinstance(schema, dict):
        return f"{path}: wanted an object"
    if depth > _DEPTH_MAX:
        return f"{path}: nested more than {_DEPTH_MAX} deep"
    for key, kind in _KEYWORDS.items():
        if key in schema and (not isinstance(schema[key], kind) or isinstance(schema[key], bool) is not (kind is bool)):
            return f"{path}.{key}: found a value of the wrong type"
    for key in _NAMES:
        if not all(isinstance(name, str) for name in schema.get(key) or ()):
            return f"{path}.{key}: wanted strings"
    below = [(f"properties.{name[:_KEY_SHOWN]}", part) for name, part in (schema.get("properties") or {}).items()]
    below += [(key, schema[key]) for key in ("items", "not") if key in schema]
    below += [
        (f"{key}[{i}]", part) for key in ("allOf", "anyOf", "oneOf") for i, part in enumerate(schema.get(key) or ())
    ]
    if not isinstance(schema.get("additionalProperties", True), bool):
        below.append(("additionalProperties", schema["additionalProperties"]))
    problems = (schema_problem(part, f"{path}.{name}", depth + 1) for name, part in below)
    return next(filter(None, problems), "")


_DEPTH_MAX = 64
_NAMES = ("required", "x-kubernetes-list-map-keys")
_KEYWORDS: dict[str, Any] = {
    **dict.fromkeys(("type", "pattern", "x-kubernetes-list-type", "x-kubernetes-map-type", "description"), str),
    **dict.fromkeys(("enum", "required", "allOf", "anyOf", "oneOf", "x-kubernetes-list-map-keys"), list),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), int),
    **dict.fromkeys(("minimum", "maximum"), int | float),
    **dict.fromkeys(("nullable", "uniqueItems", "x-kubernetes-int-or-string"), bool),
    **dict.fromkeys(("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"), bool),
    "properties": dict,
}
