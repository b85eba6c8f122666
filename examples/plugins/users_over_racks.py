"""Spread the pods of each user over racks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pumice.api import F64, AnyArray, NodeRows, Session, Task, TaskRun, plugin, points


@plugin("users-over-racks")
class UsersOverRacks:
    """A node scores 100 if no pod of the task's user is in its rack, 50 with one, 33 with two, and so on."""

    def __init__(self, ssn: Session, *, user: str = "example.com/user", rack: str = "example.com/rack") -> None:
        self.ssn = ssn
        racks, users, running = ssn.nodes.label(rack), ssn.tasks.label(user), ssn.running
        self.rack = racks.codes  # of each node, by its row
        self.user = ssn.tasks.scatter(users.codes)  # of each task, by its row
        self.racks = len(racks.values)
        count = np.zeros(len(users.values) * self.racks)
        np.add.at(count, self._cell(running.rows, running.node), 1.0)
        self.count = ssn.column("users-over-racks.count", values=count)

    @points.node_order
    def node_order(self, task: Task, nodes: NodeRows) -> F64:
        of_rack = self.count.array[self.user[task] * self.racks + nodes.pick(self.rack)]
        return 100 / (1 + of_rack)

    @points.on_allocate
    def on_allocate(self, run: TaskRun) -> None:
        self._add(run, 1)

    @points.on_deallocate
    def on_deallocate(self, run: TaskRun) -> None:
        self._add(run, -1)

    def _add(self, run: TaskRun, sign: int) -> None:
        cells, counts = np.unique(self._cell(run.rows, run.nodes), return_counts=True)
        self.ssn.journal.add(self.count, cells, sign * counts.astype(float))

    def _cell(self, tasks: AnyArray | Sequence[int], nodes: AnyArray | Sequence[int]) -> AnyArray:
        """The rows of the column for some tasks on some nodes: users one after the other, each with all racks."""
        cells: AnyArray = self.user[tasks] * self.racks + self.rack[nodes]
        return cells
