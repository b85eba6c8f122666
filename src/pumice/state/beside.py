"""Objects that have a table by kind, beside pods, nodes, jobs and queues. A change of one replaces its table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
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
    ZoneTable,
)
from pumice.columns.objects.device_amounts import Amounts, amounts_by_devices
from pumice.columns.objects.usages import HistoryTable, UsageTable
from pumice.columns.table import Table
from pumice.columns.tables import Tables
from pumice.model.devices.claims import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from pumice.model.devices.extended import backing_classes
from pumice.model.devices.gpu import is_gpu
from pumice.model.devices.numa import NodeResourceTopology, Numatopology
from pumice.model.devices.shared_devices import DeviceGrant
from pumice.model.disruption import PodDisruptionBudget
from pumice.model.events import Object, key_of
from pumice.model.node import Node
from pumice.model.queue import ResourceQuota
from pumice.model.topology import Topology
from pumice.model.usage import NodeUsage, QueueHistory
from pumice.model.volumes import CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.state.grants import Grants

#: By kind: the name of the table, and the function that makes it from the objects.
_TABLES: Mapping[type[Any], tuple[str, Callable[[Versions, Any], Table]]] = MappingProxyType(
    {
        PodDisruptionBudget: ("budgets", BudgetTable),
        ResourceQuota: ("quotas", QuotaTable),
        Topology: ("topologies", TopologyTable),
        NodeUsage: ("usages", UsageTable),
        QueueHistory: ("histories", HistoryTable),
        Numatopology: ("numas", NumaTable),
        NodeResourceTopology: ("zones", ZoneTable),
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
#: The tables (see ``_TABLES``) of objects that are known from decisions only, and not from events.
_DECIDED: Mapping[type[Any], tuple[str, Callable[[Versions, Any], Table]]] = MappingProxyType(
    {DeviceGrant: ("device_grants", DeviceGrantTable)}
)


class Beside:
    """The objects of ``KINDS``. ``grants`` has what decisions in flight are about to change about them."""

    def __init__(self, versions: Versions, grants: Grants) -> None:
        self._versions, self._grants = versions, grants
        self._objs: dict[type[object], dict[str, Any]] = {kind: {} for kind in KINDS}
        self._stale: dict[type[object], None] = {}  # a dict and not a set, for its order
        self._backed: Collection[str] | None = None
        #: True if devices or their classes have changed since it was last set to False.
        self.devices_changed = False

    def seen(self, obj: Object) -> None:
        """Take in a new or changed object."""
        kind, key = type(obj), key_of(obj)
        # Reflectors list all objects again from time to time. Equal ones must not give a table a new version.
        if self._objs[kind].get(key) != obj:
            self._objs[kind][key] = obj
            self._mark_stale(kind)

    def gone(self, kind: type[Object], key: str) -> None:
        """Remove an object that was deleted."""
        if self._objs[kind].pop(key, None) is not None:
            self._mark_stale(kind)

    def _mark_stale(self, kind: type[object]) -> None:
        if kind is DeviceClass or kind is ResourceSlice:
            self._backed, self.devices_changed = None, True
        # Templates are rows of the table of claims (``_as_claim``).
        self._stale[ResourceClaim if kind is ResourceClaimTemplate else kind] = None

    @property
    def offers_gpus(self) -> bool:
        """True if GPUs can be claimed. GPUs are counted then, even if no node has them as a resource."""
        return any(is_gpu(each.driver) for each in self._objs[ResourceSlice].values())

    @property
    def backed(self) -> Collection[str]:
        """The extended resources that a device class backs."""
        if self._backed is None:
            self._backed = backing_classes(self._objs[DeviceClass].values()).keys()
        return self._backed

    def by_devices(self, nodes: Iterable[Node], resources: Collection[str]) -> Amounts:
        """Return how much of these resources nodes offer by devices."""
        if not self._objs[DeviceClass]:
            return {}
        slices, classes = self._objs[ResourceSlice].values(), self._objs[DeviceClass].values()
        return amounts_by_devices(nodes, slices, classes, resources)

    def objects(self) -> dict[str, list[Object]]:
        """Return the objects by the name of their table, and templates as ``claim_templates``."""
        found: dict[str, list[Object]] = {name: list(self._objs[kind].values()) for kind, (name, _) in _TABLES.items()}
        return {**found, "claim_templates": list(self._objs[ResourceClaimTemplate].values())}

    def refresh(self, tables: Tables) -> None:
        """Replace the tables of the kinds in which something changed."""
        # Whole tables, since these kinds have few objects and change seldom. Rows of their own would need a keeper for
        # each.
        for kind in {**self._stale, **self._grants.stale}:
            name, make = _TABLES.get(kind) or _DECIDED[kind]
            setattr(tables, name, make(self._versions, self._grants.over(kind, self._observed(kind))))
        self._stale, self._grants.stale = {}, {}

    def _observed(self, kind: type[object]) -> Mapping[str, Any]:
        """Return the rows of a kind's table without what decisions in flight change."""
        if kind is not ResourceClaim:
            return self._objs.get(kind, {})
        templates = map(_as_claim, self._objs[ResourceClaimTemplate].values())
        return {**self._objs[ResourceClaim], **{each.key: each for each in templates}}


def _as_claim(template: ResourceClaimTemplate) -> ResourceClaim:
    """Return a template as a claim, under the name by which pods refer to claims that are made from it."""
    return ResourceClaim(
        template.namespace,
        f"template/{template.name}",
        template.requests,
        template.same,
        template.labels,
        unknown=template.unknown,
    )
