"""API objects that change seldom, as tables with one row each, in the order (namespace, name)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pumice.columns.column import Versions
from pumice.columns.table import Table, objects
from pumice.model.devices.claims import DeviceClass, ResourceClaim, ResourceSlice
from pumice.model.devices.numa import NodeResourceTopology, Numatopology
from pumice.model.devices.shared_devices import DeviceGrant
from pumice.model.disruption import PodDisruptionBudget
from pumice.model.queue import ResourceQuota
from pumice.model.topology import Topology
from pumice.model.volumes import CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass


class ObjectTable(Table):
    """A table of objects that is replaced as a whole when one of them changes."""

    # One version for all objects: they change so seldom that stamps for single rows would save nothing.
    objs: Sequence[Any] = objects()

    def __init__(self, versions: Versions, values: Iterable[Any] = ()) -> None:
        super().__init__(versions, stamped=False)
        # By name, because the order of events differs between a live cluster and its simulation, and decisions must
        # not.
        in_order = sorted(values, key=lambda value: (getattr(value, "namespace", ""), value.name))
        self._resize(len(in_order))
        if in_order:
            # ``fromiter``, because ``np.array`` looks into each object for a sequence.
            self.write(slice(None), alive=True, objs=np.fromiter(in_order, np.object_, len(in_order)))

    def __len__(self) -> int:
        return len(self.objs)

    @property
    def version(self) -> int:
        """The version of all objects."""
        return self["objs"].version


class BudgetTable(ObjectTable):
    """PodDisruptionBudgets."""

    objs: Sequence[PodDisruptionBudget] = objects()


class TopologyTable(ObjectTable):
    """Topologies: levels, each a node label."""

    objs: Sequence[Topology] = objects()


class QuotaTable(ObjectTable):
    """ResourceQuotas of namespaces."""

    objs: Sequence[ResourceQuota] = objects()


class NumaTable(ObjectTable):
    """Numatopologies: the CPUs of nodes, as agents report them."""

    objs: Sequence[Numatopology] = objects()


class ZoneTable(ObjectTable):
    """NodeResourceTopologies: the NUMA zones of nodes."""

    objs: Sequence[NodeResourceTopology] = objects()


class ClaimTable(ObjectTable):
    """ResourceClaims. A template is in it as the claim ``template/<name>``, by which pods refer to it."""

    objs: Sequence[ResourceClaim] = objects()
    # A value, so it is made once: the table is replaced when a claim changes.
    _by_key = None

    @property
    def by_key(self) -> Mapping[str, ResourceClaim]:
        """The claims by ``namespace/name``."""
        if self._by_key is None:
            self._by_key = {claim.key: claim for claim in self.objs}
        return self._by_key


class SliceTable(ObjectTable):
    """ResourceSlices: devices that drivers offer."""

    objs: Sequence[ResourceSlice] = objects()


class VolumeTable(ObjectTable):
    """PersistentVolumes."""

    objs: Sequence[PersistentVolume] = objects()


class VolumeClaimTable(ObjectTable):
    """PersistentVolumeClaims."""

    objs: Sequence[PersistentVolumeClaim] = objects()


class StorageClassTable(ObjectTable):
    """StorageClasses."""

    objs: Sequence[StorageClass] = objects()


class CsiNodeTable(ObjectTable):
    """CSINodes: how many volumes each node can attach."""

    objs: Sequence[CSINode] = objects()


class StorageCapacityTable(ObjectTable):
    """CSIStorageCapacities: how much room each storage class has left."""

    objs: Sequence[CSIStorageCapacity] = objects()


class DeviceClassTable(ObjectTable):
    """DeviceClasses."""

    objs: Sequence[DeviceClass] = objects()


class DeviceGrantTable(ObjectTable):
    """Shared devices that were given to pods and are not in the pods' annotations yet."""

    objs: Sequence[DeviceGrant] = objects()
