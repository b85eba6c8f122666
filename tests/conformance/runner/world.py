"""The cluster of a case: its objects and options, in a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from msgspec.structs import replace

from pumice.columns.snapshot import Shard
from pumice.model.events import Object, Seen
from pumice.model.manifest import Decoder, ManifestError, UnsupportedKind
from pumice.model.volumes import CSINode
from pumice.state.store import Store
from tests.conformance.runner.case import Case, Raw
from tests.conformance.runner.result import NotYet, Unusable

#: Kinds that Pumice reads and the store keeps.
_KEPT = get_args(Object)
#: Kind -> what of Pumice is missing to take it into account.
_NEEDS = {
    "NodeShard": "shards as objects",
}
_UNDERSTOOD_OPTIONS = {
    "csi-storage",  # about volumes only
    "feature-gates",
    "ignored-provisioners",
    "percentage-nodes-to-find",  # Pumice looks at all nodes, always
    "priority-class",
    "scheduler-sharding-mode",
    "shard-name",
}
#: Drivers whose volumes Volcano counts on no node, beside those of the option. Source: Volcano cache, defaults.
_NEVER_COUNTED = frozenset({"hostpath.csi.k8s.io", "rancher.io/local-path"})
_UNDERSTOOD_GATES = {"DynamicResourceAllocation"}


class World:
    """A store that was filled from a case. ``lacking`` names what some objects need and Pumice does not have."""

    def __init__(self, case: Case) -> None:
        _check_options(case)
        self.decoder = Decoder()
        self.store = Store(use_priority_classes=case.options.get("priority-class", True))
        self.lacking: set[str] = set()
        self._ignored = _NEVER_COUNTED | set(case.options.get("ignored-provisioners") or ())
        self.add(case.objects)
        self.store.shard = _shard(case)

    def add(self, objects: Iterable[Raw]) -> None:
        """More objects. Raises: Unusable for one that cannot be read."""
        for raw in objects:
            value = self._read(raw)
            if value is not None:
                self.store.apply(Seen(value))

    def _read(self, raw: Raw) -> Object | None:
        try:
            value = self.decoder.decode(raw)
        except UnsupportedKind:
            kind = str(raw.get("kind"))
            self.lacking.add(_NEEDS.get(kind, f"kind {kind}"))
            return None
        except ManifestError as error:
            raise Unusable(str(error)) from None
        if isinstance(value, CSINode):
            limits = tuple(limit for limit in value.limits if limit[0] not in self._ignored)
            return replace(value, limits=limits)
        return value if isinstance(value, _KEPT) else None


def _check_options(case: Case) -> None:
    unknown = [f"option {name}" for name in case.options if name not in _UNDERSTOOD_OPTIONS]
    gates: Mapping[str, Any] = case.options.get("feature-gates") or {}
    unknown += [f"feature gate {name}" for name in gates if name not in _UNDERSTOOD_GATES]
    if unknown:
        raise NotYet(", ".join(unknown))


def _shard(case: Case) -> Shard | None:
    mode = case.options.get("scheduler-sharding-mode", "none")
    if mode == "none":
        return None
    if mode not in ("hard", "soft"):
        raise NotYet(f"sharding mode {mode}")
    return Shard(frozenset(case.raw.get("nodesInShard") or ()), mode == "hard")
