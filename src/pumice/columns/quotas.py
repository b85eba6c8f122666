"""Resource quotas of namespaces as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pumice.columns.column import Versions
from pumice.columns.table import Table, objects
from pumice.model.queue import ResourceQuota


class QuotaTable(Table):
    """One row each, by namespace and name; made anew when a quota comes, goes or changes."""

    objs: Sequence[ResourceQuota] = objects()

    def __init__(self, versions: Versions, quotas: Iterable[ResourceQuota] = ()) -> None:
        super().__init__(versions, stamped=False)
        in_order = sorted(quotas, key=lambda quota: (quota.namespace, quota.name))
        self._resize(len(in_order))
        for row, quota in enumerate(in_order):
            self.write(row, alive=True, objs=quota)
