"""Build the tree of a gang's sub-groups for the tasks to be placed."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from pumice.columns.dtypes import F64, Bool
from pumice.columns.tables import Tables
from pumice.kai.engine.parts import ACTIVE_STATUSES, Part
from pumice.model.workloads.gang import Gang, SubGroup, TopologyConstraint


class Group(Struct, frozen=True):
    """A sub-group set or a pod set of a gang.

    ``rows``: tasks to be placed, including those of all groups inside. ``active``: tasks that hold resources of a node
    or are pipelined. ``sub``: row of the pod set, -1 for a set. ``inside``: the groups inside, sets before pod sets,
    each by name.
    """

    job: int
    rows: tuple[int, ...]
    active: tuple[int, ...]
    topology: TopologyConstraint | None = None
    sub: int = -1
    inside: tuple[Group, ...] = ()


class Subset(Struct, frozen=True):
    """A set of nodes to try together (N,), and an addition to their scores (N,). None: all nodes, and no addition."""

    nodes: Bool | None = None
    score: F64 | None = None

    @property
    def is_all(self) -> bool:
        """True if the subset is all nodes without an addition to scores."""
        return self.nodes is None and self.score is None


def groups_of(tables: Tables, part: Part) -> Group:
    """Return a gang as a group, without the groups that have no tasks to be placed."""
    gang = tables.jobs.groups[part.job].gang
    assert gang is not None, "only gangs of KAI's have groups"
    by_name = {_name_of(tables, sub): sub for sub in part.tasks}
    # A gang without sub-groups has one implicit pod set, which the tree does not list.
    if not gang.sub_groups:
        pod_sets = tuple(_pod_set(tables, part, sub, None) for sub in part.tasks)
        return _set(part.job, gang.topology, pod_sets)
    return _set(part.job, gang.topology, _inside(tables, part, gang, "", by_name))


def _inside(tables: Tables, part: Part, gang: Gang, name: str, by_name: dict[str, int]) -> tuple[Group, ...]:
    """Return the groups inside a set."""
    sets: list[Group] = []
    pod_sets: list[Group] = []
    children = gang.children()
    for each in children.get(name, ()):
        if each.name in children:
            inside = _inside(tables, part, gang, each.name, by_name)
            if inside:
                sets.append(_set(part.job, each.topology, inside))
        elif each.name in by_name:
            pod_sets.append(_pod_set(tables, part, by_name[each.name], each))
    # Sets are placed before pod sets, as in KAI.
    return (*sets, *pod_sets)


def _set(job: int, topology: TopologyConstraint | None, inside: Sequence[Group]) -> Group:
    """Return a set of groups, with the tasks of all of them."""
    rows = tuple(row for each in inside for row in each.rows)
    active = tuple(row for each in inside for row in each.active)
    return Group(job, rows, active, topology, inside=tuple(inside))


def _pod_set(tables: Tables, part: Part, sub: int, group: SubGroup | None) -> Group:
    """Return a pod set as a group."""
    status, node = tables.tasks.status, tables.tasks.node
    # A part of a solver step is treated as a whole job, so the job's other tasks do not bind its topology.
    members = () if part.alone else tables.subs.tasks[sub].tolist()
    active = tuple(row for row in members if int(status[row]) in ACTIVE_STATUSES and node[row] >= 0)
    return Group(part.job, tuple(part.tasks[sub]), active, group.topology if group is not None else None, sub)


def _name_of(tables: Tables, sub: int) -> str:
    """Return the name of a pod set without the key of its job."""
    key = tables.jobs.uids[int(tables.subs.job[sub])]
    return tables.subs.uids[sub][len(key) + 1 :]


def has_sets(tables: Tables, job: int) -> bool:
    """Return True if some sub-groups of a job are inside others."""
    # Reading a column first spares jobs without sub-groups the look at the object.
    if not tables.jobs.has_policy[job]:
        return False
    gang = tables.jobs.groups[job].gang
    return gang is not None and any(each.parent for each in gang.sub_groups)
