"""The tree of a gang's groups, as far as some of its tasks are to be placed: sets of groups, and pod sets with
tasks."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from pumice.columns.dtypes import F64, Bool
from pumice.columns.tables import Tables
from pumice.kai.engine.parts import ACTIVE_STATUSES, Part
from pumice.model.workloads.gang import Gang, SubGroup, TopologyConstraint


class Group(Struct, frozen=True):
    """``rows``: tasks of it that are to be placed, those of all groups in it. ``active``: its tasks that hold a place
    or are promised one. ``sub``: its pod set, -1 for a set of groups. ``inside``: sets first, then pod sets, by
    name."""

    job: int
    rows: tuple[int, ...]
    active: tuple[int, ...]
    topology: TopologyConstraint | None = None
    sub: int = -1
    inside: tuple[Group, ...] = ()


class Subset(Struct, frozen=True):
    """Nodes to try together (N,), and what is added to their scores (N,); None: all of them, and nothing."""

    nodes: Bool | None = None
    score: F64 | None = None

    @property
    def is_all(self) -> bool:
        """Whether it is every node, and none is preferred."""
        return self.nodes is None and self.score is None


def groups_of(tables: Tables, part: Part) -> Group:
    """The whole gang as a group. Groups of which nothing is to be placed are left out."""
    gang = tables.jobs.groups[part.job].gang
    assert gang is not None, "only gangs of KAI's have groups"
    by_name = {_name_of(tables, sub): sub for sub in part.tasks}
    if not gang.sub_groups:
        pod_sets = tuple(_pod_set(tables, part, sub, None) for sub in part.tasks)
        return _set(part.job, gang.topology, pod_sets)
    return _set(part.job, gang.topology, _inside(tables, part, gang, "", by_name))


def _inside(tables: Tables, part: Part, gang: Gang, name: str, by_name: dict[str, int]) -> tuple[Group, ...]:
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
    return (*sets, *pod_sets)


def _set(job: int, topology: TopologyConstraint | None, inside: Sequence[Group]) -> Group:
    rows = tuple(row for each in inside for row in each.rows)
    active = tuple(row for each in inside for row in each.active)
    return Group(job, rows, active, topology, inside=tuple(inside))


def _pod_set(tables: Tables, part: Part, sub: int, group: SubGroup | None) -> Group:
    status = tables.tasks.status
    members = () if part.alone else tables.subs.tasks[sub].tolist()
    active = tuple(row for row in members if int(status[row]) in ACTIVE_STATUSES)
    return Group(part.job, tuple(part.tasks[sub]), active, group.topology if group is not None else None, sub)


def _name_of(tables: Tables, sub: int) -> str:
    key = tables.jobs.uids[int(tables.subs.job[sub])]
    return tables.subs.uids[sub][len(key) + 1 :]


def has_sets(tables: Tables, job: int) -> bool:
    """Whether some of a job's sub-groups are in others, which go before pod sets that are in none."""
    if not tables.jobs.has_policy[job]:
        return False
    gang = tables.jobs.groups[job].gang
    return gang is not None and any(each.parent for each in gang.sub_groups)
