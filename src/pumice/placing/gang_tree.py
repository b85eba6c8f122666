"""A gang as a tree: sets of sub-groups, and pod sets, each with the minimum that satisfies it.

Both languages place, and KAI's evicts, along this tree. Source: KAI subgroup_info (SubGroupSet, PodSet); Kubernetes
CompositePodGroup (KEP-6012).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

from pumice.columns.counting import ACTIVE
from pumice.columns.dtypes import I32, AnyArray
from pumice.columns.tables import Tables
from pumice.model.workloads.gang import Gang, SubGroup, TopologyConstraint

#: The number of active tasks of a pod set, given its row.
Active = Callable[[int], int]


class Member(Struct, frozen=True):
    """A set of sub-groups or a pod set.

    ``sub``: row of the pod set; -1 for a set, and for a pod set without pods. ``least``: active tasks that satisfy a
    pod set, or satisfied members that satisfy a set. ``inside``: the members of a set, by name.
    """

    least: int
    sub: int = -1
    inside: tuple[Member, ...] = ()
    is_set: bool = False
    topology: TopologyConstraint | None = None

    @property
    def subs(self) -> list[int]:
        """Rows of the pod sets in it that have pods."""
        return [*([self.sub] if self.sub >= 0 else []), *(sub for each in self.inside for sub in each.subs)]

    def is_satisfied(self, active: Active) -> bool:
        """Return True if the minimum is reached."""
        return self.reached(active) >= self.least

    def reached(self, active: Active) -> int:
        """Return the active tasks of a pod set, or the number of satisfied members of a set."""
        if self.is_set:
            return sum(each.is_satisfied(active) for each in self.inside)
        return active(self.sub) if self.sub >= 0 else 0


def is_tree(tables: Tables, job: int) -> bool:
    """Return True for the tree of a CompositePodGroup, whose groups count for a minimum in any order."""
    # The column first: it spares other jobs the look at the object.
    if not tables.jobs.has_policy[job]:
        return False
    native = tables.jobs.groups[job].native
    return native is not None and native.is_tree


def domains_held(tables: Tables, rows: Sequence[int] | AnyArray, codes: I32) -> list[int] | None:
    """Return the domains in which some of these tasks have nodes, None if none has one. ``codes`` (N,): the domain of
    each node, -1 for none."""
    if not len(rows):
        return None
    # Promised nodes count too: what follows in the same statement must go into the same domain.
    tasks, rows = tables.tasks, np.asarray(rows)
    there = tasks.node[rows[(ACTIVE[tasks.status[rows]] > 0) & (tasks.node[rows] >= 0)]]
    return sorted(set(codes[there].tolist())) or None


def members_of(tables: Tables, job: int) -> Member:
    """Return the tree of a job. A job without sub-groups is a set of its pod sets."""
    group = tables.jobs.groups[job]
    gang = group.gang if group is not None else None
    if gang is not None and gang.sub_groups:
        key = tables.jobs.uids[job]
        # The UID of a pod set is that of its job, a separator, and the name of the sub-group.
        row_of = {tables.subs.uids[sub][len(key) + 1 :]: sub for sub in tables.jobs.subs[job]}
        return _set(_inside(gang, "", row_of), gang.min_sub_group, gang.topology)
    # Pod sets have the minimums that the job gave them, so the set above them needs all.
    found = [Member(int(tables.subs.min_available[sub]), sub) for sub in tables.jobs.subs[job]]
    return _set(tuple(found), None, gang.topology if gang is not None else None)


def _inside(gang: Gang, parent: str, row_of: dict[str, int]) -> tuple[Member, ...]:
    """Return the members of a set, by name."""
    children = gang.children()

    def member(each: SubGroup) -> Member:
        if each.name in children:
            inside = tuple(map(member, children[each.name]))
            return _set(inside, each.min_sub_group, each.topology)
        # Pods of a sub-group may not exist yet; until then nothing of it is active, and its minimum is not reached.
        return Member(each.min_member, row_of.get(each.name, -1), topology=each.topology)

    return tuple(map(member, children.get(parent, ())))


def _set(inside: tuple[Member, ...], least: int | None, topology: TopologyConstraint | None) -> Member:
    """Return a set of members, of which ``least`` must be satisfied; None: all."""
    return Member(len(inside) if least is None else least, -1, inside, is_set=True, topology=topology)
