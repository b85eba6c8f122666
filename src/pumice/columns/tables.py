"""All columns of one cluster, together."""

from __future__ import annotations

from dataclasses import dataclass

from pumice.columns.classes import ClassTable
from pumice.columns.column import Versions
from pumice.columns.dtypes import ResourceAxis
from pumice.columns.groups import SubJobTable
from pumice.columns.hypernodes import HyperNodeTree, build_tree
from pumice.columns.jobs import JobTable
from pumice.columns.nodes import NodeFacts, NodeTable
from pumice.columns.queues import QueueTable
from pumice.columns.tasks import TaskTable

#: The tables by name, in the order in which one speaks of them.
NAMES = ("nodes", "tasks", "jobs", "subs", "queues", "classes")


@dataclass(slots=True)
class Tables:
    """The cluster as columns."""

    versions: Versions
    axis: ResourceAxis
    nodes: NodeTable
    tasks: TaskTable
    jobs: JobTable
    subs: SubJobTable
    queues: QueueTable
    classes: ClassTable
    tree: HyperNodeTree

    @classmethod
    def empty(cls, versions: Versions, axis: ResourceAxis) -> Tables:
        """A cluster of nothing."""
        return cls(
            versions,
            axis,
            NodeTable(versions, NodeFacts(versions, (), axis)),
            TaskTable(versions),
            JobTable(versions, axis),
            SubJobTable(versions),
            QueueTable(versions, (), axis),
            ClassTable(versions, axis),
            build_tree((), (), (), versions.next()),
        )

    def freeze(self) -> Tables:
        """The cluster as it is now, as a value."""
        return Tables(
            self.versions,
            self.axis,
            self.nodes.freeze(),
            self.tasks.freeze(),
            self.jobs.freeze(),
            self.subs.freeze(),
            self.queues.freeze(),
            self.classes.freeze(),
            self.tree,
        )

    def fork(self, *, to_write: bool = True) -> Tables:
        """The same cluster with moving columns of its own: what a session writes on. Not ``to_write``: nothing is
        copied, and a write is an error."""
        return Tables(
            self.versions,
            self.axis,
            self.nodes.fork(to_write=to_write),
            self.tasks.fork(to_write=to_write),
            self.jobs.fork(to_write=to_write),
            self.subs.fork(to_write=to_write),
            self.queues.fork(to_write=to_write),
            self.classes,
            self.tree,
        )
