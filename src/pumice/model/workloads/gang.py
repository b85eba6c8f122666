"""KAI's gangs: a tree of sub-groups with minimums and topology, and how others may treat it. Source: KAI PodGroup.

The tree is a list in which each sub-group names its parent, as in the API. Sub-groups without children hold pods ("pod
sets" in KAI), those with children hold sub-groups ("sub-group sets").
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pumice.model.pod import EMPTY_MAP, NATIVE_SUB_GROUP_MARK
from pumice.model.resources import Resource

#: Label of a pod: its sub-group.
SUB_GROUP_LABEL = "kai.scheduler/subgroup-name"
#: Name of the pod set of a gang without sub-groups.
DEFAULT_POD_SET = "default"
#: KAI's only type of scheduling condition, and the name of the node pool of nodes without a pool label.
UNSCHEDULABLE_ON_NODE_POOL, DEFAULT_NODE_POOL = "UnschedulableOnNodePool", "default"
STALE_ANNOTATION = "kai.scheduler/stale-podgroup-timestamp"
LAST_START_ANNOTATION = "kai.scheduler/last-start-timestamp"
LAST_EVICTION_ANNOTATION = "kai.scheduler/last-eviction-timestamp"
PREEMPTIBLE, NON_PREEMPTIBLE = "preemptible", "non-preemptible"
#: Jobs with this priority or a higher one are not preemptible unless they say so.
NON_PREEMPTIBLE_FROM = 100
#: Priority of a job whose class does not exist, if no class is the cluster's default.
DEFAULT_PRIORITY = 50
#: Sub-groups of one PodGroup. Bounded, because every placement of the gang goes through all of them.
SUB_GROUPS_MAX = 1024
#: Levels of sub-groups. Bounded, because each level may try several sets of nodes within those of the level above.
DEPTH_MAX = 8


class TopologyConstraint(Struct, frozen=True):
    """All pods in one domain of the ``required`` level of a Topology, and near each other at the ``preferred`` level.

    Levels are keys of node labels, "" for none.
    """

    topology: str
    required: str = ""
    preferred: str = ""


class SubGroup(Struct, frozen=True):
    """A sub-group. ``parent``: name of the sub-group that contains it, "" at the top. ``min_member``: pods that a pod
    set needs; with 0 it is optional. ``min_sub_group``: how many of its sub-groups must be ready, None for all."""

    name: str
    min_member: int = 0
    parent: str = ""
    topology: TopologyConstraint | None = None
    min_sub_group: int | None = None


class Gang(Struct, frozen=True):
    """A gang. ``topology`` and ``min_sub_group`` are those of the top. ``preemptibility``: preemptible,
    non-preemptible, or "" to follow the priority. ``staleness_grace``: seconds that it may be stale, negative for ever,
    None to follow the policy. ``preemption_delay``: seconds after its creation or last eviction in which nothing is
    evicted for it. ``stale_since``, ``last_start``, ``last_eviction``: seconds since the epoch, None for never."""

    sub_groups: tuple[SubGroup, ...] = ()
    topology: TopologyConstraint | None = None
    min_sub_group: int | None = None
    preemptibility: str = ""
    mark_unschedulable: bool = True
    scheduling_backoff: int = -1
    staleness_grace: float | None = None
    preemption_delay: float = 0.0
    stale_since: float | None = None
    last_start: float | None = None
    last_eviction: float | None = None

    @property
    def times(self) -> GangTimes:
        """Return the times that the scheduler writes."""
        return GangTimes(self.last_start, self.stale_since, self.last_eviction)

    def pod_sets(self) -> tuple[SubGroup, ...]:
        """Return the sub-groups that hold pods, in the order of the list."""
        # A sub-group without children holds pods, whatever its ``min_sub_group`` says.
        parents = {each.parent for each in self.sub_groups}
        return tuple(each for each in self.sub_groups if each.name not in parents)

    def children(self) -> Mapping[str, tuple[SubGroup, ...]]:
        """Return the sub-groups by their parent ("": the top), sorted by name."""
        found: dict[str, list[SubGroup]] = {}
        # KAI goes through a map of children, in no fixed order; by name, so that the result is the same in each run.
        for each in sorted(self.sub_groups, key=lambda sub: sub.name):
            found.setdefault(each.parent, []).append(each)
        return {parent: tuple(inside) for parent, inside in found.items()}

    def is_met(self, ready: Container[str]) -> bool:
        """Return True if the gang has its minimum. ``ready``: names of the pod sets that have theirs."""
        inside = self.children()

        def has_enough(members: tuple[SubGroup, ...], least: int | None) -> bool:
            count = sum(
                has_enough(inside[each.name], each.min_sub_group) if each.name in inside else each.name in ready
                for each in members
            )
            return count >= (len(members) if least is None else least)

        return has_enough(inside.get("", ()), self.min_sub_group)

    def preemptible(self, priority: int) -> bool:
        """Return True if the gang may be preempted. Source: KAI: what it says itself, else a priority below 100."""
        if self.preemptibility:
            return self.preemptibility == PREEMPTIBLE
        return priority < NON_PREEMPTIBLE_FROM


class GangTimes(NamedTuple):
    """When a gang was last started, since when it is below its minimum, and when pods of it were last evicted; seconds
    since the epoch, None for never."""

    last_start: float | None
    stale_since: float | None
    last_eviction: float | None = None


class SchedulingCondition(Struct, frozen=True):
    """Why a gang found no place on the nodes of one pool. ``reasons``: (reason, message), for programs and for people.
    ``transition_id`` grows with every condition."""

    node_pool: str
    message: str
    reasons: tuple[tuple[str, str], ...] = ()
    transition_id: str = ""
    last_transition: float = 0.0
    reason: str = "Unschedulable"
    type: str = UNSCHEDULABLE_ON_NODE_POOL
    status: str = "True"


class GroupResources(NamedTuple):
    """What the pods of a gang hold, the part of it that is not preemptible, and what they hold and ask for: CPU, memory
    and GPUs."""

    allocated: Resource
    non_preemptible: Resource
    requested: Resource


#: Names of the fields of ``GroupResources`` in the API.
GROUP_RESOURCES = ("allocated", "allocatedNonPreemptible", "requested")


def gang_at(gang: Gang | None, times: GangTimes | None) -> Gang | None:
    """Return the gang with other times, if there are any."""
    if gang is None or times is None:
        return gang
    return replace(gang, **times._asdict())


def pod_set_of(labels: Mapping[str, str], annotations: Mapping[str, str] = EMPTY_MAP) -> str:
    """Return the name of the pod set of a pod with these labels and annotations."""
    # An empty label counts as none.
    return annotations.get(NATIVE_SUB_GROUP_MARK) or labels.get(SUB_GROUP_LABEL) or DEFAULT_POD_SET


def tree_problem(sub_groups: Iterable[SubGroup]) -> tuple[int, str, str] | None:
    """Return what is wrong with a tree as (index in the list, found, wanted), or None."""
    listed = list(sub_groups)
    # Reversed, so that the first of several equal names is the one that is kept.
    place = {each.name: i for i, each in reversed(list(enumerate(listed)))}
    for i, each in enumerate(listed):
        if place[each.name] != i:
            return i, f'a second sub-group "{each.name}"', "names that differ"
        if each.parent and each.parent not in place:
            return i, f'parent "{each.parent}"', "the name of a sub-group"
    # Breadth first from the top. Sub-groups on a circle of parents are never reached.
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
