"""One object in several forms: another version of its group, or the older and the newer form of an Event."""

from __future__ import annotations

from pumice.apiserver.kinds.resources import Resource
from pumice.model.manifest.reading.fields import Obj

_NEW_EVENTS = "events.events.k8s.io"
_RENAMED = (
    ("message", "note"),
    ("involvedObject", "regarding"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
)


def as_seen(resource: Resource, stored: Obj) -> Obj:
    """Return a stored object as this resource shows it, the same object if it is stored so."""
    if stored.get("apiVersion") == resource.api_version:
        return stored
    found = {**stored, "apiVersion": resource.api_version}
    if resource.full_name == _NEW_EVENTS:
        for old, new in _RENAMED:
            if old in found:
                found[new] = found.pop(old)
    return found


def as_stored(resource: Resource, seen: Obj) -> Obj:
    """Return the stored form. Events are stored in their older form, other kinds as written."""
    if resource.full_name != _NEW_EVENTS:
        return seen
    found = {**seen, "apiVersion": "v1"}
    for old, new in _RENAMED:
        if new in found:
            found[old] = found.pop(new)
    return found
