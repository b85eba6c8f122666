"""Build the tree of a gang's sub-groups for the tasks to be placed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from pumice.columns.dtypes import F64, Bool
from pumice.columns.tables import Tables
from pumice.kai.engine.parts import ACTIVE_STATUSES, Part
from pumice.model.workloads.gang import TopologyConstraint
from pumice.placing.gang_tree import Member, is_tree, members_of


class Group(Struct, frozen=True):
    """A sub-group set or a pod set of a gang.

    ``rows``: tasks to be placed, including those of all groups inside. ``active``: tasks that hold resources of a node
    or are pipelined. ``sub``: row of the pod set, -1 for a set. ``inside``: the groups inside, in the order in which
    they are placed.
    """

    job: int
    rows: tuple[int, ...]
    active: tuple[int, ...]
    topology: TopologyConstraint | None = None
    sub: int = -1
    inside: tuple[Group, ...] = ()


def pod_sets_in(group: Group) -> Iterator[Group]:
    """Yield the pod sets in a group."""
    if group.sub >= 0:
        yield group
    for each in group.inside:
        yield from pod_sets_in(each)


def subs_in(group: Group) -> tuple[int, ...]:
    """Return the rows of the pod sets in a group."""
    return tuple(each.sub for each in pod_sets_in(group))


class Subset(Struct, frozen=True):
    """A set of nodes to try together (N,), and an addition to their scores (N,). None: all nodes, and no addition."""

    nodes: Bool | None = None
    score: F64 | None = None

    @property
    def is_all(self) -> bool:
        """True if the subset is all nodes without an addition to scores."""
        return self.nodes is None and self.score is None


#: The members of a set in the order of placement.
InOrder = Callable[[Member], Sequence[Member]]


def groups_of(tables: Tables, part: Part, in_order: InOrder) -> Group:
    """Return a gang as a group, without the groups that have no tasks to be placed."""
    root = members_of(tables, part.job)
    return _set(tables, part, root, _inside(tables, part, root, in_order))


def _inside(tables: Tables, part: Part, member: Member, in_order: InOrder) -> tuple[Group, ...]:
    """Return the groups inside a set."""
    found: list[Group] = []
    for each in in_order(member):
        if each.is_set:
            inside = _inside(tables, part, each, in_order)
            # A set without tasks to be placed has no place to choose. Trying its domains would only use up the budget
            # of tries.
            if inside:
                found.append(_set(tables, part, each, inside))
        elif each.sub in part.tasks:
            found.append(_pod_set(tables, part, each))
    return tuple(found)


def _set(tables: Tables, part: Part, member: Member, inside: Sequence[Group]) -> Group:
    """Return a set of groups, with the tasks of all of them."""
    rows = tuple(row for each in inside for row in each.rows)
    # Quirk of KAI, kept on purpose for its own sub-groups: a set that grows goes where those that grow are, and not
    # where all of it is. The domain of a CompositePodGroup is that of all its pods.
    if is_tree(tables, part.job):
        active = tuple(row for sub in member.subs for row in _active(tables, sub))
    else:
        active = tuple(row for each in inside for row in each.active)
    return Group(part.job, rows, active, member.topology, inside=tuple(inside))


def _pod_set(tables: Tables, part: Part, member: Member) -> Group:
    """Return a pod set as a group."""
    active = tuple(_active(tables, member.sub))
    return Group(part.job, tuple(part.tasks[member.sub]), active, member.topology, member.sub)


def _active(tables: Tables, sub: int) -> Iterator[int]:
    """Yield the tasks of a pod set that hold resources of a node or are pipelined."""
    status, node = tables.tasks.status, tables.tasks.node
    # Tasks that were only promised a place count too: those that follow must go into the same domain.
    return (row for row in tables.subs.tasks[sub].tolist() if int(status[row]) in ACTIVE_STATUSES and node[row] >= 0)


def has_sets(tables: Tables, job: int) -> bool:
    """Return True if some sub-groups of a job are inside others."""
    # Reading a column first spares jobs without sub-groups the look at the object.
    if not tables.jobs.has_policy[job]:
        return False
    gang = tables.jobs.groups[job].gang
    return gang is not None and any(each.parent for each in gang.sub_groups)
