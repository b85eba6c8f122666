"""Change one field of a pod: every field of ``Pod`` and of its spec, from their definitions.

A field that is added to the model is changed here too, without a line for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from msgspec import Struct, structs

from pumice.model.pod import Pod, PodSpec
from pumice.testing.build import interned

#: What a changed text is, and the key and the value that a changed mapping has more.
OTHER = "other"


def another(kind: Any, value: object) -> Any:
    """Return a value of a type that differs from a value of that type. Raises: TypeError for an unknown type."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        # None and a first value are enough to differ.
        return another(next(each for each in args if each is not type(None)), value)
    if kind is bool:
        return not value
    if kind in (int, float):
        return kind(value or 0) + 7
    if kind is str:
        return OTHER
    if origin is tuple:
        return _another_tuple(args, value if isinstance(value, tuple) else ())
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {**(value if isinstance(value, Mapping) else {}), **{OTHER: another(args[1], None)}}
    if isinstance(kind, type) and issubclass(kind, Struct):
        return _another_struct(kind, value)
    raise TypeError(f"{kind}: write here how a value of it is changed")


def _another_tuple(args: tuple[Any, ...], value: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a tuple of any length with one entry more, or one of a fixed length with other entries."""
    if args[-1] is Ellipsis:
        return (*value, another(args[0], None))
    return tuple(another(arg, None) for arg in args)


def _another_struct(kind: type[Struct], value: object) -> Struct:
    """Return a struct whose first field differs, or which has values only where it must."""
    hints, fields = get_type_hints(kind), structs.fields(kind)
    if isinstance(value, kind):
        first = fields[0].name
        return structs.replace(value, **{first: another(hints[first], getattr(value, first))})
    return kind(**{each.name: another(hints[each.name], None) for each in fields if each.required})


def _with(name: str, pod: Pod) -> Pod:
    return structs.replace(pod, **{name: another(_OF_POD[name], getattr(pod, name))})


def _with_in_spec(name: str, pod: Pod) -> Pod:
    changed = {name: another(_OF_SPEC[name], getattr(pod.spec, name))}
    return structs.replace(pod, spec=interned(structs.replace(pod.spec, **changed)))


_OF_POD, _OF_SPEC = get_type_hints(Pod), get_type_hints(PodSpec)
#: A function for each field that changes a pod in it alone, by name; fields of the spec as ``spec.NAME``.
FIELDS: Mapping[str, Callable[[Pod], Pod]] = {
    **{name: partial(_with, name) for name in _OF_POD if name != "spec"},
    **{f"spec.{name}": partial(_with_in_spec, name) for name in _OF_SPEC},
}


def field_of(pod: Pod, name: str) -> object:
    """Return the value of a field by its name in ``FIELDS``."""
    within, _, rest = name.rpartition(".")
    return getattr(pod.spec if within else pod, rest)
