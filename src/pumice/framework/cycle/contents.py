"""What there is in a cluster, as rows: where a plugin that opens begins to look."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from pumice.columns.counting import HELD
from pumice.columns.dtypes import AnyArray
from pumice.columns.job_rows import JobRows
from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.tables import Tables
from pumice.columns.views import Queue


class Contents:
    """Nodes, queues, jobs and tasks of ``tables``. What is listed is as it is at the moment at which it is asked."""

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

    def resource(self, name: str) -> int | None:
        """The place of a resource (``nvidia.com/gpu``) along R, None where no node has and no queue names it."""
        return self.tables.axis.column.get(name)

    @cached_property
    def live_jobs(self) -> AnyArray:
        """Rows of the jobs with a pod group and a queue that exists."""
        return self.tables.jobs.live
