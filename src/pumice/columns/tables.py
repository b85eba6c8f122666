"""All columns of one cluster, together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from types import MappingProxyType
from typing import Any, get_type_hints

from pumice.columns.classes import ClassTable
from pumice.columns.column import Versions
from pumice.columns.dtypes import ResourceAxis
from pumice.columns.groups import SubJobTable
from pumice.columns.jobs import JobTable
from pumice.columns.nodes import NodeTable
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
from pumice.columns.objects.usages import HistoryTable, LabelUsageTable, UsageTable
from pumice.columns.queues import QueueStatusTable, QueueTable
from pumice.columns.table import Table
from pumice.columns.tasks import TaskTable
from pumice.columns.topology.hypernodes import HyperNodeTree, build_tree


@dataclass(slots=True, eq=False)
class Tables:
    """The cluster as columns.

    Two values (``freeze``) have the same table object if nothing was written to it in between, and the same objects
    for all tables if ``version`` is equal.
    """

    versions: Versions
    axis: ResourceAxis
    # The tables, without other fields in between: ``NAMES`` is made from these lines, and ``_with`` relies on the
    # order.
    nodes: NodeTable
    tasks: TaskTable
    jobs: JobTable
    subs: SubJobTable
    queues: QueueTable
    queue_statuses: QueueStatusTable
    classes: ClassTable
    budgets: BudgetTable
    topologies: TopologyTable
    quotas: QuotaTable
    usages: UsageTable
    histories: HistoryTable
    label_usages: LabelUsageTable
    numas: NumaTable
    zones: ZoneTable
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
    version: int = 0

    @classmethod
    def empty(cls, versions: Versions, axis: ResourceAxis) -> Tables:
        """Return the tables of an empty cluster."""
        made: dict[str, Any] = {name: table.empty(versions, axis) for name, table in _TYPES.items()}
        return cls(versions, axis, **made, tree=build_tree((), (), (), versions.next()))

    def freeze(self) -> Tables:
        """Return the cluster as it is now, as a value."""
        for table in _ALL(self):
            if table.value is None:
                table.freeze()
                self.version = self.versions.next()
        # The tree is no table: the store replaces it and gives it a version of the same, increasing source.
        self.version = max(self.version, self.tree.version)
        return self._with(_VALUES(self), self.version)

    def fork(self) -> Tables:
        """Return tables for a session to write to. Tables that sessions do not write to are shared."""
        return self._with([table.fork() if table.IS_WRITTEN_ON else table for table in _ALL(self)])

    def _with(self, tables: Iterable[Any], version: int = 0) -> Tables:
        # Positional, in the order of the fields: keywords take twice as long, and each cycle makes two of these.
        parts: list[Any] = [self.versions, self.axis, *tables, self.tree, version]
        return Tables(*parts)


_TYPES: Mapping[str, type[Table]] = MappingProxyType(
    {name: kind for name, kind in get_type_hints(Tables).items() if isinstance(kind, type) and issubclass(kind, Table)}
)
#: The names of all tables, in the order of the fields.
NAMES = tuple(_TYPES)
# One call in C for all tables, instead of a getattr for each in every cycle.
_ALL: Callable[[Tables], tuple[Any, ...]] = attrgetter(*NAMES)
_VALUES: Callable[[Tables], tuple[Any, ...]] = attrgetter(*(f"{name}.value" for name in NAMES))
