"""The contents of a cluster as rows, with which a plugin begins when it opens."""

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
    """Nodes, queues, jobs and tasks of ``tables``. Each property describes the present state."""

    now: float
    policy: Policy
    tables: Tables

    @property
    def nodes(self) -> NodeRows:
        """All nodes in the order of rows."""
        return NodeRows(self.tables, np.arange(len(self.tables.nodes.facts)), whole=True)

    @property
    def queues(self) -> list[Queue]:
        """All queues in the order of rows."""
        return [Queue(self.tables, row) for row in range(len(self.tables.queues.names))]

    @property
    def jobs(self) -> JobRows:
        """All jobs with a PodGroup and a queue that exists."""
        return JobRows(self.tables, self.live_jobs)

    @property
    def tasks(self) -> TaskRows:
        """All tasks, including those that have ended and those without a job."""
        return TaskRows(self.tables, self.tables.tasks.alive.nonzero()[0])

    @property
    def running(self) -> TaskRows:
        """The tasks that hold resources of a node: allocated, binding, bound or running. Without those that leave."""
        tasks = self.tables.tasks
        return TaskRows(self.tables, (tasks.alive & (HELD[tasks.status] > 0)).nonzero()[0])

    def usage(self, window: UsageWindow) -> dict[str, F64]:
        """Return what pods used over a window until ``now``: their requests times the seconds that they ran. Values are
        (R,).

        Keys are the values of the window's label, "" for pods without it. Running pods count up to now; pods that have
        ended count up to their end, if they ended while the scheduler was running or still exist. The window moves in
        steps of a 24th of its length. Raises: PluginError unless the plugin's ``keeps_usage`` contains the window.
        """
        # Usage is only collected for windows that a plugin has asked for, so any other window would silently be empty.
        if window not in self.policy.usage_windows:
            raise PluginError(
                f"usage of {window!r:.200} is not kept: wanted a static method keeps_usage that returns this window"
            )
        tasks, begins = self.tables.tasks, window.begins(self.now)
        # Releasing pods still use their node, although placements already count their room as free soon.
        there = tasks.alive & ((HELD[tasks.status] > 0) | (tasks.status == RELEASING))
        on_nodes = TaskRows(self.tables, there.nonzero()[0])
        # A pod that has not started yet has used nothing so far.
        starts = [self.now if pod.start_time is None else pod.start_time for pod in on_nodes.pods]
        # A start in the future, by a clock that is wrong, counts as 0 seconds.
        seconds = np.maximum(self.now - np.maximum(starts, begins), 0.0)
        used = self.tables.label_usages.used(window, self.now)
        for value, amounts in on_nodes.label(window.label).sums(seconds[:, None] * on_nodes.req).items():
            used[value] = used[value] + amounts if value in used else amounts
        return used

    def resource(self, name: str) -> int | None:
        """Return the index of a resource (``nvidia.com/gpu``) along R, or None if no node has it and no queue names
        it."""
        return self.tables.axis.column.get(name)

    @cached_property
    def live_jobs(self) -> AnyArray:
        """Rows of the jobs with a PodGroup and a queue that exists."""
        return self.tables.jobs.live
