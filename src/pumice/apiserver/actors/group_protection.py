"""Keep a PodGroup of ``scheduling.k8s.io`` until no pod uses it: its finalizer is added and removed here.

Source: Kubernetes' controller ``podgroupprotection``. The admission of a new PodGroup adds the finalizer as well, as
the admission plugin PodGroupProtection does. A scheduler never touches it.
"""

from __future__ import annotations

import asyncio
import logging

from pumice.apiserver.actors.loop import work_through
from pumice.apiserver.kinds.resources import Resource
from pumice.apiserver.kinds.workloads import GROUP_FINALIZER
from pumice.apiserver.objects import Objects
from pumice.apiserver.store import Change, Stored
from pumice.model.pod import ENDED
from pumice.model.workloads.native_group import NATIVE_GROUP
from pumice.runtime.controllers.writes import native_group_of
from pumice.runtime.serving.supervision import SkippedObjects

_log = logging.getLogger("pumice.apiserver")


class GroupProtection:
    """``skipped``: objects that it skipped because of faults."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.skipped = SkippedObjects(_log, "group-protection")
        found = objects.registry.find(NATIVE_GROUP, "v1beta1", "podgroups")
        assert found is not None
        self._groups: Resource = found
        self._users: dict[str, dict[str, None]] = {}  # PodGroup -> its pods that have not ended, in a dict as a set
        self._todo: dict[str, None] = {}
        self._work = asyncio.Event()
        store = objects.store
        for pod in store.rows("pods"):
            with self.skipped.guard(f"pods {pod.key}"):
                self._note_pod(None, pod, deleted=False)
        for group in store.rows(self._groups.table):
            self._add(group.key)
        store.sinks.append(self._on_change)

    async def run(self) -> None:
        """Run until cancelled."""
        await work_through(self.step, self._work)

    def step(self) -> bool:
        """Examine one PodGroup. Return True if there was one."""
        if not self._todo:
            return False
        key = next(iter(self._todo))
        del self._todo[key]
        with self.skipped.guard(f"{self._groups.table} {key}"):
            self._look_at(key)
        return True

    def _on_change(self, change: Change) -> None:
        if change.table == self._groups.table:
            self._add(change.now.key)
        elif change.table == "pods":
            with self.skipped.guard(f"pods {change.now.key}"):
                self._note_pod(change.before, change.now, deleted=change.deleted)

    def _note_pod(self, before: Stored | None, pod: Stored, *, deleted: bool) -> None:
        # The group of a pod never changes, but a pod may be deleted and created anew under its name.
        if before is not None and (group := _group_of(before)):
            self._users.get(group, {}).pop(before.key, None)
            if not self._users.get(group):
                self._users.pop(group, None)
                self._add(group)
        group = _group_of(pod)
        if not group or deleted or pod.obj["status"].get("phase") in ENDED:
            return
        if group not in self._users:
            self._add(group)
        self._users.setdefault(group, {})[pod.key] = None

    def _add(self, key: str) -> None:
        self._todo[key] = None
        self._work.set()

    def _look_at(self, key: str) -> None:
        row = self._objects.store.find(self._groups.table, key)
        if row is None:
            return
        metadata = row.obj["metadata"]
        held: list[str] = metadata.get("finalizers") or []
        goes, is_used, has = "deletionTimestamp" in metadata, key in self._users, GROUP_FINALIZER in held
        if has and goes and not is_used:
            held = [each for each in held if each != GROUP_FINALIZER]
        elif not has and not goes and is_used:
            held = [*held, GROUP_FINALIZER]
        else:
            return
        self._objects.write(self._groups, row, {**row.obj, "metadata": {**metadata, "finalizers": held}})


def _group_of(pod: Stored) -> str:
    """Return the key of the PodGroup that a pod names, or ""."""
    name = native_group_of(pod.obj)
    return f"{pod.obj['metadata'].get('namespace', '')}/{name}" if name else ""
