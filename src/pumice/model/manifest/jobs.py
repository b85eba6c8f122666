"""Make PodGroups and pods of jobs, and a PodGroup for a bare pod, as Volcano's controllers do.

Source: Volcano's job controller (``createOrUpdatePodGroup``, ``createJobPod``) and podgroup controller. A new PodGroup
has the phase Pending; Volcano leaves it empty until the first session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from pumice.model.manifest.defaults.priorities import NO_PRIORITIES, Priorities
from pumice.model.manifest.pods import SECOND_GROUP_NAME_ANNOTATION
from pumice.model.pod import (
    EMPTY_MAP,
    GROUP_NAME_ANNOTATION,
    PREEMPTABLE_KEY,
    TASK_SPEC_KEY,
    LabelSelector,
    Pod,
    Requirement,
)
from pumice.model.resources import EMPTY, Resource
from pumice.model.workloads.bare_pods import bare_group_name
from pumice.model.workloads.estimate import ESTIMATE_ANNOTATION, carried_estimates, estimate_text
from pumice.model.workloads.job import BatchJob, JobTask, PodTemplate, VolcanoJob
from pumice.model.workloads.podgroup import NetworkTopology, PodGroup, SubGroupPolicy

TASK_INDEX_KEY = "volcano.sh/task-index"
JOB_NAME_KEY = "volcano.sh/job-name"
JOB_NAMESPACE_KEY = "volcano.sh/job-namespace"
QUEUE_NAME_KEY = "volcano.sh/queue-name"
PARTITION_KEY = "volcano.sh/partition-id"
GROUP_QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
GROUP_MIN_MEMBER_ANNOTATION = "scheduling.volcano.sh/group-min-member"

_COOLDOWN_KEY = "volcano.sh/cooldown-time"
_REVOCABLE_ZONE = "volcano.sh/revocable-zone"
_MIN_AVAILABLE_BUDGET = "volcano.sh/jdb-min-available"
_MAX_UNAVAILABLE_BUDGET = "volcano.sh/jdb-max-unavailable"
_NUMA_POLICY = "volcano.sh/numa-topology-policy"
_TOPOLOGY_MODE = "volcano.sh/network-topology-mode"
_TOPOLOGY_TIER = "volcano.sh/network-topology-highest-tier"

Values = Mapping[str, int]  # of priority classes
NO_VALUES: Values = {}


# -- Volcano's Job


def podgroup_of(job: VolcanoJob, priorities: Values = NO_VALUES) -> PodGroup:
    """Return the PodGroup of a job. ``priorities``: values of PriorityClasses, which decide whose requests count
    first."""
    group_name = group_name_of(job)
    return PodGroup(
        namespace=job.namespace,
        name=group_name,
        # From the name, so that the same file gives the same group in each run.
        uid=f"{job.namespace}/{group_name}",
        queue=job.queue,
        min_member=job.min_available,
        # Always written, as by Volcano's controller; the scheduler ignores it if the sum exceeds the job's minimum.
        min_task_member={task.name: task.minimum for task in job.tasks},
        min_resources=_min_resources(job, priorities),
        priority_class_name=job.priority_class_name,
        topology=job.topology,
        sub_groups=tuple(_sub_group(task) for task in job.tasks if task.partition is not None),
        creation=job.creation,
        labels=job.labels,
        annotations=_with_estimate(job),
    )


def _with_estimate(job: VolcanoJob) -> Mapping[str, str]:
    """Return the annotations of a job, with its ``runningEstimate`` unless they have an estimate."""
    if not job.running_estimate_s or ESTIMATE_ANNOTATION in job.annotations:
        return job.annotations
    return {**job.annotations, ESTIMATE_ANNOTATION: estimate_text(job.running_estimate_s)}


def group_name_of(job: VolcanoJob) -> str:
    """Return ``<job>-<uid>``, or the name alone for a job that has no UID."""
    # The UID keeps the group of a job apart from that of an earlier job with the same name.
    return f"{job.name}-{job.uid}" if job.uid else job.name


def pods_of(job: VolcanoJob, priorities: Priorities = NO_PRIORITIES) -> Iterator[Pod]:
    """Yield the pods of a job, task by task. Pods of a task share one ``PodSpec``."""
    group = group_name_of(job)
    for task in job.tasks:
        spec = priorities.admitted(task.template.spec)
        # Once per task, because a job may have thousands of pods.
        annotations, labels = _shared_annotations(job, task, group), _shared_labels(job, task)
        for i in range(task.replicas):
            # Only these two entries differ from pod to pod; all else is made once per task.
            own = {TASK_INDEX_KEY: str(i)}
            partition = {} if task.partition is None else {PARTITION_KEY: str(i // task.partition.size)}
            yield Pod(
                namespace=job.namespace,
                name=f"{job.name}-{task.name}-{i}",
                uid=f"{job.uid or job.key}-{task.name}-{i}",
                spec=spec,
                creation=job.creation,
                labels=labels | own | partition,
                annotations=annotations | own,
                scheduler_name=task.template.scheduler_name,
                gates=task.template.gates,
                active_deadline_s=task.template.active_deadline_s,
                owner=("Job", job.name, job.uid),
            )


def _shared_annotations(job: VolcanoJob, task: JobTask, group: str) -> dict[str, str]:
    # Volcano copies only these to pods; others concern the job alone.
    inherited = (PREEMPTABLE_KEY, _COOLDOWN_KEY, _REVOCABLE_ZONE)
    return {
        **task.template.annotations,
        TASK_SPEC_KEY: task.name,
        GROUP_NAME_ANNOTATION: group,
        JOB_NAME_KEY: job.name,
        QUEUE_NAME_KEY: job.queue,
        # Zero, since a job that is read has not been restarted yet.
        "volcano.sh/job-version": "0",
        "volcano.sh/job-retry-count": "0",
        "volcano.sh/template-uid": f"{job.name}-{task.name}",
        **({_NUMA_POLICY: task.topology_policy} if task.topology_policy else {}),
        **{key: job.annotations[key] for key in inherited if key in job.annotations},
        **_budget(job.annotations),
    }


def _shared_labels(job: VolcanoJob, task: JobTask) -> dict[str, str]:
    return {
        **task.template.labels,
        JOB_NAME_KEY: job.name,
        TASK_SPEC_KEY: task.name,
        JOB_NAMESPACE_KEY: job.namespace,
        QUEUE_NAME_KEY: job.queue,
        **{key: job.labels[key] for key in (PREEMPTABLE_KEY, _COOLDOWN_KEY) if key in job.labels},
    }


def _sub_group(task: JobTask) -> SubGroupPolicy:
    assert task.partition is not None
    return SubGroupPolicy(
        name=task.name,
        topology=task.partition.topology,
        sub_group_size=task.partition.size,
        min_sub_groups=task.partition.min_partitions,
        selector=LabelSelector((Requirement(TASK_SPEC_KEY, "In", (task.name,)),)),
        # A partition is all pods with one value of this label; without a key the policy would capture none.
        match_label_keys=(PARTITION_KEY,),
    )


def _min_resources(job: VolcanoJob, priorities: Values) -> Resource:
    """Return the requests of the pods that must run: of tasks with higher priority first, ``min_available`` in
    total."""
    # Stable, so that tasks of equal priority stay in the order of the job.
    order = sorted(job.tasks, key=lambda task: -priorities.get(task.template.spec.priority_class_name, 0))
    counts = dict.fromkeys((task.name for task in order), 0)
    left = job.min_available
    enough_for_all = left >= sum(task.minimum for task in order)
    # First the minimum of each task, and what is left by priority up to all replicas. If the job's minimum is smaller
    # than that of its tasks together, as Volcano allows, priority alone decides.
    for limit in ("minimum", "replicas") if enough_for_all else ("replicas",):
        for task in order:
            count = min(left, max(getattr(task, limit) - counts[task.name], 0))
            counts[task.name] += count
            left -= count
    total = EMPTY
    for task in order:
        if counts[task.name]:
            total = total.add(task.template.spec.request.multi(counts[task.name]))
    return total


# -- Kubernetes' own Job, and pods without a group


def pods_of_batch_job(job: BatchJob, priorities: Priorities = NO_PRIORITIES) -> Iterator[Pod]:
    """Yield the first pods of a ``batch/v1`` Job, without a group. Kubernetes gives them random names; these are
    numbered."""
    template: PodTemplate = job.template
    # Both names of the label, since Kubernetes writes the old one as well.
    labels = {**template.labels, "batch.kubernetes.io/job-name": job.name, "job-name": job.name}
    spec = priorities.admitted(template.spec)
    for i in range(job.replicas):
        yield Pod(
            namespace=job.namespace,
            name=f"{job.name}-{i}",
            uid=f"{job.uid or job.key}-{i}",
            spec=spec,
            creation=job.creation,
            labels=labels,
            annotations={**carried_estimates(job), **template.annotations},
            scheduler_name=template.scheduler_name,
            gates=template.gates,
            # The Job's own deadline counts from its start, which is that of its first pods.
            active_deadline_s=job.active_deadline_s or template.active_deadline_s,
            owner=("Job", job.name, job.uid or job.key),
        )


def podgroup_for_bare_pod(pod: Pod, owner_annotations: Mapping[str, str] = EMPTY_MAP) -> tuple[PodGroup, Pod]:
    """Return the PodGroup that Volcano makes for a pod without one, and the pod with its name.

    Pods of one controlling owner get the same group. ``owner_annotations``: annotations of the owner (a ReplicaSet,
    DaemonSet, StatefulSet or Job), which may set the minimum; otherwise it is 1.
    """
    group_name = bare_group_name(pod)
    min_member = _count(owner_annotations.get(GROUP_MIN_MEMBER_ANNOTATION, ""))
    kept = (PREEMPTABLE_KEY, _COOLDOWN_KEY, _REVOCABLE_ZONE)
    group = PodGroup(
        namespace=pod.namespace,
        name=group_name,
        uid=f"{pod.namespace}/{group_name}",
        queue=pod.annotations.get(GROUP_QUEUE_ANNOTATION) or "default",
        min_member=min_member,
        # Of this pod, although others of the group may ask for more: Volcano knows no more when it makes the group.
        min_resources=pod.spec.request.multi(min_member),
        priority_class_name=pod.spec.priority_class_name,
        topology=_topology_of_pod(pod.annotations),
        creation=pod.creation,
        labels={key: pod.labels[key] for key in (PREEMPTABLE_KEY, _COOLDOWN_KEY) if key in pod.labels},
        annotations={
            **{key: value for key, value in owner_annotations.items() if key.startswith("volcano.sh/")},
            **{key: pod.annotations[key] for key in kept if key in pod.annotations},
            **_budget(pod.annotations),
        },
    )
    return group, replace(pod, annotations={**pod.annotations, GROUP_NAME_ANNOTATION: group_name})


def is_bare(pod: Pod, scheduler_names: tuple[str, ...] = ("volcano",)) -> bool:
    """Return True if a pod is scheduled by us and names no group."""
    annotations = pod.annotations
    named = annotations.get(GROUP_NAME_ANNOTATION) or annotations.get(SECOND_GROUP_NAME_ANNOTATION)
    return not named and pod.scheduler_name in scheduler_names


def _topology_of_pod(annotations: Mapping[str, str]) -> NetworkTopology | None:
    """Return the topology in annotations. Either annotation is enough: hard unless a valid mode is given, and bounded
    only by an integer."""
    mode, tier = annotations.get(_TOPOLOGY_MODE), annotations.get(_TOPOLOGY_TIER)
    if mode is None and tier is None:
        return None
    # Volcano accepts any case, and takes an unknown mode for hard.
    lowered = (mode or "").lower()
    bound = int(tier) if tier is not None and tier.isascii() and tier.isdecimal() and len(tier) < 10 else None
    return NetworkTopology(lowered if lowered in ("hard", "soft") else "hard", bound)


def _budget(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return one of the two disruption budgets, the minimum if both are set."""
    for key in (_MIN_AVAILABLE_BUDGET, _MAX_UNAVAILABLE_BUDGET):
        if key in annotations:
            return {key: annotations[key]}
    return {}


def _count(written: str) -> int:
    """Return the minimum in an annotation, 1 if it is not a number of at least 0."""
    # Below 10 digits, so that the number fits the field of 32 bits, and parsing stays cheap.
    return int(written) if written.isascii() and written.isdecimal() and len(written) < 10 else 1
