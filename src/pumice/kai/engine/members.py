"""Read a gang as a tree: sets of sub-groups, and pod sets, each with the minimum that satisfies it.

The chunk to place next, the chunk to evict next, readiness and the walk of placement all follow this tree. Source: KAI
subgroup_info (SubGroupSet, PodSet), GetMinMembersToSatisfy, subgrouporder.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from pumice.columns.counting import PENDING
from pumice.columns.tables import Tables
from pumice.framework.cycle.session import Session
from pumice.kai.engine.parts import active_count
from pumice.model.workloads.gang import Gang, SubGroup, TopologyConstraint
from pumice.model.workloads.podgroup import PodGroup

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

    def is_satisfied(self, active: Active) -> bool:
        """Return True if the minimum is reached."""
        return self.reached(active) >= self.least

    def reached(self, active: Active) -> int:
        """Return the active tasks of a pod set, or the number of satisfied members of a set."""
        if self.is_set:
            return sum(each.is_satisfied(active) for each in self.inside)
        return active(self.sub) if self.sub >= 0 else 0


def by_kai_rules(group: PodGroup, dialect: str) -> bool:
    """Return True if a gang is placed by KAI's rules, without admission. ``dialect``: name of the policy's language."""
    # KAI's own PodGroups are, under every policy; Kubernetes' own follow the rules of the policy.
    return group.gang is not None and (group.native is None or dialect == "kai")


def is_tree(group: PodGroup | None) -> bool:
    """Return True for the tree of a CompositePodGroup, whose groups count for a minimum in any order."""
    return group is not None and group.native is not None and group.native.is_tree


def members_of(tables: Tables, job: int) -> Member:
    """Return the tree of a job. A job without sub-groups is a set of its pod sets."""
    group = tables.jobs.groups[job]
    gang = group.gang if group is not None else None
    if gang is not None and gang.sub_groups:
        key = tables.jobs.uids[job]
        # The UID of a pod set is that of its job, a separator, and the name of the sub-group.
        row_of = {tables.subs.uids[sub][len(key) + 1 :]: sub for sub in tables.jobs.subs[job]}
        return _set(_inside(gang, "", row_of), gang.min_sub_group, gang.topology)
    found = [Member(int(tables.subs.min_available[sub]), sub) for sub in tables.jobs.subs[job]]
    return _set(tuple(found), None, gang.topology if gang is not None else None)


def _inside(gang: Gang, parent: str, row_of: dict[str, int]) -> tuple[Member, ...]:
    """Return the members of a set, by name."""
    children = gang.children()

    def member(each: SubGroup) -> Member:
        if each.name in children:
            inside = tuple(map(member, children[each.name]))
            return _set(inside, each.min_sub_group, each.topology)
        return Member(each.min_member, row_of.get(each.name, -1), topology=each.topology)

    return tuple(map(member, children.get(parent, ())))


def _set(inside: tuple[Member, ...], least: int | None, topology: TopologyConstraint | None) -> Member:
    """Return a set of members, of which ``least`` must be satisfied; None: all."""
    return Member(len(inside) if least is None else least, -1, inside, is_set=True, topology=topology)


def members(ssn: Session, job: int) -> Member:
    """Return the tree of a job, computed once per session: no action adds or removes pods."""
    known: dict[int, Member] = ssn.shared(members, dict)
    found = known.get(job)
    if found is None:
        found = known[job] = members_of(ssn.tables, job)
    return found


def may_wait(tables: Tables, job: int) -> bool:
    """Return True if a job has enough ungated pods for its minimums. Source: KAI IsReadyForScheduling."""

    def there(sub: int) -> int:
        counts = tables.subs.counts[sub].tolist()
        alive: int = active_count(counts) + counts[PENDING]
        return alive - int((tables.tasks.gate[tables.subs.tasks[sub]] > 0).sum())

    return members_of(tables, job).is_satisfied(there)
