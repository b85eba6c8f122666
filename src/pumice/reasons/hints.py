"""A hint for each job that waits: one sentence with numbers, made of the blocker that is nearest to its being placed.

Beside Volcano's texts, which stay as they are. What a hint names, changed as it says, changes the decision
(docs/decisions/0032; ``tests/cases/hints`` holds each to that).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pumice.model.blockers import (
    NATIVE_PODGROUP,
    PODGROUP,
    QUEUE,
    Behind,
    Blocker,
    Missing,
    NotAdmitted,
    OtherScheduler,
)
from pumice.model.events import Object
from pumice.model.pod import ENDED, NATIVE_GROUP_MARK, Pod
from pumice.model.queue import Queue
from pumice.model.workloads.podgroup import PodGroup
from pumice.reasons.nearest import NearestBlockers
from pumice.reasons.sentences import sentence
from pumice.reasons.words import meant

#: Characters of a hint.
LENGTH_MAX = 140


def hints(blockers: NearestBlockers, *, whole: bool = False) -> dict[str, str]:
    """Return by PodGroup key what would help each job of the session that waits, without jobs of which nothing is
    known. ``whole``: however long they are."""
    return {key: text for key, blocker in blockers.by_key().items() if (text := hint_of(blocker, whole=whole))}


def hint_of(nearest: Blocker, *, whole: bool = False) -> str:
    """Return the hint of a job whose nearest blocker this is, "" if the blocker knows nothing. ``whole``: it is not
    shortened."""
    if nearest in (Behind(), NotAdmitted()):
        return ""
    return sentence(nearest) if whole else shortened(sentence(nearest))


def shortened(text: str) -> str:
    """At most so many characters: a sentence, not a page."""
    return text if len(text) <= LENGTH_MAX else f"{text[: LENGTH_MAX - 1].rstrip()}…"


def hints_outside(objects: Collection[Object], scheduler_names: Collection[str] | None = None) -> dict[str, str]:
    """Return hints by PodGroup key, not shortened, for jobs that no session sees, or not with all their pods.

    ``scheduler_names``: of the pods that are placed here, None for all.
    """
    return {key: sentence(found) for key, found in blockers_outside(objects, scheduler_names).items()}


def blockers_outside(objects: Collection[Object], scheduler_names: Collection[str] | None = None) -> dict[str, Blocker]:
    """Return by PodGroup key why jobs are not in a session, or not with all their pods."""
    groups = {obj.key: obj for obj in objects if isinstance(obj, PodGroup)}
    queues = sorted(obj.name for obj in objects if isinstance(obj, Queue))
    found: dict[str, Blocker] = {}
    for pod in objects:
        if not isinstance(pod, Pod) or pod.node_name or pod.phase in ENDED or not pod.group_key:
            continue
        why = _outside(pod, groups, queues, scheduler_names)
        if why is not None:
            found.setdefault(pod.group_key, why)
    return found


def other_scheduler(pod: Pod, scheduler_names: Collection[str]) -> OtherScheduler | None:
    """Return that a pod is for another scheduler than those of these names, None if it is for one of them."""
    if pod.scheduler_name in scheduler_names:
        return None
    return OtherScheduler(pod.scheduler_name, tuple(sorted(scheduler_names)))


def _outside(
    pod: Pod, groups: Mapping[str, PodGroup], queues: list[str], scheduler_names: Collection[str] | None
) -> Blocker | None:
    if scheduler_names is not None and (other := other_scheduler(pod, scheduler_names)) is not None:
        return other
    group = groups.get(pod.group_key)
    if group is None:
        of_kind = NATIVE_PODGROUP if NATIVE_GROUP_MARK in pod.annotations else PODGROUP
        return Missing(of_kind, pod.group_key, meant(pod.group_key, groups) or "")
    if group.queue and group.queue not in queues:
        return Missing(QUEUE, group.queue, meant(group.queue, queues) or "")
    return None
