"""Encode lists of model values as JSON and decode them, without any other kind of value.

A list of API objects is written field by field: ``{"rows": […], "name": […], "spec": [0, 0, 1], …}``. Values with parts
of their own (a PodSpec, labels) are in one table per type, each once, and are named by their index in it, so that
shared values are shared again. Decoded values have the types that the annotations of the model and the tables name. No
text can request another type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import chain
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from pumice.model.node import Node
from pumice.model.pod import EMPTY_MAP, WHOLE_OBJECT_ANNOTATIONS, Pod
from pumice.model.queue import Queue
from pumice.model.topology import HyperNode
from pumice.model.workloads.podgroup import PodGroup

#: Values in a text, including nested ones. Each becomes at most some hundred bytes.
VALUES_MAX = 10_000_000

#: Types that are written field by field.
_OBJECTS = (Pod, PodGroup, Node, Queue, HyperNode)
_PLAIN = (str, int, float, bool)
_NOTHING = -1  # instead of an index or a length: None
_WRONG = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class ValuesError(ValueError):
    """A text does not contain these values. One sentence."""


class _Text(msgspec.Struct, forbid_unknown_fields=True):
    """``values``: by type, each value once. ``lists``: by name."""

    values: dict[str, msgspec.Raw]
    lists: dict[str, msgspec.Raw]


class _Arrays(msgspec.Struct, forbid_unknown_fields=True):
    """Arrays of whole numbers, concatenated."""

    lengths: list[int]
    numbers: list[int]


def _plain_mapping(value: Any) -> Any:
    if isinstance(value, MappingProxyType):
        return dict(value)
    raise TypeError(f"found a {type(value).__name__}, wanted a value of the model")


encode_value = msgspec.json.Encoder(enc_hook=_plain_mapping).encode


# -- types


@cache
def required_type(kind: Any) -> tuple[Any, bool]:
    """Return (the type without None, whether None is allowed)."""
    options = [option for option in get_args(kind) if option is not NoneType]
    is_optional = NoneType in get_args(kind)
    return (options[0], True) if is_optional else (kind, False)


@cache
def fields_of(kind: Any) -> Mapping[str, Any]:
    """Return name -> type of the fields of a type, in the order of its constructor."""
    hints = get_type_hints(kind)
    return {name: hints[name] for name in kind.__struct_fields__}


@cache
def name_of(kind: Any) -> str:
    """Return a type as people write it: ``tuple[Toleration, ...]``."""
    return _spelt(kind, lambda plain: str(plain.__name__))


@cache
def description_of(kind: Any) -> str:
    """Return a type with all its parts: what two programs must agree on to read each other's texts."""
    return _spelt(kind, _description_of_class)


def _description_of_class(kind: type[Any]) -> str:
    name = str(kind.__name__)
    if not issubclass(kind, msgspec.Struct):
        return name
    return f"{name}({', '.join(f'{part}: {description_of(inner)}' for part, inner in fields_of(kind).items())})"


def _spelt(kind: Any, of_class: Callable[[type[Any]], str]) -> str:
    if kind is Ellipsis:
        return "..."
    if kind is NoneType:
        return "None"
    origin, args = get_origin(kind), get_args(kind)
    if not args:
        return of_class(kind)
    if origin is np.ndarray:
        return "array"
    parts = [_spelt(part, of_class) for part in args]
    return " | ".join(parts) if origin in (Union, UnionType) else f"{origin.__name__}[{', '.join(parts)}]"


# -- writing


def encode_values(lists: Mapping[str, tuple[Any, Sequence[Any]]]) -> bytes:
    """Return the JSON text of lists of values by name, each with the type of its values; any value may be None.

    Raises: ValuesError if there are too many.
    """
    writer = _Writer()
    written = {name: writer.write(required_type(kind)[0], values) for name, (kind, values) in lists.items()}
    tables = {name: list(map(msgspec.Raw, texts)) for name, texts in sorted(writer.values.items())}
    text = encode_value({"values": tables, "lists": written})
    _check_count(text)
    return text


def _check_count(text: bytes) -> None:
    """Check the number of values before any is built. Every value follows a comma or a bracket."""
    if sum(map(text.count, (b",", b"[", b"{"))) > VALUES_MAX:
        raise ValuesError(f"there are more than {VALUES_MAX:,} values")


class _Writer:
    """``values``: by type, the text of each value and its index."""

    def __init__(self) -> None:
        self.values: dict[str, dict[bytes, int]] = {}
        self._known: dict[str, dict[int, tuple[int, Any]]] = {}  # by identity; the value, so that it keeps its identity

    def write(self, kind: Any, values: Sequence[Any]) -> Any:
        if kind in _PLAIN:
            return list(values)
        if get_origin(kind) is np.ndarray:
            lengths = [_NOTHING if value is None else len(value) for value in values]
            return _Arrays(lengths, list(chain.from_iterable(v.tolist() for v in values if v is not None)))
        if kind not in _OBJECTS:
            return self._write_places(name_of(kind), values)
        rows = [row for row, value in enumerate(values) if value is not None]
        there = [values[row] for row in rows]
        written: dict[str, Any] = {"rows": rows}
        for name, field in fields_of(kind).items():
            found = [getattr(value, name) for value in there]
            kept = list(map(without_whole_objects, found)) if name == "annotations" else found
            written[name] = self.write(required_type(field)[0], kept)
        return written

    def _write_places(self, name: str, values: Sequence[Any]) -> list[int]:
        """Return the index of each value in the table of its type."""
        texts, known = self.values.setdefault(name, {}), self._known.setdefault(name, {})
        places = []
        for value in values:
            entry = known.get(id(value))
            if entry is None:
                place = _NOTHING if value is None else texts.setdefault(encode_value(value), len(texts))
                entry = known[id(value)] = (place, value)
            places.append(entry[0])
        return places


