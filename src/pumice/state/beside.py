"""Objects that have a table of their own beside the books: it is made anew when one of them comes, goes or changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pumice.columns.column import Versions
from pumice.columns.objects.api_objects import (
    BudgetTable,
    ClaimTable,
    CsiNodeTable,
    DeviceClassTable,
    DeviceGrantTable,
    NumaTable,
    QuotaTable,
    SliceTable,
    StorageCapacityTable,
    StorageClassTable,
    TopologyTable,
    VolumeClaimTable,
    VolumeTable,
)
from pumice.columns.objects.usages import HistoryTable, UsageTable
from pumice.columns.table import Table
from pumice.columns.tables import Tables
from pumice.model.devices.claims import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from pumice.model.devices.gpu import is_gpu
from pumice.model.devices.numa import Numatopology
from pumice.model.devices.shared_devices import DeviceGrant
from pumice.model.disruption import PodDisruptionBudget
from pumice.model.events import Object
from pumice.model.queue import ResourceQuota
from pumice.model.topology import Topology
from pumice.model.usage import NodeUsage, QueueHistory
from pumice.model.volumes import CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.state.grants import Grants

#: By kind: the name of its table, and what makes it of the objects.
_TABLES: Mapping[type[Any], tuple[str, Callable[[Versions, Any], Table]]] = MappingProxyType(
    {
        PodDisruptionBudget: ("budgets", BudgetTable),
        ResourceQuota: ("quotas", QuotaTable),
        Topology: ("topologies", TopologyTable),
        NodeUsage: ("usages", UsageTable),
        QueueHistory: ("histories", HistoryTable),
        Numatopology: ("numas", NumaTable),
        ResourceClaim: ("claims", ClaimTable),
        ResourceSlice: ("slices", SliceTable),
        DeviceClass: ("device_classes", DeviceClassTable),
        PersistentVolume: ("volumes", VolumeTable),
        PersistentVolumeClaim: ("volume_claims", VolumeClaimTable),
        StorageClass: ("storage_classes", StorageClassTable),
        CSINode: ("csi_nodes", CsiNodeTable),
        CSIStorageCapacity: ("storage_capacities", StorageCapacityTable),
    }
)
KINDS: tuple[type[Object], ...] = (*_TABLES, ResourceClaimTemplate)
#: The same of what no event tells: decisions alone say it.
_DECIDED: Mapping[type[Any], tuple[str, Callable[[Versions, Any], Table]]] = MappingProxyType(
    {DeviceGrant: ("device_grants", DeviceGrantTable)}
)


class Beside:
    """The objects of ``KINDS``, by key in each. ``grants``: what some of them are about to become."""

    def __init__(self, versions: Versions, grants: Grants) -> None:
        self._versions, self._grants = versions, grants
        self._objs: dict[type[object], dict[str, Any]] = {kind: {} for kind in KINDS}
        self._stale: dict[type[object], None] = {}

    def seen(self, obj: Object) -> None:
        """The object is there, new or changed."""
        kind, key = type(obj), str(getattr(obj, "key", obj.name))
        if self._objs[kind].get(key) != obj:
            self._objs[kind][key] = obj
            self._is_stale(kind)

    def gone(self, kind: type[Object], key: str) -> None:
        """The object of this kind is not there any more."""
        if self._objs[kind].pop(key, None) is not None:
            self._is_stale(kind)

    def _is_stale(self, kind: type[object]) -> None:
        self._stale[ResourceClaim if kind is ResourceClaimTemplate else kind] = None

    @property
    def offers_gpus(self) -> bool:
        """Whether some GPUs can be claimed: then GPUs are counted, whether or not a node has any as a resource."""
        return any(is_gpu(each.driver) for each in self._objs[ResourceSlice].values())

    def objects(self) -> dict[str, list[Object]]:
        """By the name of the table, and templates of claims."""
        found: dict[str, list[Object]] = {name: list(self._objs[kind].values()) for kind, (name, _) in _TABLES.items()}
        return {**found, "claim_templates": list(self._objs[ResourceClaimTemplate].values())}

    def refresh(self, tables: Tables) -> None:
        """Make the tables anew in which something has changed."""
        for kind in {**self._stale, **self._grants.stale}:
            name, make = _TABLES.get(kind) or _DECIDED[kind]
            setattr(tables, name, make(self._versions, self._grants.over(kind, self._as_they_are(kind))))
        self._stale, self._grants.stale = {}, {}

    def _as_they_are(self, kind: type[object]) -> Mapping[str, Any]:
        if kind is not ResourceClaim:
            return self._objs.get(kind, {})
        templates = map(_as_claim, self._objs[ResourceClaimTemplate].values())
        return {**self._objs[ResourceClaim], **{each.key: each for each in templates}}


def _as_claim(template: ResourceClaimTemplate) -> ResourceClaim:
    """A template as the claim by whose name pods ask for one that is made from it."""
    return ResourceClaim(
        template.namespace,
        f"template/{template.name}",
        template.requests,
        template.same,
        template.labels,
        unknown=template.unknown,
    )
