"""Create, change and delete objects: effects on the store, and refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from pumice.apiserver.api.managed import keep_owners
from pumice.apiserver.api.views import as_seen, as_stored
from pumice.apiserver.bounds import STORE_BYTES_MAX, check_object, is_too_deep
from pumice.apiserver.kinds import ephemeral
from pumice.apiserver.kinds.admission import admitted_change, admitted_new
from pumice.apiserver.kinds.advice import advice
from pumice.apiserver.kinds.amounts import with_canonical_amounts
from pumice.apiserver.kinds.metadata import (
    Stamps,
    check_version,
    continued,
    has_generation,
    metadata_causes,
    metadata_of,
    stamped,
    unversioned,
)
from pumice.apiserver.kinds.registry import Registry
from pumice.apiserver.kinds.resources import CRDS, Resource
from pumice.apiserver.kinds.schema import conformed
from pumice.apiserver.refusals import Refusal, already_exists, bad_request, conflict, forbidden, not_found, success
from pumice.apiserver.store import Store, Stored
from pumice.model.instants import stamp
from pumice.model.manifest.reading.fields import Obj
from pumice.model.pod import ENDED

NAMESPACES_AT_START = ("default", "kube-node-lease", "kube-public", "kube-system", "volcano-system")
_NEVER_DELETED = frozenset({"default", "kube-system", "kube-public"})
_NAME_TRIES = 8
_ACTED_ON = ("pods", "nodes", CRDS)
#: Kinds whose deletion returns the deleted object and not a Status. Source: Kubernetes' registries.
_GIVEN_BACK = frozenset(
    {"pods", "services", "serviceaccounts", "resourcequotas", "persistentvolumes", "persistentvolumeclaims"}
    | {"storageclasses.storage.k8s.io", "csinodes.storage.k8s.io", "csidrivers.storage.k8s.io"}
)
_GRACE_S = 30
_GRACE_MAX_S = 10 * 365 * 86_400  # of a deletion; a longer one would end at a time that cannot be written


class Target(Struct, frozen=True):
    """What a request is about: a kind, and optionally a namespace, an object, and a part of it."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> str:
        return self.resource.key(self.namespace, self.name)


class Options(Struct, frozen=True):
    """Options of a write. ``unknown_fields``: Strict, Warn or Ignore. ``warnings``: for the user, are added to."""

    dry_run: bool = False
    manager: str = ""
    force: bool = False
    unknown_fields: str = "Warn"
    warnings: list[str] = []
    applied: Obj | None = None  # by server-side apply


class Deletion(Struct, frozen=True):
    """Options of a deletion. ``grace_s`` None: as the object says."""

    grace_s: int | None = None
    uid: str = ""
    version: str = ""
    dry_run: bool = False


