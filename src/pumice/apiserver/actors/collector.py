"""Delete dependents: objects whose owners are gone, and everything in a deleted namespace."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress

from pumice.apiserver.actors.loop import work_through
from pumice.apiserver.kinds.resources import Resource
from pumice.apiserver.objects import Deletion, Objects, Target
from pumice.apiserver.refusals import Refusal
from pumice.apiserver.store import Change, Stored
from pumice.model.manifest.reading.fields import Obj
from pumice.runtime.serving.supervision import SkippedObjects

_log = logging.getLogger("pumice.apiserver")
_AT_ONCE = 200  # objects of a namespace that are deleted before requests are served again
_Place = tuple[str, str]  # table, key


class Collector:
    """Receives every change, notes what to examine, and examines it in ``step``, never within the change itself.

    ``skipped``: objects that it skipped because of faults.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.skipped = SkippedObjects(_log, "garbage collection")
        self._owned: dict[str, dict[_Place, None]] = {}  # UID of an owner -> what it owns, in the order of arrival
        self._alive: set[str] = set()
        self._orphaned: deque[str] = deque()  # UIDs of deleted owners
        self._suspects: deque[_Place] = deque()
        self._ending: dict[str, None] = {}  # namespaces that are being deleted
        self._work = asyncio.Event()
        store = objects.store
        for table in store.tables():
            for row in store.rows(table):
                with self.skipped.guard(f"{table} {row.key}"):
                    self._appeared(table, row)
        store.sinks.append(self._on_change)

    async def run(self) -> None:
        """Run until cancelled."""
        await work_through(self.step, self._work)

    def step(self) -> bool:
        """Examine one thing. Return True if there was one."""
        if self._orphaned:
            for place in list(self._owned.get(self._orphaned.popleft(), ())):
                self._suspects.append(place)
            return True
        if self._suspects:
            table, key = self._suspects.popleft()
            with self.skipped.guard(f"{table} {key}"):
                self._judge(table, key)
            return True
        if self._ending:
            namespace = next(iter(self._ending))
            del self._ending[namespace]
            with self.skipped.guard(f"namespaces {namespace}"):
                self._end(namespace)
            return True
        return False

    def release(self, uid: str) -> None:
        """Keep the dependents of a deleted owner: remove its reference from them."""
        for table, key in list(self._owned.get(uid, ())):
            row = self._objects.store.find(table, key)
            resource = self._objects.registry.of_table(table)
            if row is not None and resource is not None:
                metadata = row.obj["metadata"]
                left = [owner for owner in metadata["ownerReferences"] if owner["uid"] != uid]
                self._objects.write(resource, row, {**row.obj, "metadata": {**metadata, "ownerReferences": left}})

    # -- changes -------------------------------------------------------------------------------------------------------

    def _on_change(self, change: Change) -> None:
        with self.skipped.guard(f"{change.table} {change.now.key}"):
            self._note(change)

    def _note(self, change: Change) -> None:
        place = change.table, change.now.key
        if change.before is not None:
            for uid in _owners(change.before.obj):
                self._owned.get(uid, {}).pop(place, None)
        if change.deleted:
            uid = change.now.obj["metadata"]["uid"]
            self._alive.discard(uid)
            if self._owned.get(uid):
                self._orphaned.append(uid)
                self._work.set()
            else:
                self._owned.pop(uid, None)
            self._left(change)
        else:
            self._appeared(change.table, change.now)

    def _appeared(self, table: str, row: Stored) -> None:
        metadata = row.obj["metadata"]
        self._alive.add(metadata["uid"])
        owners = _owners(row.obj)
        for uid in owners:
            self._owned.setdefault(uid, {})[table, row.key] = None
        if owners and not any(uid in self._alive for uid in owners):
            self._suspects.append((table, row.key))
            self._work.set()
        if table == "namespaces" and "deletionTimestamp" in metadata:
            self._ending[row.key] = None
            self._work.set()

    def _left(self, change: Change) -> None:
        """Note that a namespace which is being deleted may be empty now."""
        namespace = change.now.obj["metadata"].get("namespace")
        found = self._objects.store.find("namespaces", namespace) if namespace else None
        if found is not None and "deletionTimestamp" in found.obj["metadata"]:
            self._ending[found.key] = None
            self._work.set()

    # -- what is done --------------------------------------------------------------------------------------------------

    def _judge(self, table: str, key: str) -> None:
        """Delete an object if all its owners are gone."""
        row = self._objects.store.find(table, key)
        resource = self._objects.registry.of_table(table)
        if row is None or resource is None:
            return
        owners = _owners(row.obj)
        if owners and not any(uid in self._alive for uid in owners):
            self._delete(resource, row)

    def _end(self, namespace: str) -> None:
        """Delete the contents of a namespace, and the namespace once it is empty."""
        store = self._objects.store
        empty, left = True, _AT_ONCE
        for table in store.tables():
            resource = self._objects.registry.of_table(table)
            if resource is None or not resource.namespaced:
                continue
            for row in list(store.rows(table, prefix=f"{namespace}/")):
                if "deletionTimestamp" in row.obj["metadata"]:  # it is being deleted already, and its end is a change
                    empty = False
                    continue
                if left <= 0:
                    self._ending[namespace] = None  # to be continued
                    return
                left -= 1
                with self.skipped.guard(f"{table} {row.key}"):
                    self._delete(resource, row)
                empty = empty and store.find(table, row.key) is None
        found = store.find("namespaces", namespace)
        if empty and found is not None and not found.obj["metadata"].get("finalizers"):
            store.remove("namespaces", namespace)

    def _delete(self, resource: Resource, row: Stored) -> None:
        metadata = row.obj["metadata"]
        with suppress(Refusal):  # an object that may not be deleted stays
            self._objects.delete(Target(resource, metadata.get("namespace", ""), metadata["name"]), Deletion())


def _owners(obj: Obj) -> list[str]:
    return [owner["uid"] for owner in obj["metadata"].get("ownerReferences") or ()]
