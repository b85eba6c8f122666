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

    def session_copy(self) -> Tables:
        """The same cluster with moving columns of its own: what a session writes on."""
        return Tables(
            self.axis,
            self.nodes.copy(),
            self.tasks.session_copy(),
            self.jobs.session_copy(),
            self.subs.session_copy(),
            self.queues,
            self.classes,
            self.tree,
            self.roles,
        )
