"""Objects that have a table of their own beside the books: it is made anew when one of them comes, goes or changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pumice.columns.budgets import BudgetTable
from pumice.columns.column import Versions
from pumice.columns.numas import NumaTable
from pumice.columns.quotas import QuotaTable
from pumice.columns.table import Table
from pumice.columns.tables import Tables
from pumice.columns.topologies import TopologyTable
from pumice.columns.usages import UsageTable
from pumice.model.disruption import PodDisruptionBudget
from pumice.model.events import Object
from pumice.model.numa import Numatopology
from pumice.model.queue import ResourceQuota
from pumice.model.topology import Topology
from pumice.model.usage import NodeUsage

#: By kind: the name of its table, and what makes it of the objects.
KINDS: Mapping[type[Object], tuple[str, Callable[[Versions, Any], Table]]] = MappingProxyType(
    {
        PodDisruptionBudget: ("budgets", BudgetTable),
        ResourceQuota: ("quotas", QuotaTable),
        Topology: ("topologies", TopologyTable),
        NodeUsage: ("usages", UsageTable),
        Numatopology: ("numas", NumaTable),
    }
)


class Beside:
    """The objects of ``KINDS``, by key in each."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._objs: dict[type[Object], dict[str, Object]] = {kind: {} for kind in KINDS}
        self._stale: dict[type[Object], None] = {}

    def seen(self, obj: Object) -> None:
        """The object is there, new or changed."""
        kind = type(obj)
        known, key = self._objs[kind], obj.name if isinstance(obj, Topology | NodeUsage | Numatopology) else obj.key  # type: ignore[union-attr]
        if known.get(key) != obj:
            known[key] = obj
            self._stale[kind] = None

    def gone(self, kind: type[Object], key: str) -> None:
        """The object of this kind is not there any more."""
        if self._objs[kind].pop(key, None) is not None:
            self._stale[kind] = None

    def objects(self) -> dict[str, list[Object]]:
        """By the name of the table."""
        return {name: list(self._objs[kind].values()) for kind, (name, _) in KINDS.items()}

    def refresh(self, tables: Tables) -> None:
        """Make the tables anew in which something has changed."""
        for kind in self._stale:
            name, make = KINDS[kind]
            setattr(tables, name, make(self._versions, self._objs[kind].values()))
        self._stale.clear()
