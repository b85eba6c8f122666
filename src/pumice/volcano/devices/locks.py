"""Lock nodes so that only one pod with shared cards at a time is on its way to a node.

The device plugin of a node cannot tell such pods apart otherwise. Source: Volcano deviceshare plugin with
``NodeLockEnable``. Volcano writes the lock when it places a pod in a session. Here the session only tracks it, and it
is written before the pod is bound (``kube/binding/node_locks``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pumice.columns.counting import HELD
from pumice.columns.dtypes import AnyArray, Bool
from pumice.columns.rows import NodeRows
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.filter_result import Unfit
from pumice.model.devices.node_locks import LOCKED, is_locked
from pumice.volcano.devices.cards import Family
from pumice.volcano.devices.ledger import CardLedger

LOCKED_NODE = Unfit(f"node {LOCKED}")


class NodeLocks:
    """Locks per node and device family. ``held`` (N, F): 1 if a pod of an earlier cycle or of this one holds the
    lock."""

    def __init__(self, ssn: Session, families: Sequence[Family], rows: AnyArray, ledger: CardLedger) -> None:
        self._journal, self._families = ssn.journal, families
        tables, tasks = ssn.tables, ssn.tables.tasks
        nodes = tables.nodes.facts.objs
        held = np.array([[is_locked(node.annotations, each.lock, ssn.now) for each in families] for node in nodes])
        values = held.reshape(len(nodes), len(families)).astype(np.int64)
        # Bindings that were sent and not confirmed yet: the lock may not be on the node object.
        for row in rows.tolist():
            node = int(tasks.node[row])
            if node >= 0 and HELD[tasks.status[row]] and not tasks.pods[row].node_name:
                values[node, ledger.families_of(int(tasks.cls[row]))] = 1
        self.held = ssn.column("deviceshare.locked", "node", len(families), values=values)

    def bars(self, nodes: NodeRows, families: list[int], further: Bool) -> Bool:
        """Return the nodes on which a pod with requests for these families must wait. ``further`` (rows,): nodes where
        another such pod is placed first. Shape (rows,)."""
        # A second pod of one gang must wait as well: the device plugin could not tell the two apart.
        held: Bool = nodes.read(self.held)[:, families].any(axis=1) | further
        return held

    def take(self, node: int, families: list[int]) -> bool:
        """Take the locks for a pod that is placed on a node. Return False if one is held."""
        # The journal keeps the old row for a rollback, so it must not be changed in place.
        held = self.held.array[node].copy()
        # All or none: a pod with cards of two families needs both device plugins to know it.
        if held[families].any():
            return False
        held[families] = 1
        self._journal.put(self.held, node, held)
        return True

    def names(self, families: list[int]) -> tuple[str, ...]:
        """Return the annotations of these locks."""
        return tuple(dict.fromkeys(self._families[each].lock for each in families))
