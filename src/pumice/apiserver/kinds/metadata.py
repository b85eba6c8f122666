"""Metadata: name, creation and labels of objects, and what a client may write there."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from msgspec import Struct

from pumice.apiserver.kinds.resources import Resource
from pumice.apiserver.refusals import Cause, bad_request, conflict, invalid, modified
from pumice.model.instants import stamp
from pumice.model.manifest.reading.fields import Obj

ANNOTATIONS_BYTES_MAX = 256 * 1024
_NAME_MAX = 253
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_PATH_SEGMENT = re.compile(r"(?!\.\.?$)[^/%\x00-\x1f]+")
_LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # no vowels, so that no words appear
_WITH_GENERATION = ("jobs.batch", "cronjobs.batch", "pods", "priorityclasses.scheduling.k8s.io")
_KEPT = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields")


class Stamps(Struct, frozen=True):
    """What the server adds to new objects: the time, UIDs, and ends of generated names."""

    now: Callable[[], float]
    uid: Callable[[], str]
    dice: Random

    def time(self) -> str:
        return stamp(self.now())

    def name(self, prefix: str) -> str:
        return prefix[: _NAME_MAX - 5] + "".join(self.dice.choices(_SUFFIX_LETTERS, k=5))


def metadata_of(obj: Obj) -> Obj:
    """Return the metadata. Raises: Refusal 400 if it is missing or not an object."""
    found = obj.get("metadata")
    if not isinstance(found, dict):
        raise bad_request("metadata: wanted an object")
    return found


def maybe_metadata(obj: Obj) -> Obj:
    """Return the metadata, empty if there is none. Raises: Refusal 400 if it is not an object."""
    return {} if obj.get("metadata") is None else metadata_of(obj)


def stamped(resource: Resource, obj: Obj, namespace: str, stamps: Stamps) -> Obj:
    """Return a new object with what the server adds. Raises: Refusal for an invalid name or metadata."""
    metadata = dict(metadata_of(obj))
    if metadata.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    if not metadata.get("name") and isinstance(metadata.get("generateName"), str):
        metadata["name"] = stamps.name(metadata["generateName"])
    if resource.namespaced:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    for key in (*_KEPT, "selfLink"):
        metadata.pop(key, None)
    metadata |= {"uid": stamps.uid(), "creationTimestamp": stamps.time()}
    if has_generation(resource):
        metadata["generation"] = 1
    check_metadata(resource, metadata)
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj, "metadata": metadata}


def has_generation(resource: Resource) -> bool:
    """Return True if generations of such objects are counted."""
    return resource.custom or resource.idle or resource.full_name in _WITH_GENERATION


def continued(resource: Resource, old: Obj, obj: Obj) -> Obj:
    """Return the new state of an existing object, with the metadata that never changes.

    Raises: Refusal 409 for another UID, 422 for invalid metadata.
    """
    before = old["metadata"]
    metadata = dict(metadata_of(obj))
    if metadata.get("uid", before["uid"]) != before["uid"]:
        found = f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {before['uid']}"
        raise conflict(resource.full_name, before["name"], found)
    for key in _KEPT:
        metadata.pop(key, None)
        if key in before:
            metadata[key] = before[key]
    metadata |= {key: before[key] for key in ("name", "namespace", "generateName", "resourceVersion") if key in before}
    check_metadata(resource, metadata)
    return {**obj, "metadata": metadata}


def check_metadata(resource: Resource, metadata: Obj) -> None:
    """Raise Refusal 422 with all invalid fields."""
    name = metadata.get("name")
    causes = [*_name_causes(resource, name), *metadata_causes(metadata)]
    if causes:
        raise invalid(resource.kind, resource.group, name if isinstance(name, str) else "", causes)


def metadata_causes(metadata: Obj) -> list[Cause]:
    """Return what is wrong with metadata, except the name, whose rule depends on the kind."""
    causes = _text_causes(metadata, "labels", _label_problem)
    causes += _text_causes(metadata, "annotations", _annotation_problem)
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict) and sum(map(len, map(str, annotations.values()))) > ANNOTATIONS_BYTES_MAX:
        causes.append(Cause("metadata.annotations", f"Too long: may not be more than {ANNOTATIONS_BYTES_MAX} bytes"))
    causes += _owner_causes(metadata.get("ownerReferences"))
    finalizers = metadata.get("finalizers")
    if finalizers is not None and not (isinstance(finalizers, list) and all(isinstance(f, str) for f in finalizers)):
        causes.append(Cause("metadata.finalizers", "Invalid value: wanted a list of strings"))
    return causes


def _name_causes(resource: Resource, name: object) -> list[Cause]:
    if not name:
        return [Cause("metadata.name", "Required value: name or generateName is required", "FieldValueRequired")]
    pattern, most, wanted = _SUBDOMAIN, _NAME_MAX, "a lowercase RFC 1123 subdomain"
    if resource.group == "rbac.authorization.k8s.io":
        pattern, wanted = _PATH_SEGMENT, "a path segment without / and %"
    elif resource.full_name == "namespaces":
        pattern, most, wanted = DNS_LABEL, 63, "a lowercase RFC 1123 label"
    if isinstance(name, str) and len(name) <= most and pattern.fullmatch(name):
        return []
    shown = repr(str(name)[:80])
    return [Cause("metadata.name", f"Invalid value: {shown}: wanted {wanted} of at most {most} characters")]


def _text_causes(metadata: Obj, field: str, problem: Callable[[str, str], str]) -> list[Cause]:
    found = metadata.get(field)
    if found is None:
        return []
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        return [Cause(f"metadata.{field}", "Invalid value: wanted an object whose values are strings")]
    return [
        Cause(f"metadata.{field}", f"Invalid value: {text}")
        for key, value in found.items()
        if (text := problem(key, value))
    ]


def _label_problem(key: str, value: str) -> str:
    if len(key) > _NAME_MAX + 64 or not _LABEL_KEY.fullmatch(key):
        return f"{key[:80]!r} is not a label key"
    return (
        ""
        if _LABEL_VALUE.fullmatch(value)
        else f"{value[:80]!r} is not a label value (63 characters of A-Z a-z 0-9 - _ .)"
    )


def _annotation_problem(key: str, value: str) -> str:
    fine = len(key) <= _NAME_MAX + 64 and _LABEL_KEY.fullmatch(key.lower())
    return "" if fine else f"{key[:80]!r} is not an annotation key"


def _owner_causes(owners: object) -> list[Cause]:
    if owners is None:
        return []
    if not isinstance(owners, list):
        return [Cause("metadata.ownerReferences", "Invalid value: wanted a list")]
    return [
        Cause(f"metadata.ownerReferences[{i}].{key}", "Required value", "FieldValueRequired")
        for i, owner in enumerate(owners)
        for key in ("apiVersion", "kind", "name", "uid")
        if not (isinstance(owner, dict) and isinstance(owner.get(key), str) and owner[key])
    ]


def unversioned(obj: Obj) -> Obj:
    """Return the object without what changes by writing alone: equal results mean equal states."""
    metadata = {k: v for k, v in obj["metadata"].items() if k not in ("resourceVersion", "managedFields")}
    return {**obj, "metadata": metadata}


def check_version(resource: Resource, old: Obj, wanted: object) -> None:
    """Raise Refusal 409 if a client started from another version than the present one."""
    if wanted and wanted != old["metadata"]["resourceVersion"]:
        raise modified(resource.full_name, old["metadata"]["name"])
