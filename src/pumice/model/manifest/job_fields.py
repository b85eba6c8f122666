"""Decode jobs and what makes jobs, with the defaults and rules of Volcano's admission webhooks, which a file has not
passed.

Source: Volcano's ``/jobs/mutate`` and ``/jobs/validate``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec.structs import replace

from pumice.model.manifest.groups import maybe_topology
from pumice.model.manifest.pod_spec import RawPodSpec, SpecCache, gates, read_pod_spec
from pumice.model.manifest.pods import namespace_of
from pumice.model.manifest.reading.fields import (
    INT32_MAX,
    INT32_MIN,
    FieldError,
    Obj,
    at,
    choice,
    flag,
    instant,
    is_name,
    maybe_table,
    maybe_whole,
    name,
    short_text,
    table,
    tables,
    text,
    text_map,
    texts,
    whole,
    wrong,
)
from pumice.model.manifest.terms import Owner
from pumice.model.plain_words import first_names
from pumice.model.pod import QUEUE_GATE
from pumice.model.quantity import DurationError, parse_duration
from pumice.model.workloads.job import (
    JOB_PODS_MAX,
    BatchJob,
    JobTask,
    LifecyclePolicy,
    PartitionPolicy,
    PodTemplate,
    VolcanoJob,
)
from pumice.model.workloads.job_makers import JobMaker

# The last two are Volcano's internal ones. Its CRD accepts them, so a file with them is no mistake.
_ACTIONS = (
    "AbortJob",
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
    "SyncJob",
    "EnqueueJob",
)
_TOPOLOGY_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")


def read_volcano_job(obj: Obj, cache: SpecCache, default_queue: str, default_scheduler: str) -> VolcanoJob:
    metadata = table(obj, "metadata", "")
    spec = table(obj, "spec", "")
    namespace = namespace_of(metadata)
    class_name = short_text(spec, "priorityClassName", "spec")
    own_name = name(metadata, "name", "metadata")
    # The job's scheduler is the default of its pods, as in Volcano's webhook.
    scheduler = text(spec, "schedulerName", "spec") or default_scheduler
    # One reader for all tasks: what they inherit from the job is equal for each.
    templates = _Templates(namespace, own_name, scheduler, class_name, cache)
    tasks = tuple(_task(item, f"spec.tasks[{i}]", i, templates) for i, item in enumerate(tables(spec, "tasks", "spec")))
    # Before anything is summed up, so that the error names the task.
    _check_tasks(tasks)
    minimum = sum(task.minimum for task in tasks)
    replicas = sum(task.replicas for task in tasks)
    # As Volcano's webhook does: 0 means that it is not given.
    min_available = whole(spec, "minAvailable", "spec", 0, 0) or minimum
    # Such a gang could never be complete. Volcano's webhook refuses it, and a file has not passed one.
    if min_available > replicas:
        raise wrong(spec, "minAvailable", "spec", f"at most the {replicas} replicas of all tasks")
    return VolcanoJob(
        namespace=namespace,
        name=own_name,
        tasks=tasks,
        min_available=min_available,
        uid=text(metadata, "uid", "metadata"),
        queue=short_text(spec, "queue", "spec", default_queue),
        priority_class_name=class_name,
        min_success=maybe_whole(spec, "minSuccess", "spec", 1),
        policies=_policies(spec, "spec"),
        # Three, as Volcano's webhook writes into a job without one.
        max_retry=whole(spec, "maxRetry", "spec", 3),
        ttl_s=maybe_whole(spec, "ttlSecondsAfterFinished", "spec", 0),
        running_estimate_s=_maybe_duration(spec, "runningEstimate", "spec"),
        topology=maybe_topology(spec, "networkTopology", "spec"),
        creation=instant(metadata, "creationTimestamp", "metadata") or 0.0,
        labels=text_map(metadata, "labels", "metadata"),
        annotations=text_map(metadata, "annotations", "metadata"),
        resource_version=text(metadata, "resourceVersion", "metadata"),
    )


def read_batch_job(obj: Obj, cache: SpecCache, default_scheduler: str) -> BatchJob:
    metadata = table(obj, "metadata", "")
    spec = table(obj, "spec", "")
    namespace = namespace_of(metadata)
    own_name = name(metadata, "name", "metadata")
    job = BatchJob(
        namespace=namespace,
        name=own_name,
        template=_Templates(namespace, own_name, default_scheduler, "", cache).read(spec, "spec"),
        uid=text(metadata, "uid", "metadata"),
        parallelism=whole(spec, "parallelism", "spec", 1, 0),
        completions=maybe_whole(spec, "completions", "spec", 0),
        suspended=flag(spec, "suspend", "spec"),
        active_deadline_s=maybe_whole(spec, "activeDeadlineSeconds", "spec", 1),
        creation=instant(metadata, "creationTimestamp", "metadata") or 0.0,
        labels=text_map(metadata, "labels", "metadata"),
        annotations=text_map(metadata, "annotations", "metadata"),
        resource_version=text(metadata, "resourceVersion", "metadata"),
    )
    # Checked before any pod is made, since a tenant writes this number.
    if job.replicas > JOB_PODS_MAX:
        raise FieldError("spec.parallelism", str(job.replicas), f"at most {JOB_PODS_MAX} pods of one job")
    return job


class _Templates:
    """Reads the pod templates of one job."""

    def __init__(self, namespace: str, job: str, scheduler: str, class_name: str, cache: SpecCache) -> None:
        self.namespace, self.job, self.scheduler, self.class_name, self.cache = (
            namespace,
            job,
            scheduler,
            class_name,
            cache,
        )

    def read(self, owner: Obj, path: str) -> PodTemplate:
        """Return the ``template`` of a task or job."""
        path, template = at(path, "template"), table(owner, "template", path)
        metadata, raw = table(template, "metadata", path), table(template, "spec", path)
        labels = text_map(metadata, "labels", f"{path}.metadata")
        owned = Owner(self.namespace, labels)
        annotations = text_map(metadata, "annotations", f"{path}.metadata")
        spec = read_pod_spec(RawPodSpec(raw, {}, f"{path}.spec", owned, self.job, annotations), self.cache)
        # Volcano gives pods without a class the class of their job.
        if self.class_name and not spec.priority_class_name:
            spec = self.cache.intern(replace(spec, priority_class_name=self.class_name))
        return PodTemplate(
            spec=spec,
            labels=labels,
            annotations=annotations,
            scheduler_name=text(raw, "schedulerName", f"{path}.spec") or self.scheduler,
            gates=_with_queue_gate(gates(raw, f"{path}.spec"), annotations),
            active_deadline_s=maybe_whole(raw, "activeDeadlineSeconds", f"{path}.spec", 1),
        )


def _with_queue_gate(written: tuple[str, ...], annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Return the gates of a pod. Volcano's webhook adds the queue gate to pods whose annotation asks for it."""
    asks = annotations.get(QUEUE_GATE) == "true" and QUEUE_GATE not in written
    return (*written, QUEUE_GATE) if asks else written


