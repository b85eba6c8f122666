"""The kinds that are served: built-in ones, and those of CustomResourceDefinitions in the store."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from pumice.apiserver.kinds.resources import BUILT_IN, CRDS, Resource, defined
from pumice.apiserver.store import Change, Store
from pumice.runtime.serving.supervision import SkippedObjects

_log = logging.getLogger("pumice.apiserver")
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STAGES = {None: 2, "beta": 1, "alpha": 0}


class Registry:
    """Follows the definitions in a store. ``generation`` increases whenever kinds appear or disappear."""

    def __init__(self, store: Store) -> None:
        self.generation = 0
        self._skipped = SkippedObjects(_log, "kinds")
        self._found: dict[tuple[str, str, str], Resource] = {(r.group, r.version, r.plural): r for r in BUILT_IN}
        self._defined: dict[str, list[Resource]] = {}
        for row in store.rows(CRDS):
            with self._skipped.guard(f"definition {row.key}"):
                self._define(row.key, defined(row.obj))
        store.sinks.append(self._on_change)

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._found.get((group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        return next((r for r in self._found.values() if r.kind == kind and r.api_version == api_version), None)

    def of_table(self, table: str) -> Resource | None:
        """Return the preferred resource of a table, None if its definition is gone."""
        found = [r for r in self._found.values() if r.full_name == table]
        return min(found, key=lambda r: _rank(r.version), default=None)

    def resources(self) -> list[Resource]:
        """Return all resources, by group, version and name."""
        return sorted(self._found.values(), key=lambda r: (r.group, _rank(r.version), r.plural))

    def groups(self) -> dict[str, list[str]]:
        """Return group -> its versions, the preferred one first."""
        found: dict[str, list[str]] = {}
        for resource in self.resources():
            versions = found.setdefault(resource.group, [])
            if resource.version not in versions:
                versions.append(resource.version)
        return found

    def _on_change(self, change: Change) -> None:
        if change.table == CRDS:
            with self._skipped.guard(f"definition {change.now.key}"):
                self._define(change.now.key, [] if change.deleted else defined(change.now.obj))

    def _define(self, name: str, resources: Iterable[Resource]) -> None:
        for old in self._defined.pop(name, ()):
            self._found.pop((old.group, old.version, old.plural), None)
        self._defined[name] = list(resources)
        for resource in self._defined[name]:
            self._found[resource.group, resource.version, resource.plural] = resource
        self.generation += 1


def _rank(version: str) -> tuple[int, int, int, str]:
    """Return the rank of a version in Kubernetes' order: v2, v1, v1beta2, v1beta1, v1alpha1, then others by name."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return 1, 0, 0, version
    return 0, -_STAGES[match[2]], -int(match[1]) * 1000 - int(match[3] or 0), version
