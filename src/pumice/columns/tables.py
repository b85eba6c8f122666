"""All columns of one cluster, together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pumice.columns.classes import ClassTable
from pumice.columns.column import Versions
from pumice.columns.dtypes import ResourceAxis
from pumice.columns.groups import SubJobTable
from pumice.columns.hypernodes import HyperNodeTree, build_tree
from pumice.columns.jobs import JobTable
from pumice.columns.nodes import NodeFacts, NodeTable
from pumice.columns.queues import QueueTable
from pumice.columns.standing import (
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
from pumice.columns.tasks import TaskTable
from pumice.columns.usages import HistoryTable, UsageTable

#: The tables by name, in the order in which one speaks of them.
NAMES = (
    *("nodes", "tasks", "jobs", "subs", "queues", "classes"),
    *("budgets", "topologies", "quotas", "usages", "histories", "numas", "claims", "slices", "device_classes"),
    *("volumes", "volume_claims", "storage_classes", "csi_nodes", "storage_capacities", "device_grants"),
)


@dataclass(slots=True, eq=False)
class Tables:
    """The cluster as columns. Frozen ones are the same object as long as nothing has changed."""

    versions: Versions
    axis: ResourceAxis
    nodes: NodeTable
    tasks: TaskTable
    jobs: JobTable
    subs: SubJobTable
    queues: QueueTable
    classes: ClassTable
    budgets: BudgetTable
    topologies: TopologyTable
    quotas: QuotaTable
    usages: UsageTable
    histories: HistoryTable
    numas: NumaTable
    claims: ClaimTable
    slices: SliceTable
    device_classes: DeviceClassTable
    volumes: VolumeTable
    volume_claims: VolumeClaimTable
    storage_classes: StorageClassTable
    csi_nodes: CsiNodeTable
    storage_capacities: StorageCapacityTable
    device_grants: DeviceGrantTable
    tree: HyperNodeTree
    _frozen: Tables | None = field(default=None, init=False)

    @classmethod
    def empty(cls, versions: Versions, axis: ResourceAxis) -> Tables:
        """A cluster of nothing."""
        return cls(
            versions,
            axis,
            NodeTable(versions, NodeFacts(versions, (), axis)),
            TaskTable(versions),
            JobTable(versions, axis),
            SubJobTable(versions),
            QueueTable(versions, (), axis),
            ClassTable(versions, axis),
            BudgetTable(versions),
            TopologyTable(versions),
            QuotaTable(versions),
            UsageTable(versions),
            HistoryTable(versions),
            NumaTable(versions),
            ClaimTable(versions),
            SliceTable(versions),
            DeviceClassTable(versions),
            VolumeTable(versions),
            VolumeClaimTable(versions),
            StorageClassTable(versions),
            CsiNodeTable(versions),
            StorageCapacityTable(versions),
            DeviceGrantTable(versions),
            build_tree((), (), (), versions.next()),
        )

    def freeze(self) -> Tables:
        """The cluster as it is now, as a value."""
        parts: dict[str, Any] = {name: getattr(self, name).freeze() for name in NAMES}
        last = self._frozen
        if last is None or last.tree is not self.tree or any(getattr(last, name) is not parts[name] for name in NAMES):
            last = self._frozen = Tables(self.versions, self.axis, tree=self.tree, **parts)
        return last

    def fork(self) -> Tables:
        """The same cluster with moving columns of its own: what a session writes on."""
        return Tables(
            self.versions,
            self.axis,
            self.nodes.fork(),
            self.tasks.fork(),
            self.jobs.fork(),
            self.subs.fork(),
            self.queues.fork(),
            self.classes,
            self.budgets,
            self.topologies,
            self.quotas,
            self.usages,
            self.histories,
            self.numas,
            self.claims,
            self.slices,
            self.device_classes,
            self.volumes,
            self.volume_claims,
            self.storage_classes,
            self.csi_nodes,
            self.storage_capacities,
            self.device_grants,
            self.tree,
        )