# -- tasks


def _task(item: Obj, path: str, index: int, templates: _Templates) -> JobTask:
    # The name that Volcano's webhook gives.
    task_name = short_text(item, "name", path) or f"default{index}"
    if not is_name(task_name):
        # The name becomes a part of pods' names and the value of an annotation.
        raise wrong(item, "name", path, "a name without spaces or /")
    replicas = whole(item, "replicas", path, 1, 0)
    # Here and again for the sum of all tasks: this error names the task.
    if replicas > JOB_PODS_MAX:
        raise wrong(item, "replicas", path, f"at most {JOB_PODS_MAX} pods of one job")
    depends = table(item, "dependsOn", path)
    return JobTask(
        name=task_name,
        replicas=replicas,
        template=templates.read(item, path),
        min_available=maybe_whole(item, "minAvailable", path, 0, replicas),
        policies=_policies(item, path),
        max_retry=whole(item, "maxRetry", path, 3),
        topology_policy=choice(item, "topologyPolicy", path, _TOPOLOGY_POLICIES, ""),
        depends_on=texts(depends, "name", at(path, "dependsOn")),
        # Volcano, too, treats an absent iteration as all.
        depends_on_any=choice(depends, "iteration", at(path, "dependsOn"), ("any", "all"), "all") == "any",
        partition=_partition(item, path, replicas),
    )


def check_dependencies(named: Iterable[tuple[str, Iterable[str]]], path: str, key: str) -> None:
    """Check that names in a list are unique, and that the names that each item refers to (by ``key``) are among them.

    Raises: FieldError.
    """
    items, names = list(named), set[str]()
    for i, (item, _) in enumerate(items):
        if item in names:
            raise FieldError(f"{path}[{i}].name", f"{item} a second time", "a name of its own")
        names.add(item)
    for i, (_, others) in enumerate(items):
        for other in others:
            if other not in names:
                # At most 20 of the names, because a job may have thousands of tasks.
                raise FieldError(f"{path}[{i}].{key}", other, f"one of {', '.join(sorted(names)[:20])}")


