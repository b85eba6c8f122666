"""Events as JSON values that name only what changed, for a record.

    [kind, key, {field: value}]   an object is seen: fields that differ from when it was last seen, or from the defaults
    [kind, key]                   it is gone
    [-1, key, uid]                a decision about a pod was undone

``kind`` is the index of the object's type in ``KINDS``. Texts and numbers are written as they are. Other values of
fields (a PodSpec, labels) are written once a file, found by their content, and named by their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b, sha256
from typing import Any, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from pumice.model.events import Event, Gone, News, Object, PodsGone, PodsSeen, Seen, Undone
from pumice.model.pod import EMPTY_MAP, Pod
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
_PLAIN = (str, int, float, bool)
#: Values that are remembered by identity, so that their texts need not be made again.
_KNOWN_MAX = 200_000


class EventError(ValueError):
    """A value of a record is no event: why, as a sentence without a subject."""


def key_of(obj: Object) -> str:
    """Return ``namespace/name``, or the name of a cluster-wide object, as ``Gone`` names it."""
    return str(getattr(obj, "key", None) or getattr(obj, "name", ""))


@cache
def layout() -> str:
    """Return a name for the structure of all kinds: another structure cannot be read."""
    return sha256("\n".join([description_of(kind) for kind in KINDS]).encode()).hexdigest()[:16]


class _Field(Struct, frozen=True):
    """``kind``: of its values, without None. ``is_plain``: written as it is. ``default``: NODEFAULT for none."""

    name: str
    kind: Any
    is_plain: bool
    default: Any


@cache
def _fields(kind: Any) -> tuple[_Field, ...]:
    found = []
    for each in msgspec.structs.fields(kind):
        required = required_type(fields_of(kind)[each.name])[0]
        found.append(_Field(each.name, required, required in _PLAIN, each.default))
    return tuple(found)


@cache
def _written(kind: Any) -> tuple[tuple[str, ...], tuple[bool, ...], tuple[Any, ...]]:
    """Return names, whether they are plain, and defaults of the fields of a kind, in the order of ``astuple``."""
    names, _, plain, defaults = zip(*map(astuple, _fields(kind)), strict=True)
    return names, plain, defaults


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

    def write(self, news: News) -> Iterator[list[Any]]:
        """Yield an event as values of JSON, or several for one that is about many objects."""
        match news:
            case PodsSeen(pods):
                for pod in pods.values():
                    yield self._seen(pod)
            case PodsGone(keys):
                for key in keys:
                    yield self._gone(Pod, key)
            case Seen(obj):
                yield self._seen(obj)
            case Gone(kind, key):
                yield self._gone(kind, key)
            case Undone(pod_key, uid):
                yield [_UNDONE, pod_key, uid]

    def _seen(self, obj: Object) -> list[Any]:
        kind, key = _INDEX[type(obj)], key_of(obj)
        before = self.objects.get((kind, key))
        self.objects[kind, key] = obj
        return [kind, key, self._changes(obj, before)]

    def _gone(self, kind: type[Any], key: str) -> list[Any]:
        self.objects.pop((_INDEX[kind], key), None)
        return [_INDEX[kind], key]

    def _changes(self, obj: Object, before: Object | None) -> dict[str, Any]:
        # A loop over tuples, because this runs for every event of a cluster.
        names, plain, defaults = _written(type(obj))
        old = defaults if before is None else astuple(before)
        changes, known = dict[str, Any](), self._known
        for name, is_plain, value, was in zip(names, plain, astuple(obj), old, strict=True):
            if value is was or value == was:
                continue
            if is_plain or value is None:
                changes[name] = value
            else:
                entry = known.get(id(value))
                changes[name] = entry[0] if entry is not None else self._numbered(name, value)
        return changes

    def _numbered(self, name: str, value: Any) -> int:
        """Return the number of a field's value in this file."""
        text = encode_value(without_whole_objects(value) if name == "annotations" else value)
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

    def read(self, events: Sequence[Sequence[Any]], values: Iterable[msgspec.Raw]) -> list[News]:
        """Return the events of a frame. Raises: EventError."""
        self._texts += values
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
        if field.is_plain:
            return _checked(field, lambda: msgspec.convert(value, field.kind))
        if not isinstance(value, int) or not 0 <= value < len(self._texts):
            raise EventError(f"names a value of {field.name} that is not there: {str(value)[:20]}")
        if (value, field.kind) not in self._values:
            found = _checked(field, lambda: _decoder_of(field.kind).decode(self._texts[value]))
            self._values[value, field.kind] = EMPTY_MAP if found == {} else found
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
