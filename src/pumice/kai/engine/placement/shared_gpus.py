"""Place tasks that share GPUs: on the best node with devices for them, and on the best devices there. Source: KAI
gpu_sharing."""

from __future__ import annotations

from functools import partial
from math import isfinite

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.counting import RELEASING
from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.gpus.devices import Choice, DeviceLedger, charge_of_memory
from pumice.columns.views import Node, Queue, Task
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.kai.engine.groups import Subset
from pumice.kai.engine.placement.best_nodes import BestNodes
from pumice.kai.engine.points import device_order, may_take
from pumice.model.blockers import PLACEMENT, Blocker, NoRoom, Refused
from pumice.model.devices.gpu import GPU_RESOURCE, GpuShare


class SharedGpus:
    """Place tasks of one session on devices that its ledger counts."""

    def __init__(self, ssn: Session, devices: DeviceLedger, best: BestNodes) -> None:
        self._ssn, self._devices, self._best = ssn, devices, best

    def share_of(self, cls: int) -> GpuShare | None:
        """Return the share of GPUs that tasks of a class ask for, or None."""
        return self._devices.share_of(cls)

    def place(self, stmt: Statement, row: int, share: GpuShare, within: Subset, *, virtual: bool) -> Blocker | None:
        """Place a task. Return why it found no devices, or None if it is placed."""
        best = self._best
        fit = best.feasible.of(int(self._ssn.tables.tasks.cls[row]))
        room = self._devices_for(share) >= share.devices
        found = best.scores(row, fit, within, room & self._within_quota(row, share))
        if found is None:
            return NoRoom()
        scores = found.by_node
        while isfinite(scores[node := best.best(scores)]):
            choice = self._devices.choose(node, share, partial(self._order_of, row, node))
            if choice is not None:
                return self._put(stmt, row, node, choice, at_once=not virtual and bool(fit.idle_fits[node]))
            # Counts are an upper bound: a node may have room on devices that cannot be combined. Then the next node is
            # tried.
            scores[node] = -np.inf
        return best.no_node(row, found, scores[node])

    def _devices_for(self, share: GpuShare) -> AnyArray:
        """Return on how many devices of each node a share has room. Shape (N,). Read-only."""
        nodes = self._ssn.tables.nodes
        assert nodes.stamps is not None
        return self._ssn.memo.by_row(
            ("devices for", share),
            (nodes.facts.version,),
            nodes.stamps,
            lambda rows: self._devices.count(share, rows, soon=True),
        )

    def _order_of(self, row: int, node: int, used: F64) -> F64:
        """Return a score per device, given the used part of each. Shape (devices,)."""
        tables = self._ssn.tables
        answers = self._ssn.ask(device_order, Task(tables, row), Node(tables, node), used)
        found: F64 = np.sum(answers or [0 * used], axis=0)
        return found

    def _put(self, stmt: Statement, row: int, node: int, choice: Choice, *, at_once: bool) -> Blocker | None:
        """Place a task on devices of a node. Return why a plugin refuses, or None."""
        tasks, devices = self._ssn.tables.tasks, self._devices
        if tasks.status[row] != RELEASING:
            devices.assign(row, node, choice.slots)
            refusal = (stmt.allocate if at_once and choice.at_once else stmt.pipeline)([row], [node])
            return Refused(PLACEMENT, refusal.reason) if refusal is not None else None
        if tasks.node[row] == node and devices.may_stay(row, choice):
            stmt.stay([row])
        else:
            devices.reassign(row, node, choice.slots)
            stmt.promise_another([row], [node])
        return None

    def _within_quota(self, row: int, share: GpuShare) -> Bool:
        """Return the nodes on which the queue of a task may take the part of a GPU that its memory request amounts to.
        Shape (N,).

        Source: KAI, which asks again for every node.
        """
        ssn, tables, mib_of = self._ssn, self._ssn.tables, self._devices.mib
        found = np.ones(len(mib_of), dtype=bool)
        if share.memory_mib:
            job = int(tables.tasks.job[row])
            queue, preemptible = Queue(tables, int(tables.jobs.queue[job])), bool(tables.jobs.preemptible[job])
            # The charge depends on the GPU memory of the node only, so plugins are asked once per size.
            for mib in distinct(mib_of).tolist():
                amount = tables.classes.charge[tables.tasks.cls[row]].copy()
                amount[tables.axis.column[GPU_RESOURCE]] += share.devices * charge_of_memory(share.memory_mib, mib)
                found[mib_of == mib] = not ssn.ask(may_take, queue, amount, preemptible)
        return found
