"""What KAI's PodGroup says of a gang: a tree of sub-groups with minimums and topology, and how it may be treated.

The tree is kept as the API has it, a list in which each sub-group names its parent. Sub-groups without children hold
pods ("pod sets" in KAI), those with children hold sub-groups ("sub-group sets").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pumice.model.resources import Resource

#: Which sub-group a pod belongs to.
SUB_GROUP_LABEL = "kai.scheduler/subgroup-name"
#: The pod set of a gang without sub-groups.
DEFAULT_POD_SET = "default"
#: The one type of scheduling condition that KAI has, and the name of the pool of nodes that have no label of a pool.
UNSCHEDULABLE_ON_NODE_POOL, DEFAULT_NODE_POOL = "UnschedulableOnNodePool", "default"
STALE_ANNOTATION = "kai.scheduler/stale-podgroup-timestamp"
LAST_START_ANNOTATION = "kai.scheduler/last-start-timestamp"
PREEMPTIBLE, NON_PREEMPTIBLE = "preemptible", "non-preemptible"
#: Jobs of this priority and more are not preemptible, unless they say so.
NON_PREEMPTIBLE_FROM = 100
#: The priority of a job whose class is not there, where no class is the cluster's default.
DEFAULT_PRIORITY = 50
#: Sub-groups of one PodGroup: each is walked for every placement of its gang.
SUB_GROUPS_MAX = 1024
#: Levels of sub-groups: each may try several sets of nodes within those of the one above.
DEPTH_MAX = 8


class TopologyConstraint(Struct, frozen=True):
    """All in one domain of the ``required`` level of a Topology, near each other at the ``preferred`` one.

    Levels are node-label keys; empty where none is asked for.
    """

    topology: str
    required: str = ""
    preferred: str = ""


class SubGroup(Struct, frozen=True):
    """``parent``: the sub-group it is in, empty at the top. ``min_member``: pods, of a pod set. ``min_sub_group``: how
    many of its sub-groups must be there, None for all."""

    name: str
    min_member: int = 1
    parent: str = ""
    topology: TopologyConstraint | None = None
    min_sub_group: int | None = None


class Gang(Struct, frozen=True):
    """``topology`` and ``min_sub_group`` are those of the top. ``preemptibility``: preemptible, non-preemptible, or
    empty: the priority decides. ``stale_since``, ``last_start``: seconds since the epoch, None for never."""

    sub_groups: tuple[SubGroup, ...] = ()
    topology: TopologyConstraint | None = None
    min_sub_group: int | None = None
    preemptibility: str = ""
    mark_unschedulable: bool = True
    scheduling_backoff: int = -1
    stale_since: float | None = None
    last_start: float | None = None

    def pod_sets(self) -> tuple[SubGroup, ...]:
        """The sub-groups that hold pods, in the order of the list."""
        parents = {each.parent for each in self.sub_groups}
        return tuple(each for each in self.sub_groups if each.name not in parents)

    def children(self) -> Mapping[str, tuple[SubGroup, ...]]:
        """By name of the parent (empty: the top), the sub-groups in it, by name."""
        found: dict[str, list[SubGroup]] = {}
        for each in sorted(self.sub_groups, key=lambda sub: sub.name):
            found.setdefault(each.parent, []).append(each)
        return {parent: tuple(inside) for parent, inside in found.items()}

    def preemptible(self, priority: int) -> bool:
        """Whether others may take its place. Source: KAI: what it says, else a priority below 100."""
        if self.preemptibility:
            return self.preemptibility == PREEMPTIBLE
        return priority < NON_PREEMPTIBLE_FROM


class GangTimes(NamedTuple):
    """When a gang was last started, and since when it is below its minimum; seconds since the epoch, None for never."""

    last_start: float | None
    stale_since: float | None


class SchedulingCondition(Struct, frozen=True):
    """Why a gang found no place on the nodes of one pool. ``reasons``: each as (reason, message), the words that
    programs and people read. ``transition_id`` grows with each that is set."""

    node_pool: str
    message: str
    reasons: tuple[tuple[str, str], ...] = ()
    transition_id: str = ""
    last_transition: float = 0.0
    reason: str = "Unschedulable"
    type: str = UNSCHEDULABLE_ON_NODE_POOL
    status: str = "True"


class GroupResources(NamedTuple):
    """What the pods of a gang hold, what of that is not preemptible, and what they hold and ask for: CPU, memory and
    GPUs."""

    allocated: Resource
    non_preemptible: Resource
    requested: Resource


#: Its fields as the API has them.
GROUP_RESOURCES = ("allocated", "allocatedNonPreemptible", "requested")


def gang_at(gang: Gang | None, times: GangTimes | None) -> Gang | None:
    """The gang with other times, where there are any."""
    if gang is None or times is None:
        return gang
    return replace(gang, last_start=times.last_start, stale_since=times.stale_since)


def pod_set_of(labels: Mapping[str, str]) -> str:
    """The name of the pod set that a pod with these labels says it is in."""
    return labels.get(SUB_GROUP_LABEL) or DEFAULT_POD_SET


def tree_problem(sub_groups: Iterable[SubGroup]) -> tuple[int, str, str] | None:
    """What is wrong with a tree, as (which of the list, what is found, what is wanted); None: nothing."""
    listed = list(sub_groups)
    place = {each.name: i for i, each in reversed(list(enumerate(listed)))}
    for i, each in enumerate(listed):
        if place[each.name] != i:
            return i, f'a second sub-group "{each.name}"', "names that differ"
        if each.parent and each.parent not in place:
            return i, f'parent "{each.parent}"', "the name of a sub-group"
    depth, inside = {"": 0}, Gang(tuple(listed)).children()
    reached = [""]
    for name in reached:
        below = [each.name for each in inside.get(name, ())]
        depth.update(dict.fromkeys(below, depth[name] + 1))
        reached += below
    for i, each in enumerate(listed):
        if each.name not in depth:
            return i, f'parents of "{each.name}" that go round in a circle', "a tree"
        if depth[each.name] > DEPTH_MAX:
            return i, f"a sub-group {depth[each.name]} levels deep", f"at most {DEPTH_MAX} levels"
    return None
