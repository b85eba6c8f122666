"""Events of a job's pods, and what its policies make of them.

Events are read from the present state of pods, so that events while this was not running count, too. Only a pod that is
gone must be reported by the code that saw it go. Pods that an action has handled are of an older version of the job, or
are marked as out of sync.

Source: Volcano's job controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import product
from typing import Any

from msgspec import Struct

from pumice.model.instants import epoch_of
from pumice.model.manifest.jobs import PARTITION_KEY
from pumice.model.manifest.reading.fields import Obj
from pumice.model.pod import TASK_SPEC_KEY
from pumice.model.workloads.job import JobTask, LifecyclePolicy, VolcanoJob
from pumice.runtime.controllers.job_phases import TARGETED, Counts, JobAction
from pumice.runtime.controllers.writes import annotations_of, labels_of, leaving, meta, part

VERSION_KEY = "volcano.sh/job-version"
OUT_OF_SYNC = "volcano.sh/controller-out-of-sync"

_ANY = "*"
_PENDING = "PodPending"


class Request(Struct, frozen=True):
    """An event of a job, with the pod that it is about, or an ``action`` that was ordered.

    ``since``: when it began, in seconds since the epoch.
    """

    event: str = ""
    action: str = ""
    version: int = 0
    task: str = ""
    partition: str = ""
    pod: str = ""
    exit_code: int | None = None
    since: float = 0.0


class PolicyAction(Struct, frozen=True):
    """The action to take now, and ``why``; for a targeted one with its targets; and what to examine again later."""

    action: JobAction = JobAction.SYNC
    targets: tuple[Request, ...] = ()
    why: str = ""
    later: tuple[tuple[float, Request], ...] = ()  # (seconds, what)


# -- what happened


def happened(
    pods: Iterable[Obj], group: Obj | None, job: VolcanoJob, version: int, counts: Counts
) -> Iterator[Request]:
    """Yield the events that follow from the job's pods and its PodGroup, in the order of the pods."""
    tasks = {task.name: task for task in job.tasks}
    succeeded: dict[str, float] = {}
    for pod in pods:
        if not is_current(pod, version):
            continue
        task = tasks.get(annotations_of(pod).get(TASK_SPEC_KEY, ""))
        event = _event_of(pod, task)
        if event:
            yield _about(pod, event, _since(pod))
        if task is not None and part(pod, "status").get("phase") == "Succeeded":
            succeeded[task.name] = max(succeeded.get(task.name, 0.0), _since(pod))
    for name, since in succeeded.items():
        if counts.succeeded_of(name) >= tasks[name].replicas:
            yield Request("TaskCompleted", version=version, task=name, since=since)
    if group is not None and not leaving(group) and part(group, "status").get("phase") == "Unknown":
        yield Request("Unknown", version=version)


def lost(pod: Obj, now: float) -> Request | None:
    """Return the event of a pod that is gone, by its last state, or None if its job deleted it."""
    if OUT_OF_SYNC in annotations_of(pod):
        return None
    return _about(pod, "PodEvicted", now)


def is_current(pod: Obj, version: int) -> bool:
    """Return True if a pod belongs to the present job: it is of no older version, and not marked."""
    return version_of(pod) >= version and OUT_OF_SYNC not in annotations_of(pod)


def version_of(pod: Obj) -> int:
    """Return the version of the job for which a pod was created."""
    written = annotations_of(pod).get(VERSION_KEY, "")
    return int(written) if written.isascii() and written.isdecimal() and len(written) < 10 else 0


def _event_of(pod: Obj, task: JobTask | None) -> str:
    if leaving(pod):
        return "PodEvicted"
    match part(pod, "status").get("phase"):
        case "Failed":
            return "PodFailed"
        case "Running" if task is not None and 0 <= task.max_retry < _restarts(pod):
            return "TaskFailed"
        case "Pending" | None:
            return _PENDING
    return ""


def _about(pod: Obj, event: str, since: float) -> Request:
    return Request(
        event,
        version=version_of(pod),
        task=annotations_of(pod).get(TASK_SPEC_KEY, ""),
        partition=labels_of(pod).get(PARTITION_KEY, ""),
        pod=str(meta(pod).get("name", "")),
        exit_code=_exit_code(pod) if event == "PodFailed" else None,
        since=since,
    )


def _containers(pod: Obj, *kinds: str) -> list[Obj]:
    status = part(pod, "status")
    return [found for kind in kinds for found in status.get(kind) or () if isinstance(found, dict)]