class Objects:
    """The writes of a server, each as a whole or not at all. Nothing here waits."""

    def __init__(self, store: Store, registry: Registry, stamps: Stamps) -> None:
        self.store, self.registry, self.stamps = store, registry, stamps

    def at_start(self) -> None:
        """Create the namespaces that every cluster has."""
        resource = self.registry.find("", "v1", "namespaces")
        assert resource is not None
        for name in NAMESPACES_AT_START:
            if self.store.find(resource.table, name) is None:
                self.create(Target(resource), {"metadata": {"name": name}}, Options())

    def get(self, target: Target) -> Stored:
        """Return a stored object. Raises: Refusal 404."""
        found = self.store.find(target.resource.table, target.key)
        if found is None:
            raise not_found(target.resource.full_name, target.name)
        return found

    # -- create --------------------------------------------------------------------------------------------------------

    def create(self, target: Target, body: Obj, options: Options) -> Obj:
        """Create an object and return it as stored. Raises: Refusal."""
        resource = target.resource
        _check_kind(resource, body)
        self._check_namespace(target)
        wanted = metadata_of(body).get("namespace")
        if resource.namespaced and wanted and wanted != target.namespace:
            raise bad_request(
                f"the namespace of the provided object does not match the namespace sent on the request: {wanted!r:.80}"
            )
        for left in range(_NAME_TRIES, 0, -1):
            obj = stamped(resource, body, target.namespace, self.stamps)
            name = obj["metadata"]["name"]
            if self.store.find(resource.table, resource.key(target.namespace, name)) is None:
                break
            if metadata_of(body).get("name") or left == 1:
                raise already_exists(resource.full_name, name)
        obj = conformed(resource, obj, options)
        obj = with_canonical_amounts(resource, as_stored(resource, obj))
        obj = admitted_new(resource, obj, self.store, self.stamps.time())
        obj = keep_owners(resource, None, obj, options, self.stamps.time())
        self._check_room(check_object(obj), b"")
        options.warnings.extend(advice(resource, obj, self.store))
        if options.dry_run:
            return as_seen(resource, obj)
        return as_seen(resource, self.store.put(resource.table, resource.key(target.namespace, name), obj).obj)

    # -- change --------------------------------------------------------------------------------------------------------

    def replace(self, target: Target, body: Obj, options: Options) -> Obj:
        """Replace an object (PUT). Raises: Refusal."""
        _check_kind(target.resource, body)
        name = metadata_of(body).get("name")
        if name != target.name:
            raise bad_request(
                f"the name of the object ({name!r:.80}) does not match the name on the URL ({target.name})"
            )
        return self.change(target, lambda _: body, options)

    def change(self, target: Target, edit: Callable[[Obj], Obj], options: Options) -> Obj:
        """Store a new state made from the present one. If nothing changes, nothing is written. Raises: Refusal, and
        what ``edit`` raises."""
        resource = target.resource
        old = self.get(target)
        seen = as_seen(resource, old.obj)
        wanted = edit(seen)
        _check_kind(resource, wanted)
        check_version(resource, old.obj, metadata_of(wanted).get("resourceVersion"))
        new = continued(resource, seen, wanted)
        new = self._part(target, seen, new)
        new = conformed(resource, new, options)
        new = admitted_change(
            resource, old.obj, with_canonical_amounts(resource, as_stored(resource, new)), target.subresource
        )
        if _has_new_generation(resource, old.obj, new):
            new["metadata"]["generation"] = old.obj["metadata"].get("generation", 0) + 1
        new = keep_owners(resource, old.obj, new, options, self.stamps.time(), target.subresource)
        self._check_room(check_object(new), old.raw)
        if options.dry_run or _same(old.obj, new):
            return as_seen(resource, new)
        return as_seen(resource, self.write(resource, old, new).obj)

    def write(self, resource: Resource, old: Stored, new: Obj) -> Stored:
        """Store the new state. An object that only waited for its last finalizer is removed."""
        if _may_go(new) and not _may_go(old.obj):
            self.store.put(resource.table, old.key, new)
            return self.store.remove(resource.table, old.key)
        return self.store.put(resource.table, old.key, new)

    def _part(self, target: Target, old: Obj, new: Obj) -> Obj:
        """Return the part of a change that its path may write: the status, or everything else."""
        if not target.resource.status:
            return new
        if target.subresource == "status":
            return {**old, "status": new.get("status") or {}}
        if target.subresource == ephemeral.PART:
            return ephemeral.with_added(old, new)
        kept = {key: value for key, value in new.items() if key != "status"}
        return kept | ({"status": old["status"]} if "status" in old else {})

    # -- delete --------------------------------------------------------------------------------------------------------

    def delete(self, target: Target, how: Deletion) -> Obj:
        """Delete an object. Return it if that takes time, else a Status. Raises: Refusal."""
        resource = target.resource
        old = self.get(target)
        _check_preconditions(resource, old.obj, how)
        metadata = old.obj["metadata"]
        if resource.full_name == "namespaces" and target.name in _NEVER_DELETED:
            raise forbidden(resource.full_name, target.name, "this namespace may not be deleted")
        if how.dry_run:
            return as_seen(resource, old.obj)
        grace = _grace(resource, old.obj, how.grace_s)
        if grace == 0 and not metadata.get("finalizers") and resource.full_name != "namespaces":
            if resource.full_name == CRDS:
                self._drop_all(old.obj)
            self.store.remove(resource.table, old.key)
            if resource.full_name == CRDS:
                self.store.wake(old.key)
            if resource.full_name in _GIVEN_BACK:
                gone = {"deletionTimestamp": self.stamps.time(), "deletionGracePeriodSeconds": 0}
                marks = gone if resource.full_name == "pods" else {}
                return as_seen(resource, {**old.obj, "metadata": {**metadata, **marks}})
            return success(
                name=target.name,
                kind=resource.plural,
                uid=metadata["uid"],
                **({"group": resource.group} if resource.group else {}),
            )
        if "deletionTimestamp" in metadata and grace >= metadata.get("deletionGracePeriodSeconds", 0):
            return as_seen(resource, old.obj)
        marks = {"deletionTimestamp": stamp(self.stamps.now() + grace), "deletionGracePeriodSeconds": grace}
        new = {**old.obj, "metadata": {**metadata, **marks}}
        if resource.full_name == "namespaces":
            new["status"] = {**new.get("status", {}), "phase": "Terminating"}
        return as_seen(resource, self.write(resource, old, new).obj)

    def delete_all(self, resource: Resource, rows: Iterable[Stored], how: Deletion) -> None:
        """Delete objects that still exist."""
        for row in list(rows):
            metadata = row.obj["metadata"]
            namespace = metadata.get("namespace", "")
            if self.store.find(resource.table, row.key) is not None:
                self.delete(Target(resource, namespace, metadata["name"]), how)

    def _drop_all(self, crd: Obj) -> None:
        """Delete the objects of a kind whose definition is deleted."""
        table = crd["metadata"]["name"]
        for row in list(self.store.rows(table)):
            self.store.remove(table, row.key)

    # -- pieces --------------------------------------------------------------------------------------------------------

    def _check_room(self, raw: bytes, before: bytes) -> None:
        """Raise Refusal 507 for a larger object if all objects together have reached their limit."""
        grows = len(raw) - len(before)
        if grows > 0 and self.store.bytes + grows > STORE_BYTES_MAX:
            raise Refusal(507, "InsufficientStorage", f"all objects together are {STORE_BYTES_MAX} bytes: delete some")

    def _check_namespace(self, target: Target) -> None:
        if not target.resource.namespaced:
            return
        if not target.namespace:
            raise bad_request("an object of this kind is created in a namespace")
        found = self.store.find("namespaces", target.namespace)
        if found is None:
            raise not_found("namespaces", target.namespace)
        if "deletionTimestamp" in found.obj["metadata"]:
            why = f"unable to create new content in namespace {target.namespace} because it is being terminated"
            raise forbidden(target.resource.full_name, target.name, why)


