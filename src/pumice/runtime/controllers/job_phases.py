"""Phases of a ``batch.volcano.sh`` Job, by actions and by the phases of its pods.

Source: Volcano's job controller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from pumice.model.manifest.reading.fields import Obj
from pumice.model.pod import TASK_SPEC_KEY
from pumice.model.workloads.job import VolcanoJob
from pumice.runtime.controllers.writes import annotations_of, leaving, part


class JobPhase(StrEnum):
    PENDING = "Pending"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    ABORTING = "Aborting"
    ABORTED = "Aborted"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    TERMINATING = "Terminating"
    TERMINATED = "Terminated"
    FAILED = "Failed"


class JobAction(StrEnum):
    SYNC = "SyncJob"
    ENQUEUE = "EnqueueJob"
    ABORT = "AbortJob"
    RESTART = "RestartJob"
    RESTART_TASK = "RestartTask"
    RESTART_POD = "RestartPod"
    RESTART_PARTITION = "RestartPartition"
    TERMINATE = "TerminateJob"
    COMPLETE = "CompleteJob"
    RESUME = "ResumeJob"


#: Actions on some of the pods.
TARGETED = frozenset({JobAction.RESTART_TASK, JobAction.RESTART_POD, JobAction.RESTART_PARTITION})
#: Phases in which pods are created and events are handled.
LIVE = frozenset({JobPhase.PENDING, JobPhase.RUNNING})
#: Final phases. The job may be deleted after its time to live.
FINISHED = frozenset({JobPhase.COMPLETED, JobPhase.FAILED, JobPhase.TERMINATED})

_ENDS: Final = {
    JobAction.ABORT: JobPhase.ABORTING,
    JobAction.COMPLETE: JobPhase.COMPLETING,
    JobAction.TERMINATE: JobPhase.TERMINATING,
}
_ENDED: Final = {
    JobPhase.ABORTING: JobPhase.ABORTED,
    JobPhase.COMPLETING: JobPhase.COMPLETED,
    JobPhase.TERMINATING: JobPhase.TERMINATED,
}
_RESTARTS = TARGETED | {JobAction.RESTART}


class Move(Struct, frozen=True):
    """A change of phase by an action. ``retry``: it counts as one of the job's retries."""

    phase: JobPhase
    retry: bool = False


def move(phase: JobPhase, action: JobAction) -> Move | None:
    """Return where an action leads, or None if it has no effect in this phase."""
    if phase in LIVE and action in _ENDS:
        return Move(_ENDS[action])
    if phase in LIVE and action in _RESTARTS:
        return Move(JobPhase.RESTARTING, retry=True)
    if phase is JobPhase.RESTARTING and action in _RESTARTS | _ENDS.keys() | {JobAction.RESUME}:
        return Move(JobPhase.RESTARTING)
    if phase in (JobPhase.ABORTING, JobPhase.ABORTED) and action is JobAction.RESUME:
        return Move(JobPhase.RESTARTING, retry=True)
    return None


class Counts(Struct, frozen=True):
    """Numbers of pods by state. A pod that is being deleted counts as terminating only."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    unknown: int = 0
    terminating: int = 0
    by_task: Mapping[str, Mapping[str, int]] = {}

    def succeeded_of(self, task: str) -> int:
        return self.by_task.get(task, {}).get("Succeeded", 0)


def count_pods(pods: Iterable[Obj], going: frozenset[str] = frozenset()) -> Counts:
    """Return the counts. Pods in ``going`` (UIDs) will be deleted now and count as terminating."""
    found: Counter[str] = Counter()
    by_task: dict[str, Counter[str]] = {}
    for pod in pods:
        if leaving(pod) or part(pod, "metadata").get("uid") in going:
            found["terminating"] += 1
            continue
        phase = str(part(pod, "status").get("phase") or "Pending")
        found[phase.lower()] += 1
        by_task.setdefault(annotations_of(pod).get(TASK_SPEC_KEY, ""), Counter())[phase] += 1
    return Counts(
        **{name: found[name] for name in ("pending", "running", "succeeded", "failed", "unknown", "terminating")},
        by_task={task: dict(sorted(phases.items())) for task, phases in sorted(by_task.items())},
    )


def phase_by_pods(job: VolcanoJob, phase: JobPhase, counts: Counts, retries: int) -> JobPhase:
    """Return the phase that follows from the pods alone."""
    match phase:
        case JobPhase.PENDING:
            enough = job.min_available <= counts.running + counts.succeeded + counts.failed
            return JobPhase.RUNNING if enough else phase
        case JobPhase.RUNNING:
            return _from_running(job, counts)
        case JobPhase.RESTARTING:
            if retries >= job.max_retry:
                return JobPhase.FAILED
            return JobPhase.PENDING if job.replicas - counts.terminating >= job.min_available else phase
        case JobPhase.ABORTING | JobPhase.COMPLETING | JobPhase.TERMINATING:
            still = counts.terminating + counts.pending + counts.running
            return phase if still else _ENDED[phase]
    return phase


def _from_running(job: VolcanoJob, counts: Counts) -> JobPhase:
    if job.replicas == 0:
        return JobPhase.RUNNING
    if job.min_success is not None and counts.succeeded >= job.min_success:
        return JobPhase.COMPLETED
    if counts.succeeded + counts.failed == job.replicas:
        every_task = job.min_available >= sum(task.minimum for task in job.tasks)
        missed = every_task and any(counts.succeeded_of(task.name) < task.minimum for task in job.tasks)
        enough = job.min_success is None and counts.succeeded >= job.min_available
        return JobPhase.COMPLETED if enough and not missed else JobPhase.FAILED
    if counts.pending > job.replicas - job.min_available:
        return JobPhase.PENDING
    return JobPhase.RUNNING
