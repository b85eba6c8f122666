"""The status of a ``batch.volcano.sh`` Job: read what matters, and write it if it has changed."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pumice.model.instants import stamp
from pumice.model.manifest.reading.fields import Obj
from pumice.model.workloads.job import VolcanoJob
from pumice.runtime.controllers.job_phases import FINISHED, Counts, JobPhase
from pumice.runtime.controllers.writes import Write, part, status_patch


class JobState(Struct, frozen=True):
    """The state of a job. ``version`` increases when all its pods must be deleted, ``retries`` with every restart."""

    phase: JobPhase
    version: int = 0
    retries: int = 0


def state_of_job(obj: Obj) -> JobState:
    """Return the state of a job. Without a phase it is pending."""
    status = part(obj, "status")
    phase = part(status, "state").get("phase")
    known = JobPhase(phase) if phase in tuple(JobPhase) else JobPhase.PENDING
    return JobState(known, int(status.get("version") or 0), int(status.get("retryCount") or 0))


def phase_of(obj: Obj) -> str:
    """Return the phase of a job, "" for a new one."""
    return str(part(obj, "status", "state").get("phase", ""))


def since_of(obj: Obj) -> str:
    """Return when a job reached its phase, "" if its status does not say."""
    return str(part(obj, "status", "state").get("lastTransitionTime", ""))


def status_writes(
    obj: Obj,
    job: VolcanoJob,
    after: JobState,
    counts: Counts,
    now: float,
    message: str = "",
    controlled: Mapping[str, str] | None = None,
) -> list[Write]:
    old = part(obj, "status")
    new = {**old, **_numbers(job, after, counts)}
    if controlled:
        new["controlledResources"] = dict(controlled)
    if part(old, "state").get("phase") != after.phase.value:
        state = {"phase": after.phase.value, "lastTransitionTime": stamp(now)}
        new["conditions"] = [
            *(old.get("conditions") or ()),
            {"status": after.phase.value, "lastTransitionTime": stamp(now)},
        ]
        new["state"] = state | ({"message": message} if message else {})
        if after.phase in FINISHED:
            new["runningDuration"] = duration_text(now - job.creation)
    return status_patch(obj, new)


def _numbers(job: VolcanoJob, after: JobState, counts: Counts) -> Obj:
    found: Obj = {
        name: getattr(counts, name) or None
        for name in ("pending", "running", "succeeded", "failed", "terminating", "unknown")
    }
    return {
        **found,
        "minAvailable": job.min_available,
        "version": after.version or None,
        "retryCount": after.retries or None,
        "taskStatusCount": {task: {"phase": dict(phases)} for task, phases in counts.by_task.items()} or None,
    }


def duration_text(seconds: float) -> str:
    """Return whole seconds as Go writes them: ``1h2m3s``."""
    minutes, s = divmod(max(int(seconds), 0), 60)
    hours, m = divmod(minutes, 60)
    return (f"{hours}h" if hours else "") + (f"{m}m" if hours or m else "") + f"{s}s"
