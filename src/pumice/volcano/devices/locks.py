"""Locks on nodes: one pod with shared cards at a time is on its way to a node, for its device plugin tells pods apart
by nothing else.

Source: Volcano deviceshare with ``NodeLockEnable`` (spec 04 §24). Volcano writes the lock as it places a pod in a
session; here the session knows who holds one, and it is written before the pod is bound (``kube/binding/node_locks``).
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
    """``held`` (N, F): whether a node's lock of a family of devices is held, by a pod of an earlier cycle or of this
    one."""

    def __init__(self, ssn: Session, families: Sequence[Family], rows: AnyArray, ledger: CardLedger) -> None:
        self._journal, self._families = ssn.journal, families
        tables, tasks = ssn.tables, ssn.tables.tasks
        nodes = tables.nodes.facts.objs
        held = np.array([[is_locked(node.annotations, each.lock, ssn.now) for each in families] for node in nodes])
        values = held.reshape(len(nodes), len(families)).astype(np.int64)
        for row in rows.tolist():  # what was sent, and is not heard of yet
            node = int(tasks.node[row])
            if node >= 0 and HELD[tasks.status[row]] and not tasks.pods[row].node_name:
                values[node, ledger.families_of(int(tasks.cls[row]))] = 1
        self.held = ssn.column("deviceshare.locked", "node", len(families), values=values)

    def bars(self, nodes: NodeRows, families: list[int], further: Bool) -> Bool:
        """Nodes that a pod that asks for these families must wait for; ``further`` (rows,): where another such pod goes
        first. Shape (rows,)."""
        held: Bool = nodes.read(self.held)[:, families].any(axis=1) | further
        return held

    def take(self, node: int, families: list[int]) -> bool:
        """A pod is placed on a node now. Whether the locks could be taken."""
        held = self.held.array[node].copy()
        if held[families].any():
            return False
        held[families] = 1
        self._journal.put(self.held, node, held)
        return True

    def names(self, families: list[int]) -> tuple[str, ...]:
        """The annotations that say so."""
        return tuple(dict.fromkeys(self._families[each].lock for each in families))