def _check_kind(resource: Resource, body: Obj) -> None:
    for key, wanted in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        found = body.get(key)
        if found and found != wanted:
            raise bad_request(f"{key}: found {str(found)[:80]!r}, wanted {wanted!r} as the path says")


def _check_preconditions(resource: Resource, obj: Obj, how: Deletion) -> None:
    metadata = obj["metadata"]
    for name, wanted, found in (
        ("UID", how.uid, metadata["uid"]),
        ("ResourceVersion", how.version, metadata["resourceVersion"]),
    ):
        if wanted and wanted != found:
            why = f"Precondition failed: {name} in precondition: {wanted[:80]}, {name} in object meta: {found}"
            raise conflict(resource.full_name, metadata["name"], why)


def _grace(resource: Resource, obj: Obj, asked_s: int | None) -> int:
    """Return the grace period in seconds: only a pod on a node that has not ended needs one."""
    if resource.full_name != "pods":
        return 0
    if not obj["spec"].get("nodeName") or obj["status"].get("phase") in ENDED:
        return 0
    wanted = obj["spec"].get("terminationGracePeriodSeconds") if asked_s is None else asked_s
    return min(max(wanted, 0), _GRACE_MAX_S) if isinstance(wanted, int) else _GRACE_S


def _may_go(obj: Obj) -> bool:
    """Return True if an object is being deleted and nothing holds it."""
    metadata = obj["metadata"]
    held = metadata.get("finalizers") or obj.get("kind") == "Namespace"
    return "deletionTimestamp" in metadata and not held and not metadata.get("deletionGracePeriodSeconds")


def _same(old: Obj, new: Obj) -> bool:
    if old["metadata"].get("managedFields") != new["metadata"].get("managedFields"):
        return False
    return unversioned(old) == unversioned(new)


def _has_new_generation(resource: Resource, old: Obj, new: Obj) -> bool:
    if not has_generation(resource):
        return False
    apart = {"metadata", "status"} if resource.status else {"metadata"}
    return {k: v for k, v in old.items() if k not in apart} != {k: v for k, v in new.items() if k not in apart}


def unsound(table: str, key: str, obj: Obj) -> str:
    """Return why an object under a key cannot have been created here, "" if it may have been.

    Parts that act on objects unasked (nodes, garbage collection) rely on what this checks.
    """
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return "metadata: wanted an object"
    for text in ("name", "uid", "resourceVersion"):
        if not isinstance(metadata.get(text), str) or not metadata[text]:
            return f"metadata.{text}: wanted a text"
    if key not in (metadata["name"], f"{metadata.get('namespace')}/{metadata['name']}"):
        return "it is kept under another name"
    for part in ("spec", "status") if table in _ACTED_ON else ():
        if not isinstance(obj.get(part), dict):
            return f"{part}: wanted an object"
    if is_too_deep(obj):
        return "it is nested too deep"
    return "; ".join(f"{cause.field}: {cause.message}" for cause in metadata_causes(metadata))
