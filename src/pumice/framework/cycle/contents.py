"""What there is in a cluster, as rows: where a plugin that opens begins to look."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from pumice.columns.counting import HELD, RELEASING
from pumice.columns.dtypes import F64, AnyArray
from pumice.columns.job_rows import JobRows
from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.tables import Tables
from pumice.columns.views import Queue
from pumice.framework.plugin.errors import PluginError
from pumice.framework.plugin.policy_file import Policy
from pumice.model.usage import UsageWindow


class Contents:
    """Nodes, queues, jobs and tasks of ``tables``. What is listed is as it is at the moment at which it is asked."""

    now: float
    policy: Policy
    tables: Tables

    @property
    def nodes(self) -> NodeRows:
        """All nodes, in order: row 0 first."""
        return NodeRows(self.tables, np.arange(len(self.tables.nodes.facts)), whole=True)

    @property
    def queues(self) -> list[Queue]:
        """All queues, in order: row 0 first."""
        return [Queue(self.tables, row) for row in range(len(self.tables.queues.names))]

    @property
    def jobs(self) -> JobRows:
        """All jobs with a pod group and a queue that exists."""
        return JobRows(self.tables, self.live_jobs)

    @property
    def tasks(self) -> TaskRows:
        """All tasks, those that have ended and those without a job too."""
        return TaskRows(self.tables, self.tables.tasks.alive.nonzero()[0])

    @property
    def running(self) -> TaskRows:
        """The tasks that hold a place on a node now: allocated, binding, bound or running. Those that leave are not
        among them."""
        tasks = self.tables.tasks
        return TaskRows(self.tables, (tasks.alive & (HELD[tasks.status] > 0)).nonzero()[0])

    def usage(self, window: UsageWindow) -> dict[str, F64]:
        """What pods used over a window until ``now``, by the value of the window's label (empty for pods without it):
        what they asked for times the seconds that they ran, (R,). Pods that run count up to now. Pods that ended count
        up to their end, if they ended while the scheduler was up or still exist. The window moves on in steps of a 24th
        of its length. Raises: PluginError unless the plugin's ``keeps_usage`` gives the window."""
        if window not in self.policy.usage_windows:
            raise PluginError(f"usage of {window!r:.200} is not kept: no keeps_usage gives this window")
        tasks, begins = self.tables.tasks, window.begins(self.now)
        there = tasks.alive & ((HELD[tasks.status] > 0) | (tasks.status == RELEASING))
        on_nodes = TaskRows(self.tables, there.nonzero()[0])
        starts = [self.now if pod.start_time is None else pod.start_time for pod in on_nodes.pods]
        seconds = np.maximum(self.now - np.maximum(starts, begins), 0.0)
        used = self.tables.label_usages.used(window, self.now)
        for value, amounts in on_nodes.label(window.label).sums(seconds[:, None] * on_nodes.req).items():
            used[value] = used[value] + amounts if value in used else amounts
        return used

    def resource(self, name: str) -> int | None:
        """The place of a resource (``nvidia.com/gpu``) along R, None where no node has and no queue names it."""
        return self.tables.axis.column.get(name)

    @cached_property
    def live_jobs(self) -> AnyArray:
        """Rows of the jobs with a pod group and a queue that exists."""
        return self.tables.jobs.live
