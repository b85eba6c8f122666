"""All columns of one cluster, together."""

from __future__ import annotations

from dataclasses import dataclass

from pumice.columns.classes import ClassTable
from pumice.columns.dtypes import ResourceAxis
from pumice.columns.hypernodes import HyperNodeTree
from pumice.columns.jobs import JobTable, SubJobTable
from pumice.columns.nodes import NodeTable
from pumice.columns.queues import QueueTable
from pumice.columns.roles import RoleNames
from pumice.columns.tasks import TaskTable


@dataclass(slots=True)
class Tables:
    """The cluster as columns."""

    axis: ResourceAxis
    nodes: NodeTable
    tasks: TaskTable
    jobs: JobTable
    subs: SubJobTable
    queues: QueueTable
    classes: ClassTable
    tree: HyperNodeTree
    roles: RoleNames

    def session_copy(self, *, to_write: bool = True) -> Tables:
        """The same cluster with moving columns of its own: what a session writes on. Not ``to_write``: nothing is
        copied, and a write is an error."""
        return Tables(
            self.axis,
            self.nodes.session_copy(to_write=to_write),
            self.tasks.session_copy(to_write=to_write),
            self.jobs.session_copy(to_write=to_write),
            self.subs.session_copy(to_write=to_write),
            self.queues,
            self.classes,
            self.tree,
            self.roles,
        )
