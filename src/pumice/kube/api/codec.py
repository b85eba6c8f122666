"""Decode bytes of an API server into model values."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import msgspec

from pumice.kube.api import partial_decoding
from pumice.kube.api.errors import NO_JSON, ApiError, Garbage, clean
from pumice.kube.api.kinds import Kind
from pumice.model.manifest import SUPPORTED_KINDS, Decoder, ManifestError, Reading, Value
from pumice.model.plain_words import kind_of
from pumice.runtime.problems.problem import unforeseen

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_PARTIAL: dict[str, Any] = {
    each.__name__: each
    for each in (
        partial_decoding.Pod,
        partial_decoding.ConfigMap,
        partial_decoding.Node,
        partial_decoding.PriorityClass,
        partial_decoding.StorageClass,
        partial_decoding.CSIStorageCapacity,
    )
}


class BadObject(Exception):
    """An object cannot be read. It is named as far as possible, and the rest of the cluster is unaffected."""

    def __init__(self, key: str, version: str, why: str, uid: str = "") -> None:
        super().__init__(key, why)
        self.key = key
        self.uid = uid
        self.version = version
        self.why = clean(why)


class Object(NamedTuple):
    """An object with its identity, version and value.

    ``bad``: what of it cannot be read; then ``value`` is what still counts of it.
    """

    key: str  # namespace/name, or the name of a cluster-wide one
    uid: str
    version: str
    value: Value | dict[str, Any]  # a dictionary, cut to metadata, spec and status, where the model has no value for it
    bad: BadObject | None = None


class WatchEvent(msgspec.Struct, gc=False):
    """ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, with the undecoded object."""

    type: str
    object: msgspec.Raw


_event_decoder = msgspec.json.Decoder(WatchEvent)
_meta_decoder = msgspec.json.Decoder(partial_decoding.OnlyMeta)
_any_decoder = msgspec.json.Decoder()


class Codec:
    """Reads objects of one kind. Its manifest decoder may be shared by codecs of one thread.

    Objects of kinds that the model does not read remain dictionaries.
    """

    def __init__(self, kind: Kind, decoder: Decoder) -> None:
        self.kind = kind
        self._decoder = decoder
        self._cut = msgspec.json.Decoder(_PARTIAL.get(kind.kind, partial_decoding.Other))
        self._modelled = (kind.api_version, kind.kind) in SUPPORTED_KINDS

    def in_version(self, kind: Kind) -> Codec:
        """Return a codec for the same kind in another version, with the same manifest decoder."""
        return Codec(kind, self._decoder)

    def read(self, raw: bytes | msgspec.Raw) -> Object:
        """Return an object. Raises: BadObject if nothing of it counts."""
        try:
            found = self._cut.decode(raw)
        except NO_JSON:
            found = self._whole(raw)  # decoded again in full, because the reader reports what is wrong more exactly
        if not self._modelled:
            return self._object(found, found, None)
        try:
            reading = self._decoder.read_as(self.kind.api_version, self.kind.kind, found)
        except ManifestError as error:
            key, uid, version = self.identity(raw)
            raise BadObject(key, version, str(error), uid) from None
        except Exception as error:
            key, uid, version = self.identity(raw)
            raise BadObject(key, version, unforeseen(error), uid) from error
        return self._object(found, reading.value, reading)

    def _object(self, found: dict[str, Any], value: Value | dict[str, Any], reading: Reading | None) -> Object:
        metadata = found.get("metadata")
        if not isinstance(metadata, dict):
            raise BadObject("(no name)", "", "metadata: found none, wanted an object")
        key, uid, version = self._identity_of(cast(partial_decoding.Meta, metadata))
        bad = BadObject(key, version, reading.why, uid) if reading is not None and reading.error is not None else None
        return Object(key, uid, version, value, bad)

    def identity(self, raw: bytes | msgspec.Raw) -> tuple[str, str, str]:
        """Return (key, UID, version) of an object, whatever else it contains.

        Raises: BadObject.
        """
        try:
            return self._identity_of(_meta_decoder.decode(raw).get("metadata") or partial_decoding.Meta())
        except NO_JSON as error:
            raise BadObject("(no name)", "", str(error)) from None

    def _whole(self, raw: bytes | msgspec.Raw) -> dict[str, Any]:
        try:
            found = _any_decoder.decode(raw)
        except NO_JSON as error:
            raise BadObject("(no name)", "", str(error)) from None
        if not isinstance(found, dict):
            raise BadObject("(no name)", "", f"{kind_of(found)} where an object is wanted")
        return found

    def _identity_of(self, metadata: partial_decoding.Meta) -> tuple[str, str, str]:
        namespace, name, uid, version = (
            _text(metadata, key) for key in ("namespace", "name", "uid", "resourceVersion")
        )
        if not name:
            raise BadObject("(no name)", version, "metadata.name: found nothing, wanted a name")
        return f"{namespace}/{name}" if self.kind.namespaced else name, uid, version


def _text(metadata: partial_decoding.Meta, key: str) -> str:
    value = metadata.get(key)
    return value if isinstance(value, str) else ""


def read_event(line: bytes, what: str) -> WatchEvent:
    """Return one line of a watch.

    Raises: Garbage for invalid lines, ApiError for an ERROR event.
    """
    try:
        event = _event_decoder.decode(line)
    except NO_JSON as error:
        raise Garbage(what, f"{error} in {line[:80]!r}") from None
    if event.type == "ERROR":
        raise _error_of(event.object, what)
    return event


def _error_of(raw: msgspec.Raw, what: str) -> Exception:
    try:
        said = _any_decoder.decode(raw)
        return ApiError(int(said.get("code") or 0), str(said.get("reason") or ""), str(said.get("message") or ""), what)
    except (*NO_JSON, AttributeError, TypeError, ValueError):
        return Garbage(what, f"an ERROR event with {bytes(raw)[:80]!r}")


def read_bookmark(raw: msgspec.Raw, what: str) -> tuple[str, bool]:
    """Return (resource version, whether the initial events end here). All else in a bookmark may be null.

    Raises: Garbage.
    """
    try:
        metadata = _meta_decoder.decode(raw).get("metadata") or partial_decoding.Meta()
    except NO_JSON as error:
        raise Garbage(what, f"a bookmark: {error}") from None
    annotations = metadata.get("annotations")
    ended = isinstance(annotations, dict) and annotations.get(INITIAL_EVENTS_END) == "true"
    return _text(metadata, "resourceVersion"), ended
