"""Events as JSON values that name only what changed, for a record.

    [kind, key, {field: value}]   an object is seen: fields that differ from when it was last seen, or from the defaults
    [kind, key]                   it is gone
    [-1, key, uid]                a decision about a pod was undone

``kind`` is the index of the object's type in ``KINDS``. Values are written as they are, except for those that many
objects share (a PodSpec): these are written once a file, found by their content, and named by their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cache
from hashlib import blake2b, sha256
from itertools import compress
from operator import is_not
from typing import Any, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from pumice.model.events import Event, Gone, News, Object, PodsGone, PodsSeen, Seen, Undone, key_of
from pumice.model.pod import EMPTY_MAP, Pod, PodSpec
from pumice.runtime.files.model_values import (
    description_of,
    encode_value,
    fields_of,
    required_type,
    without_whole_objects,
)

KINDS: tuple[Any, ...] = get_args(Object)
_INDEX = {kind: index for index, kind in enumerate(KINDS)}
_UNDONE = -1
#: Types of values that are numbered: large, and the same for all pods of a gang.
_SHARED = (PodSpec,)
#: Values that are remembered by identity, so that their texts need not be made again.
_KNOWN_MAX = 200_000


class EventError(ValueError):
    """A value of a record is no event: why, as a sentence without a subject."""


@cache
def layout() -> str:
    """Return a name for the structure of all kinds: another structure cannot be read."""
    return sha256("\n".join([description_of(kind) for kind in KINDS]).encode()).hexdigest()[:16]


class _Form(IntEnum):
    """How a value is written: as it is, without annotations that hold whole objects, or as the number of a value."""

    PLAIN = 0
    ANNOTATIONS = 1
    NUMBER = 2


class _Field(Struct, frozen=True):
    """``kind``: of its values, without None. ``default``: NODEFAULT for none."""

    name: str
    kind: Any
    form: _Form
    default: Any


@cache
def _fields(kind: Any) -> tuple[_Field, ...]:
    found = []
    for each in msgspec.structs.fields(kind):
        required = required_type(fields_of(kind)[each.name])[0]
        form = _Form.ANNOTATIONS if each.name == "annotations" else _Form.NUMBER if required in _SHARED else _Form.PLAIN
        found.append(_Field(each.name, required, form, each.default))
    return tuple(found)


@cache
def _written(kind: Any) -> tuple[tuple[str, ...], tuple[_Form, ...], tuple[Any, ...]]:
    """Return names, forms and defaults of the fields of a kind, in the order of ``astuple``."""
    names, _, forms, defaults = zip(*map(astuple, _fields(kind)), strict=True)
    return names, forms, defaults


# -- writing


class EventWriter:
    """Writes events of one cluster into file after file. ``objects``: those that are there, as they were last seen."""

    def __init__(self) -> None:
        self.objects: dict[tuple[int, str], Object] = {}
        self._values: list[bytes] = []
        self._number_of: dict[bytes, int] = {}
        self._known: dict[int, tuple[int, Any]] = {}  # by identity; the value, so that it keeps its identity

    def begin_file(self) -> list[Any]:
        """Forget what was written. Return an event for each object that is there, in the order in which they came."""
        self._values, self._number_of, self._known = [], {}, {}
        return [[kind, key, self._changes(obj, None)] for (kind, key), obj in self.objects.items()]

    def take_values(self) -> list[msgspec.Raw]:
        """Return the texts of values that events named since the last call for the first time."""
        values, self._values = self._values, []
        return list(map(msgspec.Raw, values))

    def write(self, news: News) -> list[list[Any]]:
        """Return an event as values that JSON can have, or several for one that is about many objects."""
        match news:
            case PodsSeen(pods):
                return [self._seen(pod, key) for key, pod in pods.items()]
            case PodsGone(keys):
                return [self._gone(Pod, key) for key in keys]
            case Seen(obj):
                return [self._seen(obj, key_of(obj))]
            case Gone(kind, key):
                return [self._gone(kind, key)]
            case Undone(pod_key, uid):
                return [[_UNDONE, pod_key, uid]]

    def _seen(self, obj: Object, key: str) -> list[Any]:
        kind = _INDEX[type(obj)]
        before = self.objects.get((kind, key))
        self.objects[kind, key] = obj
        return [kind, key, self._changes(obj, before)]

    def _gone(self, kind: type[Any], key: str) -> list[Any]:
        self.objects.pop((_INDEX[kind], key), None)
        return [_INDEX[kind], key]

    def _changes(self, obj: Object, before: Object | None) -> dict[str, Any]:
        # Without a loop over fields that have not changed, because this runs for every event of a cluster.
        names, forms, defaults = _written(type(obj))
        old, new = defaults if before is None else astuple(before), astuple(obj)
        changes: dict[str, Any] = {}
        for place in compress(range(len(names)), map(is_not, new, old)):
            value = new[place]
            if value == old[place]:
                continue
            form = forms[place]
            if form is _Form.NUMBER and value is not None:
                entry = self._known.get(id(value))
                value = entry[0] if entry is not None else self._numbered(value)
            elif form is _Form.ANNOTATIONS:
                value = without_whole_objects(value)
            changes[names[place]] = value
        return changes

    def _numbered(self, value: Any) -> int:
        """Return the number of a value in this file."""
        text = encode_value(value)
        # By a digest and not by the text: a file may name more values than fit into memory comfortably.
        digest = blake2b(text, digest_size=16).digest()
        number = self._number_of.get(digest)
        if number is None:
            number = self._number_of[digest] = len(self._number_of)
            self._values.append(text)
        if len(self._known) < _KNOWN_MAX:
            self._known[id(value)] = (number, value)
        return number


# -- reading


class EventReader:
    """Reads the events of one file, frame after frame."""

    def __init__(self) -> None:
        self._texts: list[msgspec.Raw] = []
        self._values: dict[tuple[int, Any], Any] = {}
        self._objects: dict[tuple[int, str], Object] = {}

    def add_values(self, values: Iterable[msgspec.Raw]) -> None:
        """Note the next numbered values of the file."""
        self._texts += values

    def read(self, events: Sequence[Sequence[Any]]) -> list[News]:
        """Return the events of a step. Raises: EventError."""
        return list(_together(map(self._read, events)))

    def _read(self, event: Sequence[Any]) -> Event:
        match event:
            case [-1, str(key), str(uid)]:
                return Undone(key, uid)
            case [int(kind), str(key)] if 0 <= kind < len(KINDS):
                self._objects.pop((kind, key), None)
                return Gone(KINDS[kind], key)
            case [int(kind), str(key), dict(changes)] if 0 <= kind < len(KINDS):
                obj = self._objects[kind, key] = self._changed(kind, key, changes)
                return Seen(obj)
        raise EventError(f"has an event of no known form: {str(event)[:100]}")

    def _changed(self, kind: int, key: str, changes: Mapping[str, Any]) -> Object:
        named = {field.name: field for field in _fields(KINDS[kind])}
        if unknown := changes.keys() - named.keys():
            raise EventError(f"names fields that a {KINDS[kind].__name__} lacks: {', '.join(sorted(unknown))[:100]}")
        read = {name: self._value(named[name], value) for name, value in changes.items()}
        before = self._objects.get((kind, key))
        try:
            obj: Object = KINDS[kind](**read) if before is None else msgspec.structs.replace(before, **read)
        except TypeError as error:
            raise EventError(f"has an incomplete {KINDS[kind].__name__} {key[:100]}: {error}") from None
        if key_of(obj) != key:
            raise EventError(f"has a {KINDS[kind].__name__} under the key of another: {key[:100]}")
        return obj

    def _value(self, field: _Field, value: Any) -> Any:
        if value is None:
            return None
        if field.form is not _Form.NUMBER:
            found = _checked(field, lambda: msgspec.convert(value, field.kind, str_keys=True))
            return EMPTY_MAP if found == {} else found
        if not isinstance(value, int) or not 0 <= value < len(self._texts):
            raise EventError(f"names a value of {field.name} that is not there: {str(value)[:20]}")
        if (value, field.kind) not in self._values:
            self._values[value, field.kind] = _checked(
                field, lambda: _decoder_of(field.kind).decode(self._texts[value])
            )
        return self._values[value, field.kind]


def _checked(field: _Field, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise EventError(f"has a wrong {field.name}: {str(error).splitlines()[0][:200]}") from None


@cache
def _decoder_of(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def _together(events: Iterable[Event]) -> Iterator[News]:
    """Yield events with neighbours about pods as one, which the store takes in several times as fast."""
    pods: dict[str, Pod] = {}
    keys: dict[str, None] = {}
    for event in events:
        pod = event.obj if isinstance(event, Seen) and isinstance(event.obj, Pod) else None
        gone = event.key if isinstance(event, Gone) and event.kind is Pod else None
        if pods and (pod is None or pod.key in pods):
            yield PodsSeen(pods)
            pods = {}
        if keys and (gone is None or gone in keys):
            yield PodsGone(tuple(keys))
            keys = {}
        if pod is not None:
            pods[pod.key] = pod
        elif gone is not None:
            keys[gone] = None
        else:
            yield event
    if pods:
        yield PodsSeen(pods)
    if keys:
        yield PodsGone(tuple(keys))
