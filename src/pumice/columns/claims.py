"""Claims of devices as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pumice.columns.column import Versions
from pumice.columns.table import Table, objects
from pumice.model.claims import ResourceClaim


class ClaimTable(Table):
    """One row each, by namespace and name; made anew when a claim comes, goes or changes. A template is there as the
    claim ``template/<name>``, which is how pods name it."""

    objs: Sequence[ResourceClaim] = objects()

    def __init__(self, versions: Versions, claims: Iterable[ResourceClaim] = ()) -> None:
        super().__init__(versions, stamped=False)
        in_order = sorted(claims, key=lambda claim: (claim.namespace, claim.name))
        self._resize(len(in_order))
        for row, claim in enumerate(in_order):
            self.write(row, alive=True, objs=claim)
