"""Gangs of JobSets and LeaderWorkerSets in KAI's terms. Source: KAI ``jobset_grouper`` and ``lws_grouper``."""

from __future__ import annotations

from collections.abc import Callable

from pumice.model.manifest.reading.fields import Obj
from pumice.model.workloads.gang import SubGroup
from pumice.runtime.controllers.kai.plan import (
    SEGMENT_SIZE_ANNOTATION,
    GangPlan,
    NoGang,
    check_sub_groups,
    constraint_in,
    minimum_in,
    named,
    segment_constraint,
    whole,
)
from pumice.runtime.controllers.writes import annotations_of, count_or, labels_of, meta, part, parts

_REPLICATED_JOB, _JOB_INDEX = "jobset.sigs.k8s.io/replicatedjob-name", "jobset.sigs.k8s.io/job-index"
_GROUP_INDEX, _WORKER_INDEX = (
    "leaderworkerset.sigs.k8s.io/group-index",
    "leaderworkerset.sigs.k8s.io/worker-index",
)
_SIZE = "leaderworkerset.sigs.k8s.io/size"
_LEADER, _WORKERS = "leader", "workers"
_STARTUP_POLICIES = ("LeaderCreated", "LeaderReady")

FindGroup = Callable[[str], Obj | None]


# -- JobSet


def job_set(pod: Obj, owner: Obj, find_group: FindGroup) -> GangPlan:
    """Return the gang of a pod, with two levels: a sub-group for each replicated job, and below it one for each
    replica. If the jobs start in order, the gang needs the first one only, since the next are created when it runs.
    Raises: NoGang.
    """
    jobs = _replicated_jobs(owner)
    if (flat := _flat(owner, pod, jobs, find_group)) is not None:
        return flat
    check_sub_groups(sum(1 + count_or(each.get("replicas"), 1) for each in jobs), owner)
    subs = tuple(sub for each in jobs for sub in _levels(each, owner))
    in_order = part(owner, "spec", "startupPolicy").get("startupPolicyOrder") == "InOrder"
    least = minimum_in(annotations_of(owner), named(owner), 1 if in_order else len(jobs))
    labels = labels_of(pod)
    missing = [key for key in (_REPLICATED_JOB, _JOB_INDEX) if not labels.get(key)]
    if missing:
        raise NoGang(f"{named(owner)}: pod {meta(pod).get('name')}: found no label {missing[0]}")
    member = f"{labels[_REPLICATED_JOB]}-replica-{labels[_JOB_INDEX]}".lower()
    if member not in {each.name for each in subs}:
        raise NoGang(f"{named(owner)}: found pod {meta(pod).get('name')} of {member}, which it does not have")
    return GangPlan(sub_groups=subs, min_sub_group=min(least, len(jobs)), member=member)


def _replicated_jobs(owner: Obj) -> list[Obj]:
    jobs = parts(owner, "spec", "replicatedJobs")
    if not jobs:
        raise NoGang(f"{named(owner)}: found no replicatedJobs, wanted one at least")
    unnamed = [i for i, each in enumerate(jobs) if not isinstance(each.get("name"), str) or not each["name"]]
    if unnamed:
        raise NoGang(f"{named(owner)}: spec.replicatedJobs[{unnamed[0]}].name: found none, wanted a name")
    return jobs


def _levels(job: Obj, owner: Obj) -> list[SubGroup]:
    name, replicas = job["name"].lower(), count_or(job.get("replicas"), 1)
    written = part(job, "template", "metadata", "annotations")
    parallelism = count_or(part(job, "template", "spec").get("parallelism"), 1)
    least = minimum_in(written, f"{named(owner)}, replicated job {name}", parallelism)
    place = constraint_in(written)
    leaves = [SubGroup(f"{name}-replica-{i}", least, name, place) for i in range(replicas)]
    return [SubGroup(name, min_sub_group=replicas), *leaves]


def _flat(owner: Obj, pod: Obj, jobs: list[Obj], find_group: FindGroup) -> GangPlan | None:
    """Return the gang that an earlier version made, without sub-groups, if its PodGroup exists."""
    # A gang that runs must not be divided anew by an upgrade.
    base = f"pg-{meta(owner).get('name', '')}-{meta(owner).get('uid', '')}"
    own = f"-{labels_of(pod).get(_REPLICATED_JOB, '')}"
    for suffix in ("", *(f"-{each['name']}" for each in jobs)):
        there = find_group(base + suffix)
        if there is not None and not part(there, "spec").get("subGroups"):
            return GangPlan(suffix=own if suffix else "")
    return None


# -- LeaderWorkerSet