def check_order(named: Iterable[tuple[str, Collection[str]]], path: str) -> None:
    """Check that no items of a list wait for each other. Each item has the names that it waits for, which
    ``check_dependencies`` has found among them.

    Raises: FieldError.
    """
    # Each wait is looked at once: a tenant writes thousands of them.
    left: dict[str, int] = {}
    followers: dict[str, list[str]] = {}
    for item, others in named:
        left[item] = len(others)
        for other in others:
            followers.setdefault(other, []).append(item)
    free = [item for item, count in left.items() if not count]
    while free:
        item = free.pop()
        del left[item]
        for follower in followers.get(item, ()):
            left[follower] -= 1
            if not left[follower]:
                free.append(follower)
    if left:
        raise FieldError(
            path, f"{first_names(list(left), 20)}, which depend on each other", "dependsOn without a cycle"
        )


def _check_tasks(tasks: tuple[JobTask, ...]) -> None:
    """Check that names are unique, that dependencies exist, and that there are not too many pods."""
    check_dependencies(((task.name, task.depends_on) for task in tasks), "spec.tasks", "dependsOn.name")
    total = sum(task.replicas for task in tasks)
    if total > JOB_PODS_MAX:
        raise FieldError("spec.tasks", f"{total} replicas", f"at most {JOB_PODS_MAX} pods of one job")


def _partition(item: Obj, path: str, replicas: int) -> PartitionPolicy | None:
    found = maybe_table(item, "partitionPolicy", path)
    if found is None:
        return None
    path = at(path, "partitionPolicy")
    policy = PartitionPolicy(
        total=whole(found, "totalPartitions", path, 0, 0),
        size=whole(found, "partitionSize", path, 0, 0),
        min_partitions=whole(found, "minPartitions", path, 0, 0),
        topology=maybe_topology(found, "networkTopology", path),
    )
    # A pod's partition is its index divided by the size, so any other product leaves a partition of another size.
    if policy.total * policy.size != replicas or policy.size < 1:
        raise FieldError(path, f"{policy.total} partitions of {policy.size}", f"the {replicas} replicas of the task")
    if policy.min_partitions > policy.total:
        raise wrong(found, "minPartitions", path, f"at most the {policy.total} partitions there are")
    return policy


def _policies(obj: Obj, path: str) -> tuple[LifecyclePolicy, ...]:
    return tuple(_policy(item, f"{at(path, 'policies')}[{i}]") for i, item in enumerate(tables(obj, "policies", path)))


def _policy(item: Obj, path: str) -> LifecyclePolicy:
    return LifecyclePolicy(
        # Without a default, since a policy without an action would silently do nothing.
        action=choice(item, "action", path, _ACTIONS),
        # Both fields may name one event; the order is kept, and twice is once.
        events=tuple(dict.fromkeys(_events(item, path))),
        exit_code=maybe_whole(item, "exitCode", path, INT32_MIN, INT32_MAX),
        timeout_s=_maybe_duration(item, "timeout", path),
    )


def _events(item: Obj, path: str) -> Iterator[str]:
    # Old jobs name one event, newer ones a list, and a job may have both.
    one = text(item, "event", path)
    if one:
        yield one
    yield from texts(item, "events", path)


def _maybe_duration(obj: Obj, key: str, path: str) -> float | None:
    written = text(obj, key, path)
    if not written:
        return None
    try:
        return parse_duration(written)
    except DurationError:
        raise wrong(obj, key, path, "a duration such as 1h30m") from None


def read_job_maker(obj: Obj, kind: str) -> JobMaker:
    """Return a CronJob, JobFlow or JobTemplate with its identity; its controller validates the spec. Raises:
    FieldError."""
    metadata = table(obj, "metadata", "")
    # Read only to check them: a controller reads annotations without expecting errors.
    text_map(metadata, "annotations", "metadata")
    table(obj, "spec", "")
    creation = instant(metadata, "creationTimestamp", "metadata") or 0.0
    # The object and not a value: patches of a JobFlow are merged into raw specs.
    return JobMaker(kind, namespace_of(metadata), name(metadata, "name", "metadata"), obj, creation)
