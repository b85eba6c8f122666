"""Statuses of Kubernetes' own PodGroups and CompositePodGroups: whether a group has got its minimum, and whether it is
about to end.

Source: kubernetes/api ``scheduling``, conditions and reasons of PodGroup; kube-scheduler ``schedule_one_podgroup``.
kube-scheduler writes ``DisruptionTarget`` on pods alone; the API defines it for PodGroups too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from pumice.model.decisions import PodGroupUpdate
from pumice.model.resources import EMPTY
from pumice.model.workloads.composite import CompositePodGroup
from pumice.model.workloads.native_group import COMPOSITE_INITIALLY_SCHEDULED, SCHEDULED_IN_V1ALPHA2, SCHEDULER_ERROR
from pumice.model.workloads.podgroup import PodGroup, PodGroupCondition, PodGroupStatus

SCHEDULED, UNSCHEDULABLE = "Scheduled", "Unschedulable"
DISRUPTION_TARGET, PREEMPTION = "DisruptionTarget", "PreemptionByScheduler"
Conditions = tuple[PodGroupCondition, ...]


class GroupNews(Struct, frozen=True):
    """What a cycle found about one group. ``waits``: why it waits, "" if the cycle says nothing of it. ``error``,
    ``eviction``: as in ``PodGroupUpdate``. ``placed``: number of its pods that are on nodes and stay, by the cache."""

    has_minimum: bool
    waits: str = ""
    error: str = ""
    eviction: str = ""
    placed: int = 0


def group_conditions(group: PodGroup, news: GroupNews, now: float) -> Conditions:
    """Return the conditions of a PodGroup, or of the root of a tree, after a cycle. ``now``: seconds since the
    epoch."""
    assert group.native is not None
    return _after(group.status.conditions, group.native.condition, group.native.generation, news, now)


def composite_conditions(group: CompositePodGroup, news: GroupNews, now: float) -> Conditions:
    """Return the conditions of a CompositePodGroup after a cycle. ``now``: seconds since the epoch."""
    return _after(group.conditions, COMPOSITE_INITIALLY_SCHEDULED, group.generation, news, now)


def news_of(update: PodGroupUpdate, placed: int) -> GroupNews:
    """Return what an update in the words of a policy's language says about the group as a whole. ``placed``: as in
    ``GroupNews``."""
    status = update.status
    return GroupNews(_has_minimum(status), unschedulable_message(status), update.error, update.eviction, placed)


def news_in_tree(
    members: Sequence[CompositePodGroup | PodGroup], placed: Counter[str], news: GroupNews
) -> Iterator[tuple[CompositePodGroup | PodGroup, GroupNews]]:
    """Yield the groups below the root of a tree, each with what the cycle found about it: one of them may have its
    minimum while another waits. ``members``: with the root first. ``placed``: pods on nodes by the name of their
    PodGroup. ``news``: of the whole."""
    inside: dict[str, list[CompositePodGroup | PodGroup]] = {}
    for each in members[1:]:
        parent = each.parent if isinstance(each, CompositePodGroup) else each.native.parent if each.native else ""
        inside.setdefault(parent, []).append(each)

    def has_minimum(group: CompositePodGroup | PodGroup) -> bool:
        if isinstance(group, PodGroup):
            return placed[group.name] >= group.min_member
        return sum(map(has_minimum, inside.get(group.name, ()))) >= group.min_groups

    for each in members[1:]:
        yield each, replace(news, has_minimum=has_minimum(each))


def _after(conditions: Conditions, type_: str, generation: int, news: GroupNews, now: float) -> Conditions:
    for new in _wanted(conditions, type_, news):
        conditions = _with(conditions, replace(new, last_transition=now, observed_generation=generation))
    return conditions


def _wanted(conditions: Conditions, type_: str, news: GroupNews) -> Iterable[PodGroupCondition]:
    """Yield the conditions that follow from what a cycle found."""
    if news.error:
        yield PodGroupCondition(type_, "False", SCHEDULER_ERROR, news.error)
    elif news.has_minimum:
        yield PodGroupCondition(type_, "True", SCHEDULED)
    elif news.waits:
        yield PodGroupCondition(type_, "False", UNSCHEDULABLE, news.waits)
    if news.eviction:
        message = f"all its pods are evicted, because of {news.eviction}"
        yield PodGroupCondition(DISRUPTION_TARGET, "True", PREEMPTION, message)
    elif (
        news.has_minimum
        # A cycle that began before the evicted pods were gone counts them for the minimum.
        and news.placed
        and any((c.type, c.status) == (DISRUPTION_TARGET, "True") for c in conditions)
    ):
        # It runs again.
        yield PodGroupCondition(DISRUPTION_TARGET, "False", SCHEDULED)


def _with(conditions: Conditions, new: PodGroupCondition) -> Conditions:
    """Return the conditions with a new one instead of that of its type."""
    old = next((each for each in conditions if each.type == new.type), None)
    if old is None:
        return (*conditions, new)
    # "Initially": it says that the group once had its minimum, and is not taken back. In v1alpha2 it is.
    if old.type not in (DISRUPTION_TARGET, SCHEDULED_IN_V1ALPHA2) and old.status == "True":
        return conditions
    if old.status == new.status:
        new = replace(new, last_transition=old.last_transition)
    return tuple(new if each is old else each for each in conditions)


def _has_minimum(wanted: PodGroupStatus) -> bool:
    # Volcano says it by the phase. KAI has no phase: a gang that holds something was placed with its minimum.
    held = wanted.resources.allocated if wanted.resources is not None else EMPTY
    return wanted.phase in ("Running", "Completed") or bool(wanted.running) or held != EMPTY


def unschedulable_message(status: PodGroupStatus) -> str:
    """Return why a group waits, in the words of the policy's language, or ""."""
    of_kai = (each.message for each in reversed(status.scheduling) if each.status == "True")
    of_volcano = (each.message for each in status.conditions if (each.type, each.status) == (UNSCHEDULABLE, "True"))
    return next(of_kai, "") or next(of_volcano, "")