def _restarts(pod: Obj) -> int:
    return sum(int(c.get("restartCount") or 0) for c in _containers(pod, "containerStatuses", "initContainerStatuses"))


def _exit_code(pod: Obj) -> int | None:
    """Return the exit code of the first container that failed."""
    for container in _containers(pod, "initContainerStatuses", "containerStatuses"):
        code = part(container, "state", "terminated").get("exitCode")
        if isinstance(code, int) and code:
            return code
    return None


def _since(pod: Obj) -> float:
    """Return when a pod reached its state: its last dated change."""
    dates: list[Any] = [meta(pod).get("creationTimestamp"), meta(pod).get("deletionTimestamp")]
    dates += [each.get("lastTransitionTime") for each in part(pod, "status").get("conditions") or ()]
    dates += [part(c, "state", "terminated").get("finishedAt") for c in _containers(pod, "containerStatuses")]
    found = [epoch_of(date) for date in dates if isinstance(date, str)]
    return max((date for date in found if date is not None), default=0.0)


# -- what to make of it


def judge(job: VolcanoJob, version: int, requests: Sequence[Request], now: float) -> PolicyAction:
    """Return the action that follows from all requests: orders before policies, the whole job before parts of it.

    Of several about the whole job the first counts, and replaces all others.
    """
    targets: list[tuple[JobAction, Request]] = []
    later: list[tuple[float, Request]] = []
    whole: tuple[JobAction, Request] | None = None
    tasks = {task.name: task for task in job.tasks}
    for request in sorted(requests, key=lambda each: not each.action):
        action, delay = _action_for(tasks.get(request.task), job, version, request)
        wait = request.since + delay - now
        if action in (JobAction.SYNC, JobAction.ENQUEUE):
            continue
        if delay and wait > 0:
            later.append((wait, request))
        elif action in TARGETED:
            targets.append((action, request))
        elif whole is None:
            whole = action, request
    if whole is not None:
        return PolicyAction(whole[0], why=_why(whole[1]))
    if targets:
        aims = tuple(_target(action, request) for action, request in targets)
        return PolicyAction(targets[0][0], aims, _why(targets[0][1], len(targets) - 1), tuple(later))
    return PolicyAction(later=tuple(later))


def _why(request: Request, others: int = 0) -> str:
    """Return what happened, for people."""
    pod = f"pod {request.pod}" + (f" and {others} more" if others else "")
    code = "" if request.exit_code is None else f" with exit code {request.exit_code}"
    match request.event:
        case "":
            return "requested by a Command"
        case "PodFailed":
            return f"{pod} failed{code}"
        case "PodEvicted":
            return f"{pod} was evicted or deleted"
        case "TaskFailed":
            return f"{pod} exceeded the maxRetry of its task"
        case "TaskCompleted":
            return f"task {request.task} completed"
        case "PodPending":
            return f"{pod} was pending longer than its policy allows"
        case "Unknown":
            return "its PodGroup fell below its minimum"
    return request.event


def is_target(pod: Obj, targets: Set[Request]) -> bool:
    """Return True if an action on these targets includes this pod."""
    task, partition = annotations_of(pod).get(TASK_SPEC_KEY, ""), labels_of(pod).get(PARTITION_KEY, "")
    name = str(meta(pod).get("name", ""))
    # Looked up in place of compared with each: all pods of a large job may have failed.
    mine = product({"", task}, {"", partition}, {"", name})
    return any(Request(task=each[0], partition=each[1], pod=each[2]) in targets for each in mine)


def _action_for(task: JobTask | None, job: VolcanoJob, version: int, request: Request) -> tuple[JobAction, float]:
    """Return (action, seconds to wait) for one request. ``task``: that it is about, if any."""
    if request.action:
        return JobAction(request.action), 0.0
    if request.version < version:
        return JobAction.SYNC, 0.0
    for policy in (*(task.policies if task else ()), *job.policies):
        if _matches(policy, request):
            return JobAction(policy.action), policy.timeout_s or 0.0
    return JobAction.SYNC, 0.0


def _matches(policy: LifecyclePolicy, request: Request) -> bool:
    if request.event in policy.events or _ANY in policy.events:
        return request.event != _PENDING or policy.timeout_s is not None
    return request.exit_code is not None and policy.exit_code == request.exit_code


def _target(action: JobAction, request: Request) -> Request:
    """Return only what the action uses: a task, a partition of it, or one pod."""
    partition = request.partition if action is JobAction.RESTART_PARTITION else ""
    pod = request.pod if action is JobAction.RESTART_POD else ""
    return Request(task=request.task, partition=partition, pod=pod)
