"""Limit the GPUs that each user has at a time. Pods name their user in a label."""

from __future__ import annotations

import numpy as np

from pumice.api import Queue, Session, Task, TaskRun, Unfit, plugin, points


@plugin("gpu-quota-by-user")
class GpuQuotaByUser:
    """Let no user hold more than `gpus` GPUs, over all queues. Pods without the label have no limit."""

    def __init__(self, ssn: Session, *, label: str = "example.com/user", gpus: float = 8.0) -> None:
        self.ssn = ssn
        self.limit = 1000 * gpus  # amounts of GPUs are in thousandths
        self.gpu = ssn.resource("nvidia.com/gpu")  # None if no node has GPUs
        users = ssn.tasks.label(label)
        self.users = users.values
        self.user = ssn.tasks.scatter(users.codes)  # of each task, by its row
        running = ssn.running
        held = np.zeros(len(self.users))
        if self.gpu is not None:
            np.add.at(held, self.user[running.rows], running.req[:, self.gpu])
        self.held = ssn.column("gpu-quota-by-user.held", values=held)

    @points.allocatable
    def allocatable(self, queue: Queue, task: Task) -> bool | Unfit:
        user = self.users[self.user[task]]
        if self.gpu is None or not user or not task.req[self.gpu]:
            return True
        held = self.held.array[self.user[task]]
        if held + task.req[self.gpu] <= self.limit:
            return True
        return Unfit(f"user {user} has {held / 1000:g} of {self.limit / 1000:g} GPUs")

    @points.on_allocate
    def on_allocate(self, run: TaskRun) -> None:
        self._add(run, 1)

    @points.on_deallocate
    def on_deallocate(self, run: TaskRun) -> None:
        self._add(run, -1)

    def _add(self, run: TaskRun, sign: int) -> None:
        if self.gpu is not None:
            users, place = np.unique(self.user[run.rows], return_inverse=True)
            gpus = np.bincount(place, weights=run.tasks.req[:, self.gpu])
            self.ssn.journal.add(self.held, users, sign * gpus)
