"""Objects that change seldom, as tables: one row each, by namespace and name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pumice.columns.column import Versions
from pumice.columns.table import Table, objects
from pumice.model.devices.claims import DeviceClass, ResourceClaim, ResourceSlice
from pumice.model.devices.numa import Numatopology
from pumice.model.devices.shared_devices import DeviceGrant
from pumice.model.disruption import PodDisruptionBudget
from pumice.model.queue import ResourceQuota
from pumice.model.topology import Topology
from pumice.model.volumes import CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass


class StandingTable(Table):
    """Made anew when an object comes, goes or changes: what rests on its ``version`` rests on all of them."""

    objs: Sequence[Any] = objects()

    def __init__(self, versions: Versions, values: Iterable[Any] = ()) -> None:
        super().__init__(versions, stamped=False)
        in_order = sorted(values, key=lambda value: (getattr(value, "namespace", ""), value.name))
        self._resize(len(in_order))
        if in_order:
            self.write(slice(None), alive=True, objs=np.fromiter(in_order, np.object_, len(in_order)))

    def __len__(self) -> int:
        return len(self.objs)

    @property
    def version(self) -> int:
        """Equal versions mean equal objects."""
        return self["objs"].version


class BudgetTable(StandingTable):
    """Disruption budgets."""

    objs: Sequence[PodDisruptionBudget] = objects()


class TopologyTable(StandingTable):
    """Topologies (levels of node labels)."""

    objs: Sequence[Topology] = objects()


class QuotaTable(StandingTable):
    """Resource quotas of namespaces."""

    objs: Sequence[ResourceQuota] = objects()


class NumaTable(StandingTable):
    """What agents say of the CPUs of nodes."""

    objs: Sequence[Numatopology] = objects()


class ClaimTable(StandingTable):
    """Claims of devices. A template is there as the claim ``template/<name>``, which is how pods name it."""

    objs: Sequence[ResourceClaim] = objects()
    _by_key = None

    @property
    def by_key(self) -> Mapping[str, ResourceClaim]:
        """By ``namespace/name``."""
        if self._by_key is None:
            self._by_key = {claim.key: claim for claim in self.objs}
        return self._by_key


class SliceTable(StandingTable):
    """Slices of devices that drivers offer."""

    objs: Sequence[ResourceSlice] = objects()


class VolumeTable(StandingTable):
    """PersistentVolumes."""

    objs: Sequence[PersistentVolume] = objects()


class VolumeClaimTable(StandingTable):
    """PersistentVolumeClaims."""

    objs: Sequence[PersistentVolumeClaim] = objects()


class StorageClassTable(StandingTable):
    """Storage classes."""

    objs: Sequence[StorageClass] = objects()


class CsiNodeTable(StandingTable):
    """How many volumes nodes take."""

    objs: Sequence[CSINode] = objects()


class StorageCapacityTable(StandingTable):
    """What storage classes have left."""

    objs: Sequence[CSIStorageCapacity] = objects()


class DeviceClassTable(StandingTable):
    """Classes of devices."""

    objs: Sequence[DeviceClass] = objects()


class DeviceGrantTable(StandingTable):
    """What pods got of shared devices and do not say yet, by pod."""

    objs: Sequence[DeviceGrant] = objects()
