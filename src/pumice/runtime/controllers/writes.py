"""What a controller wants written, as values. A batch is carried out in order and given up at the first failure; the
controller is then asked again, on what is there by then."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from pumice.model.manifest.reading.fields import Obj

GROUP_API = "scheduling.volcano.sh/v1beta1"
JOB_API = "batch.volcano.sh/v1alpha1"
COMMAND_API = "bus.volcano.sh/v1alpha1"


class Ref(Struct, frozen=True):
    """One object. ``uid``, where it is given, is a precondition: another object of the same name is left alone."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""


class Create(Struct, frozen=True):
    """Make an object. That one of its name is there already is a success where it has the same controller."""

    obj: Obj


class Patch(Struct, frozen=True):
    """Merge into an object (RFC 7386). ``version``: the resourceVersion it was worked out from; empty: any will do."""

    ref: Ref
    merge: Obj
    subresource: str = ""
    version: str = ""


class Delete(Struct, frozen=True):
    """Delete an object; what it owns follows. That it is gone already is a success."""

    ref: Ref


class Tell(Struct, frozen=True):
    """An event on an object."""

    ref: Ref
    type: str  # Normal | Warning
    reason: str
    message: str


class Wake(Struct, frozen=True):
    """Ask again after so many seconds, with these requests (see ``job_policies.Request``), or at any change before."""

    ref: Ref
    after_s: float
    requests: tuple[Any, ...] = ()


Write = Create | Patch | Delete | Tell | Wake


def meta(obj: Obj) -> Obj:
    """The metadata, empty where there is none."""
    found: Obj = obj.get("metadata") or {}
    return found


def part(obj: Obj, *path: str) -> Obj:
    """An object inside an object; empty where it is absent or something else."""
    for key in path:
        found = obj.get(key)
        obj = found if isinstance(found, dict) else {}
    return obj


def annotations_of(obj: Obj) -> dict[str, str]:
    """The annotations, empty where there are none."""
    found: dict[str, str] = meta(obj).get("annotations") or {}
    return found


def labels_of(obj: Obj) -> dict[str, str]:
    """The labels, empty where there are none."""
    found: dict[str, str] = meta(obj).get("labels") or {}
    return found


def ref_of(obj: Obj) -> Ref:
    """The object as it is now, by its uid."""
    m = meta(obj)
    return Ref(obj["apiVersion"], obj["kind"], m.get("namespace", ""), m["name"], m.get("uid", ""))


def owner_reference(obj: Obj) -> Obj:
    """What a controlled object writes about its controller."""
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": meta(obj)["name"],
        "uid": meta(obj).get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_uid(obj: Obj) -> str:
    """The uid of the controlling owner, empty where there is none."""
    for owner in meta(obj).get("ownerReferences") or ():
        if owner.get("controller"):
            return str(owner.get("uid", ""))
    return ""


def controller_of(obj: Obj) -> Ref | None:
    """The controlling owner, None where there is none. It is in the same namespace."""
    for owner in meta(obj).get("ownerReferences") or ():
        if owner.get("controller"):
            api_version, kind, name = (str(owner.get(key, "")) for key in ("apiVersion", "kind", "name"))
            return Ref(api_version, kind, meta(obj).get("namespace", ""), name, str(owner.get("uid", "")))
    return None


def leaving(obj: Obj) -> bool:
    """Whether the object is being deleted."""
    return bool(meta(obj).get("deletionTimestamp"))


def merge_patch(old: Obj, new: Obj) -> Obj:
    """What makes ``new`` of ``old`` by RFC 7386; empty where they are equal. Lists are replaced whole."""
    patch: Obj = {key: None for key, value in old.items() if value is not None and new.get(key) is None}
    for key, value in new.items():
        if value is None or old.get(key) == value:
            continue
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            patch[key] = merge_patch(before, value)
        else:
            patch[key] = value
    return patch


def status_patch(obj: Obj, status: Obj) -> list[Write]:
    """One write that makes this the status, none where it is. It fails if the object is no longer what was looked
    at."""
    change = merge_patch(part(obj, "status"), status)
    if not change:
        return []
    return [Patch(ref_of(obj), {"status": change}, "status", str(meta(obj).get("resourceVersion", "")))]


def merged(obj: Any, patch: Any) -> Any:
    """The object after a merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    found = dict(obj) if isinstance(obj, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def stamp(now: float) -> str:
    """Seconds since the epoch as RFC 3339, in whole seconds, as Kubernetes writes times."""
    at = datetime.fromtimestamp(int(now), UTC)
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")  # strftime writes the year 1 as 1
