"""Writes of controllers, as values. A batch is carried out in order and stopped at the first failure. The controller is
then asked again, on the new state."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from pumice.model.manifest.reading.fields import Obj

GROUP_API = "scheduling.volcano.sh/v1beta1"
JOB_API = "batch.volcano.sh/v1alpha1"
COMMAND_API = "bus.volcano.sh/v1alpha1"


class Ref(Struct, frozen=True):
    """An object. ``uid``, if set, is a precondition: another object with the same name is not touched."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""


class Create(Struct, frozen=True):
    """Create an object. If one with its name and the same controller exists, that is a success."""

    obj: Obj


class Patch(Struct, frozen=True):
    """Merge into an object (RFC 7386). ``version``: resourceVersion on which the patch is based, "": any."""

    ref: Ref
    merge: Obj
    subresource: str = ""
    version: str = ""


class Delete(Struct, frozen=True):
    """Delete an object with what it owns. If it is gone already, that is a success."""

    ref: Ref


class Emit(Struct, frozen=True):
    """Emit an event on an object."""

    ref: Ref
    type: str  # Normal | Warning
    reason: str
    message: str


class Wake(Struct, frozen=True):
    """Examine again after a number of seconds, with these requests (see ``job_policies.Request``), or at any change
    before."""

    ref: Ref
    after_s: float
    requests: tuple[Any, ...] = ()


Write = Create | Patch | Delete | Emit | Wake


def meta(obj: Obj) -> Obj:
    """Return the metadata, empty if there is none."""
    found: Obj = obj.get("metadata") or {}
    return found


def age_key(obj: Obj) -> tuple[str, str]:
    """Return a key that sorts objects by their age, the oldest first, then by name."""
    return str(meta(obj).get("creationTimestamp", "")), str(meta(obj).get("name", ""))


def part(obj: Obj, *path: str) -> Obj:
    """Return an object inside an object, empty if it is absent or not an object."""
    for key in path:
        found = obj.get(key)
        obj = found if isinstance(found, dict) else {}
    return obj


def parts(obj: Obj, *path: str) -> list[Obj]:
    """Return the objects of a list inside an object, without items that are none. It is empty if there is no list."""
    *above, key = path
    found = part(obj, *above).get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def count_or(value: object, default: int) -> int:
    """Return a number from 0 on, the default for anything that is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default


def native_group_of(pod: Obj) -> str:
    """Return the name of the PodGroup of ``scheduling.k8s.io`` to which a pod belongs, or ""."""
    found = part(pod, "spec", "schedulingGroup").get("podGroupName")
    return found if isinstance(found, str) else ""


def is_in_native_group(pod: Obj) -> bool:
    """Return True if a pod belongs to a gang of Kubernetes' own, for which no controller makes a PodGroup."""
    return bool(native_group_of(pod) or part(pod, "spec", "workloadRef"))


def annotations_of(obj: Obj) -> dict[str, str]:
    """Return the annotations, empty if there are none."""
    found: dict[str, str] = meta(obj).get("annotations") or {}
    return found


def labels_of(obj: Obj) -> dict[str, str]:
    """Return the labels, empty if there are none."""
    found: dict[str, str] = meta(obj).get("labels") or {}
    return found


def ref_of(obj: Obj) -> Ref:
    """Return a reference to the present object, by its UID."""
    m = meta(obj)
    return Ref(obj["apiVersion"], obj["kind"], m.get("namespace", ""), m["name"], m.get("uid", ""))


def owner_reference(obj: Obj) -> Obj:
    """Return what a controlled object writes about its controller."""
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": meta(obj)["name"],
        "uid": meta(obj).get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_uid(obj: Obj) -> str:
    """Return the UID of the controlling owner, or ""."""
    for owner in meta(obj).get("ownerReferences") or ():
        if owner.get("controller"):
            return str(owner.get("uid", ""))
    return ""


def controller_of(obj: Obj) -> Ref | None:
    """Return the controlling owner, or None. It is in the same namespace."""
    for owner in meta(obj).get("ownerReferences") or ():
        if owner.get("controller"):
            api_version, kind, name = (str(owner.get(key, "")) for key in ("apiVersion", "kind", "name"))
            return Ref(api_version, kind, meta(obj).get("namespace", ""), name, str(owner.get("uid", "")))
    return None


def leaving(obj: Obj) -> bool:
    """Return True if the object is being deleted."""
    return bool(meta(obj).get("deletionTimestamp"))


def merge_patch(old: Obj, new: Obj) -> Obj:
    """Return the patch that makes ``new`` of ``old`` by RFC 7386, empty if they are equal. Lists are replaced whole."""
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
    """Return one write that sets this status, or none. It fails if the object has changed since it was read."""
    change = merge_patch(part(obj, "status"), status)
    if not change:
        return []
    return [Patch(ref_of(obj), {"status": change}, "status", str(meta(obj).get("resourceVersion", "")))]


def merged(obj: Any, patch: Any) -> Any:
    """Return the object after a merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    found = dict(obj) if isinstance(obj, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found
