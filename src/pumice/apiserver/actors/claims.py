"""Make ResourceClaims from templates, and take them back from pods that have ended: what ``claim_rules`` says.

The API server of a real cluster leaves this to kube-controller-manager, which this server has none of.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from pumice.apiserver.actors.claim_rules import (
    GROUP_ENTRY,
    POD_ENTRY,
    Entry,
    claim_from,
    claims_named_by,
    entries_of,
    is_done,
    is_left_over,
    made_for,
    released,
    reserved_for,
    with_names,
)
from pumice.apiserver.actors.controlled import Controlled, named
from pumice.apiserver.actors.loop import work_for_ever
from pumice.apiserver.actors.wakes import Wakes
from pumice.apiserver.kinds.resources import Resource
from pumice.apiserver.objects import Deletion, Objects, Options, Target
from pumice.apiserver.refusals import Refusal
from pumice.apiserver.store import Change, Stored
from pumice.model.devices.claims import CLAIM_USERS_MAX
from pumice.model.manifest.reading.fields import Obj
from pumice.model.workloads.native_group import NATIVE_GROUP
from pumice.runtime.controllers.writes import annotations_of, leaving, meta, native_group_of
from pumice.runtime.serving.supervision import SkippedObjects

_log = logging.getLogger("pumice.apiserver")
_Place = tuple[str, str]  # table, key
_AGAIN_S = 5.0  # after a write was refused, such as a claim with an invalid spec
_DEVICES = "resource.k8s.io"


class Claims:
    """``clock``: seconds since the epoch. ``skipped``: objects that it skipped because of faults."""

    def __init__(self, objects: Objects, clock: Callable[[], float]) -> None:
        self._objects, self._clock = objects, clock
        self.skipped = SkippedObjects(_log, "claims")

        def kind(group: str, version: str, plural: str) -> Resource:
            found = objects.registry.find(group, version, plural)
            assert found is not None
            return found

        self._pods, self._groups = kind("", "v1", "pods"), kind(NATIVE_GROUP, "v1beta1", "podgroups")
        self._claims = kind(_DEVICES, "v1", "resourceclaims")
        self._templates = kind(_DEVICES, "v1", "resourceclaimtemplates")
        self._owners = {each.table: each for each in (self._pods, self._groups)}
        self._owned = {each.table: Controlled(each.kind, each.api_version) for each in self._owners.values()}
        self._waiting: dict[str, dict[_Place, None]] = {}  # template, or PodGroup -> what waits for it
        self._todo: dict[_Place, None] = {}
        self._again = Wakes[_Place]()  # after a refusal
        self._work = asyncio.Event()
        for resource in (self._claims, *self._owners.values()):
            for row in objects.store.rows(resource.table):
                with self.skipped.guard(f"{resource.table} {row.key}"):
                    self._note(resource.table, row, deleted=False)
        objects.store.sinks.append(self._on_change)

    async def run(self) -> None:
        """Run until cancelled."""
        await work_for_ever(self.step, self._todo, self._work, self._clock)

    def step(self, count_max: int = 20) -> float | None:
        """Examine what is due, at most ``count_max`` objects. Return when the next one is due, None for none."""
        self._todo.update(dict.fromkeys(self._again.take(self._clock())))
        for table, key in list(self._todo)[:count_max]:
            del self._todo[table, key]
            with self.skipped.guard(f"{table} {key}"):
                try:
                    self._look_at(table, key)
                except Refusal as refusal:
                    _log.warning("%s %s: %s", table, key, refusal)
                    self._again.add((table, key), self._clock() + _AGAIN_S)
        return self._again.next_at

    # -- changes -------------------------------------------------------------------------------------------------------

    def _on_change(self, change: Change) -> None:
        with self.skipped.guard(f"{change.table} {change.now.key}"):
            self._note(change.table, change.now, deleted=change.deleted)

    def _note(self, table: str, row: Stored, *, deleted: bool) -> None:
        if table == self._claims.table:
            for owners, owned in self._owned.items():
                owner = owned.note(row, deleted=deleted)
                # One that was deleted before its time is made again.
                if owner is not None and deleted:
                    self._add(owners, f"{owner.namespace}/{owner.name}")
            self._add(table, row.key)
        elif table in self._owners:
            # Most pods have no claims.
            keys = [f"{row.obj['metadata']['namespace']}/{name}" for name in sorted(claims_named_by(row.obj))]
            for key in (*keys, *self._owned[table].of(str(row.obj["metadata"]["uid"]))):
                self._add(self._claims.table, key)
            if deleted:
                for source in self._sources(row.obj):
                    self._waiting.get(source, {}).pop((table, row.key), None)
            elif next(entries_of(row.obj), None) is not None:
                self._add(table, row.key)
        if table in (self._templates.table, self._groups.table):
            for place in self._waiting.pop(f"{table} {row.key}", ()):
                self._add(*place)

    def _sources(self, owner: Obj) -> list[str]:
        """Return the templates and the PodGroup for which a pod or a PodGroup may wait."""
        namespace = meta(owner)["namespace"]
        found = [f"{self._templates.table} {namespace}/{each.template}" for each in entries_of(owner)]
        return [*found, f"{self._groups.table} {namespace}/{native_group_of(owner)}"]

    def _add(self, table: str, key: str) -> None:
        self._todo[table, key] = None
        self._work.set()

    # -- what is done --------------------------------------------------------------------------------------------------

    def _look_at(self, table: str, key: str) -> None:
        row = self._objects.store.find(table, key)
        if row is None:
            return
        if table == self._claims.table:
            self._examine(row)
        elif not leaving(row.obj) and not (table == self._pods.table and is_done(row.obj)):
            self._give(self._owners[table], row)

    def _examine(self, row: Stored) -> None:
        """Take a claim from users that do not need it any more, and delete it if it was made for one of them."""
        namespace = row.obj["metadata"]["namespace"]

        def find(resource: Resource, name: str) -> Obj | None:
            found = self._objects.store.find(resource.table, f"{namespace}/{name}")
            return None if found is None else found.obj

        def pod(name: str) -> Obj | None:
            return find(self._pods, name)

        left = released(row.obj, pod, lambda name: find(self._groups, name))
        if left is not row.obj:
            row = self._objects.write(self._claims, row, left)
        if is_left_over(row.obj, pod) and self._objects.store.find(self._claims.table, row.key) is not None:
            self._objects.delete(Target(self._claims, namespace, row.obj["metadata"]["name"]), Deletion())

    def _give(self, resource: Resource, row: Stored) -> None:
        """Make the claims that a pod or a PodGroup has templates for, and name them in its status. Raises: Refusal."""
        owner, before = named(resource, row), made_for(row.obj)
        names = {}
        for entry in entries_of(owner):
            name = self._claim_of(resource, owner, entry, before.get(entry.name, "")) if entry.template else ""
            if name:
                names[entry.name] = name
            if name or entry.claim:
                self._reserve(owner, f"{meta(owner)['namespace']}/{name or entry.claim}")
        if names != before and names:
            self._objects.write(resource, row, with_names(row.obj, names))

    def _claim_of(self, resource: Resource, owner: Obj, entry: Entry, before: str) -> str:
        """Return the name of the claim for an entry, which is made if there is none; "" if that has to wait."""
        namespace, store = meta(owner)["namespace"], self._objects.store
        key = f"{namespace}/{native_group_of(owner)}"
        if resource is self._pods and native_group_of(owner):
            group = store.find(self._groups.table, key)
            if group is None or entry in entries_of(group.obj):
                self._wait(f"{self._groups.table} {key}", resource, owner)
                return "" if group is None else made_for(group.obj).get(entry.name, "")
        mark = POD_ENTRY if resource is self._pods else GROUP_ENTRY
        for each in self._owned[resource.table].of(str(meta(owner)["uid"])):
            found = store.find(self._claims.table, each)
            if found is not None and annotations_of(found.obj).get(mark) == entry.name and not leaving(found.obj):
                return str(found.obj["metadata"]["name"])
        key = f"{namespace}/{entry.template}"
        template = store.find(self._templates.table, key)
        if template is None:
            self._wait(f"{self._templates.table} {key}", resource, owner)
            return before
        claim = claim_from(template.obj, owner, entry.name)
        return str(self._objects.create(Target(self._claims, namespace), claim, Options())["metadata"]["name"])

    def _wait(self, source: str, resource: Resource, owner: Obj) -> None:
        self._waiting.setdefault(source, {})[resource.table, f"{meta(owner)['namespace']}/{meta(owner)['name']}"] = None

    def _reserve(self, owner: Obj, key: str) -> None:
        """Reserve a claim for a pod that was created with a node."""
        row = self._objects.store.find(self._claims.table, key)
        if row is not None and owner["kind"] == "Pod":
            taken = reserved_for(row.obj, owner, CLAIM_USERS_MAX)
            if taken is not row.obj:
                self._objects.write(self._claims, row, taken)
