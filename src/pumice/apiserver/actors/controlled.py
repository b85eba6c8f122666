"""What actors share that run a kind of object by creating and deleting others: which these are, and their writes."""

from __future__ import annotations

from collections.abc import Mapping

from pumice.apiserver.kinds.resources import Resource
from pumice.apiserver.objects import Deletion, Objects, Options, Target
from pumice.apiserver.store import Stored
from pumice.model.manifest.reading.fields import Obj
from pumice.runtime.controllers.writes import Create, Delete, Patch, Ref, controller_of, merged


class Controlled:
    """The objects that a kind controls, by the UID of the one that does. ``kind``, ``api_version``: of that kind."""

    def __init__(self, kind: str, api_version: str) -> None:
        self._owners = (kind, api_version)
        self._keys_of: dict[str, dict[str, None]] = {}

    def note(self, row: Stored, *, deleted: bool) -> Ref | None:
        """Note that an object was written or deleted. Return what controls it, or None if that is of another kind."""
        owner = controller_of(row.obj)
        if owner is None or (owner.kind, owner.api_version) != self._owners:
            return None
        keys = self._keys_of.setdefault(owner.uid, {})
        keys[row.key] = None
        if deleted:
            del keys[row.key]
            if not keys:
                del self._keys_of[owner.uid]
        return owner

    def of(self, uid: str) -> list[str]:
        """Return the keys of the objects that the one with this UID controls, in the order in which they came."""
        return list(self._keys_of.get(uid, ()))


def named(resource: Resource, row: Stored) -> Obj:
    """Return an object with its kind and version, which the store does not keep."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, **row.obj}


def carry_out(objects: Objects, kinds: Mapping[str, Resource], write: Create | Patch | Delete) -> None:
    """Carry out what a controller wants written. ``kinds``: the resources of what it writes, by kind. Raises:
    Refusal."""

    def target(ref: Ref, below: str = "") -> Target:
        return Target(kinds[ref.kind], ref.namespace, ref.name, below)

    match write:
        case Create(obj=obj):
            objects.create(Target(kinds[obj["kind"]], obj["metadata"]["namespace"]), obj, Options())
        case Patch(ref=ref, merge=merge, subresource=below):
            objects.change(target(ref, below), lambda old: merged(old, merge), Options())
        case Delete(ref=ref):
            meant = target(ref)
            # It may be gone since: a refusal would hold back the writes that follow.
            if objects.store.find(meant.resource.table, meant.key) is not None:
                objects.delete(meant, Deletion(uid=ref.uid))