def without_whole_objects(annotations: Mapping[str, str]) -> Mapping[str, str]:
    if WHOLE_OBJECT_ANNOTATIONS.isdisjoint(annotations):
        return annotations
    return {key: text for key, text in annotations.items() if key not in WHOLE_OBJECT_ANNOTATIONS}


# -- reading


def decode_values(text: bytes, wanted: Mapping[str, tuple[Any, int]]) -> dict[str, list[Any]]:
    """Return the lists that ``encode_values`` wrote, by name. ``wanted``: the type and the length of each.

    Raises: ValuesError.
    """
    _check_count(text)
    found = _decoded(text, _Text, "the text")
    if found.lists.keys() != wanted.keys():
        raise ValuesError(f"the lists are {', '.join(sorted(found.lists))[:200]}")
    reader = _Reader(found.values)
    return {name: reader.read(name, kind, count, found.lists[name]) for name, (kind, count) in wanted.items()}


class _Reader:
    def __init__(self, texts: Mapping[str, msgspec.Raw]) -> None:
        self._texts = texts
        self._values: dict[str, list[Any]] = {}

    def read(self, name: str, kind: Any, count: int, text: msgspec.Raw) -> list[Any]:
        """Return a whole list, in which any value may be None."""
        kind, _ = required_type(kind)
        if get_origin(kind) is np.ndarray:
            return _arrays(name, _decoded(text, _Arrays, name), count)
        if kind not in _OBJECTS:
            return self._column(name, kind | None, count, text)
        parts = _decoded(text, dict[str, msgspec.Raw], name)
        held = fields_of(kind)
        if parts.keys() != {"rows", *held}:
            raise ValuesError(f"{name}: the fields are {', '.join(sorted(parts))[:200]}")
        rows = _decoded(parts["rows"], list[int], f"{name}: rows")
        if rows != sorted(set(rows)) or (rows and not 0 <= rows[0] <= rows[-1] < count):
            raise ValuesError(f"{name}: rows are not in order, or one is not below {count}")
        columns = [self._column(f"{name}: {n}", field, len(rows), parts[n]) for n, field in held.items()]
        found: list[Any] = [None] * count
        for row, value in zip(rows, map(kind, *columns), strict=True):
            found[row] = value
        return found

    def _column(self, name: str, kind: Any, count: int, text: msgspec.Raw) -> list[Any]:
        """Return a list of values that have no rows of their own."""
        required, is_optional = required_type(kind)
        if required in _PLAIN:
            found: list[Any] = _decoded(text, list[kind], name)
        else:
            values = self._table(required)
            places = _decoded(text, list[int], name)
            if places and not (_NOTHING if is_optional else 0) <= min(places) <= max(places) < len(values) - 1:
                raise ValuesError(f"{name}: an index is not below {len(values) - 1}")
            found = [values[place] for place in places]  # the last one, with index -1, is None
        if len(found) != count:
            raise ValuesError(f"{name}: found {len(found)} values, wanted {count}")
        return found

    def _table(self, kind: Any) -> list[Any]:
        """Return every value of a type, and None."""
        name = name_of(kind)
        if name not in self._values:
            found = _decoded(self._texts.get(name, msgspec.Raw(b"[]")), list[kind], f"values of {name}")
            if issubclass(get_origin(kind) or kind, Mapping):
                found = [value or EMPTY_MAP for value in found]
            self._values[name] = [*found, None]
        return self._values[name]


def _arrays(name: str, found: _Arrays, count: int) -> list[Any]:
    """Return views of one array, which is read-only."""
    lengths, numbers = found.lengths, found.numbers
    if len(lengths) != count or min(lengths, default=0) < _NOTHING or sum(n for n in lengths if n > 0) != len(numbers):
        raise ValuesError(f"{name}: the lengths are not those of {count} lists of {len(numbers)} numbers in all")
    flat = np.array(numbers, dtype=np.int64)
    flat.setflags(write=False)
    ends = np.cumsum(np.maximum(lengths, 0)).tolist() if lengths else []
    return [None if n == _NOTHING else flat[end - n : end] for n, end in zip(lengths, ends, strict=True)]


@cache
def _decoder_of(kind: Any) -> Callable[[Any], Any]:
    return msgspec.json.Decoder(kind).decode


def _decoded(text: Any, kind: Any, name: str) -> Any:
    try:
        return _decoder_of(kind)(text)
    except _WRONG as error:
        raise ValuesError(f"{name}: {str(error).splitlines()[0][:200]}") from None