def leader_worker_set(pod: Obj, owner: Obj) -> GangPlan:
    """Return the gang of a pod: its replica, which is a leader and workers. Raises: NoGang."""
    size = count_or(part(owner, "spec", "leaderWorkerTemplate").get("size"), 0)
    if not size:
        raise NoGang(f"{named(owner)}: spec.leaderWorkerTemplate.size: found none, wanted an integer from 1")
    policy = part(owner, "spec").get("startupPolicy") or _STARTUP_POLICIES[0]
    if policy not in _STARTUP_POLICIES:
        raise NoGang(
            f"{named(owner)}: spec.startupPolicy: found {str(policy)[:40]!r}, wanted {' or '.join(_STARTUP_POLICIES)}"
        )
    if policy == "LeaderReady":
        size = _of_ready_leader(pod, size)
    index = _index(pod, owner)
    segment = _segment_size(owner, size)
    subs, member = _parts(size, index) if not segment else _segments(pod, owner, size, segment, index)
    group = labels_of(pod).get(_GROUP_INDEX, "")
    return GangPlan(size, subs, member=member, suffix=f"-group-{group}" if group.isdecimal() else "")


def _of_ready_leader(pod: Obj, size: int) -> int:
    """Return the minimum as this pod shows it: workers are created when the leader is ready, and until then it is
    enough."""
    if labels_of(pod).get(_WORKER_INDEX) == "0" and not part(pod, "spec").get("nodeName"):
        return 1
    return whole(annotations_of(pod).get(_SIZE, "")) or size


def _index(pod: Obj, owner: Obj) -> int | None:
    written = labels_of(pod).get(_WORKER_INDEX)
    if written is None:
        return None
    found = whole(written)
    if found is None:
        raise NoGang(f"{named(owner)}: label {_WORKER_INDEX}: found {written[:40]!r}, wanted an integer from 0")
    return found


def _parts(size: int, index: int | None) -> tuple[tuple[SubGroup, ...], str]:
    leader = SubGroup(_LEADER, 1)
    subs = (leader, SubGroup(_WORKERS, size - 1)) if size > 1 else (leader,)
    return subs, _LEADER if index == 0 else _WORKERS if size > 1 else ""


def _segment_size(owner: Obj, size: int) -> int:
    """Return how many pods are a segment, 0 for no segments. Raises: NoGang."""
    template = part(owner, "spec", "leaderWorkerTemplate")
    annotations = (annotations_of(owner), part(template, "workerTemplate", "metadata", "annotations"))
    written = part(template, "subGroupPolicy").get("subGroupSize")
    if written is None:
        written = next((each[SEGMENT_SIZE_ANNOTATION] for each in annotations if SEGMENT_SIZE_ANNOTATION in each), None)
    if written is None or size == 1:
        return 0
    found = count_or(written, 0) or whole(str(written)) or 0
    if not 2 <= found <= size:
        raise NoGang(f"{named(owner)}: size of a segment: found {str(written)[:40]}, wanted 2 to {size}")
    return found


def _segments(pod: Obj, owner: Obj, size: int, segment: int, index: int | None) -> tuple[tuple[SubGroup, ...], str]:
    """Return a sub-group for each segment, and that of the pod. Raises: NoGang."""
    if index is None:
        raise NoGang(f"{named(owner)}: pod {meta(pod).get('name')}: found no label {_WORKER_INDEX}")
    # A pod beyond the size would be in a segment that the group does not have, and wait for ever.
    if index >= size:
        raise NoGang(f"{named(owner)}: label {_WORKER_INDEX}: found {index}, wanted an integer below {size}")
    template = part(owner, "spec", "leaderWorkerTemplate", "workerTemplate", "metadata", "annotations")
    place = segment_constraint(pod, template, owner)
    # A leader beside full segments is an extra pod of the first one.
    extra = (size - 1) % segment == 0
    at = 0 if index == 0 else (index - 1 if extra else index) // segment
    number = ((size - 2 if extra else size - 1) // segment) + 1
    check_sub_groups(number + 2, owner)
    sizes = [min(segment, size - (1 if extra else 0) - i * segment) for i in range(number)]
    leader_apart = part(owner, "spec", "leaderWorkerTemplate", "subGroupPolicy").get("subGroupPolicyType")
    if leader_apart == "LeaderExcluded":
        if not extra:
            raise NoGang(f"{named(owner)}: found LeaderExcluded and {size} pods in segments of {segment}")
        subs = (SubGroup(_LEADER, 1), *(SubGroup(f"segment-{i}", n, "", place) for i, n in enumerate(sizes)))
        return subs, _LEADER if index == 0 else f"segment-{at}"
    first = sizes[0] + (1 if extra else 0)
    inside = (SubGroup(_LEADER, 1, "segment-0"), SubGroup(_WORKERS, first - 1, "segment-0"))
    others = (SubGroup(f"segment-{i}", n, "", place) for i, n in enumerate(sizes) if i)
    subs = (SubGroup("segment-0", topology=place, min_sub_group=2), *others, *inside)
    return subs, _LEADER if index == 0 else _WORKERS if at == 0 else f"segment-{at}"
