"""A CronJob of ``batch.volcano.sh`` or ``batch/v1``: creates a Job whenever its schedule is due, and deletes finished
ones.

A Job is named after the minute for which it was due, so that creating it twice has no further effect.

Source: Volcano's cronjob controller, which follows Kubernetes'; Kubernetes' cronjob controller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from msgspec import Struct

from pumice.model.instants import epoch_of, stamp
from pumice.model.manifest.reading.fields import FieldError, Obj, choice, flag, maybe_whole, table, text, text_map
from pumice.runtime.controllers.batch_jobs import is_complete, is_finished
from pumice.runtime.controllers.cron_schedule import Schedule, ScheduleError, read_schedule, zone_of
from pumice.runtime.controllers.encode import job_object
from pumice.runtime.controllers.job_phases import FINISHED, JobPhase
from pumice.runtime.controllers.job_status import phase_of, since_of
from pumice.runtime.controllers.writes import (
    JOB_API,
    Create,
    Delete,
    Emit,
    Wake,
    Write,
    age_key,
    controller_uid,
    leaving,
    meta,
    part,
    ref_of,
    status_patch,
)

SCHEDULED_AT = "volcano.sh/cronjob-scheduled-timestamp"
BATCH_SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_NAME_MAX = 52  # with the minute appended, it must fit a label
_WAKE_MAX_S = 86_400.0  # examined at least once a day, because clocks may be set
_NEVER_S = 2**31 - 1


class JobForm(Struct, frozen=True):
    """The Jobs of one API. ``needs``: a field of the spec without which there is none. ``ended_at``: when a Job has
    succeeded, "" if it does not say so."""

    api_version: str
    needs: str
    scheduled_at: str
    has_finished: Callable[[Obj], bool]
    has_succeeded: Callable[[Obj], bool]
    ended_at: Callable[[Obj], str]


VOLCANO_FORM = JobForm(
    JOB_API,
    "tasks",
    SCHEDULED_AT,
    lambda job: phase_of(job) in FINISHED,
    lambda job: phase_of(job) == JobPhase.COMPLETED,
    since_of,
)
BATCH_FORM = JobForm(
    "batch/v1",
    "template",
    BATCH_SCHEDULED_AT,
    is_finished,
    is_complete,
    lambda job: str(part(job, "status").get("completionTime", "")),
)


class CronJob(Struct, frozen=True):
    """The spec of a CronJob. ``deadline_s``: how late a Job may be created. ``keeps``: numbers of finished Jobs to
    keep, succeeded and failed."""

    name: str
    schedule: Schedule
    zone: str
    concurrency: str
    suspended: bool
    deadline_s: int | None
    keeps: tuple[int, int]
    labels: dict[str, str]
    annotations: dict[str, str]
    spec: Obj


def read_cron_job(obj: Obj, form: JobForm = VOLCANO_FORM) -> CronJob:
    """Return the decoded CronJob. Raises: FieldError, ScheduleError."""
    metadata, spec = table(obj, "metadata", ""), table(obj, "spec", "")
    name = text(metadata, "name", "metadata")
    if len(name) > _NAME_MAX:
        raise FieldError("metadata.name", name, f"at most {_NAME_MAX} characters")
    template = table(spec, "jobTemplate", "spec")
    written = table(template, "metadata", "spec.jobTemplate")
    job_spec = table(template, "spec", "spec.jobTemplate")
    if not job_spec.get(form.needs):
        wanted = "at least one task" if form is VOLCANO_FORM else "a template of pods"
        raise FieldError(f"spec.jobTemplate.spec.{form.needs}", "none", wanted)
    zone = text(spec, "timeZone", "spec")
    kept = [maybe_whole(spec, f"{which}JobsHistoryLimit", "spec", 0) for which in ("successful", "failed")]
    return CronJob(
        name=name,
        schedule=read_schedule(text(spec, "schedule", "spec"), zone),
        zone=zone,
        concurrency=choice(spec, "concurrencyPolicy", "spec", ("Allow", "Forbid", "Replace"), "Allow"),
        suspended=flag(spec, "suspend", "spec"),
        deadline_s=maybe_whole(spec, "startingDeadlineSeconds", "spec", 0, _NEVER_S),
        keeps=(3 if kept[0] is None else kept[0], 1 if kept[1] is None else kept[1]),
        labels=dict(text_map(written, "labels", "spec.jobTemplate.metadata")),
        annotations=dict(text_map(written, "annotations", "spec.jobTemplate.metadata")),
        spec=job_spec,
    )


def reconcile_cron_job(obj: Obj, jobs: list[Obj], now: float, form: JobForm = VOLCANO_FORM) -> list[Write]:
    """Return what to write for a CronJob now. ``jobs``: those that it controls, possibly with others. ``now``: seconds
    since the epoch. ``form``: the API of both."""
    if leaving(obj):
        return []
    try:
        cron = read_cron_job(obj, form)
    except (FieldError, ScheduleError) as error:
        reason = "InvalidSpec" if isinstance(error, FieldError) else "UnparseableSchedule"
        return [Emit(ref_of(obj), "Warning", reason, str(error))]
    uid = meta(obj).get("uid", "")
    own = sorted((job for job in jobs if controller_uid(job) == uid), key=age_key)
    begun, last = _begin(obj, cron, own, now, form) if not cron.suspended else ([], None)
    kept = [*_forgotten(cron, own, form)]
    gone = {write.ref.name for write in (*begun, *kept) if isinstance(write, Delete)}
    active = [job for job in own if not form.has_finished(job) and str(meta(job)["name"]) not in gone]
    return [*begun, *kept, *_status(obj, active, own, last, form), *_wake(obj, cron, now)]


# -- what is due


def _begin(obj: Obj, cron: CronJob, own: list[Obj], now: float, form: JobForm) -> tuple[list[Write], float | None]:
    """Return the writes that create the Job that is due, and its time; None: nothing is created."""
    last = epoch_of(str(part(obj, "status").get("lastScheduleTime", "")))
    created = epoch_of(str(meta(obj).get("creationTimestamp", "")))
    # An instant may be 0: a simulation of manifests without times begins there.
    since = next((at for at in (last, created) if at is not None), now)
    ref = ref_of(obj)
    if last is not None and last > now:
        # A simulation may start before a manifest's status was written, and a clock may have been set back.
        why = f"status.lastScheduleTime {stamp(last)} is in the future: no Job is created before"
        return [Emit(ref, "Warning", "FutureScheduleTime", why)], None
    due = cron.schedule.latest(since, now)
    if due is None:
        return [], None
    if cron.deadline_s is not None and due + cron.deadline_s < now:
        why = f"Missed scheduled time to start a job: {stamp(due)}"
        return [Emit(ref, "Warning", "MissSchedule", why)], None
    name = f"{cron.name}-{int(due) // 60}"
    if any(meta(job)["name"] == name for job in own):
        return [], due
    active = [job for job in own if not form.has_finished(job)]
    if active and cron.concurrency == "Forbid":
        why = "Not starting job because prior execution is running and concurrency policy is Forbid"
        return [Emit(ref, "Normal", "JobAlreadyActive", why)], None
    writes: list[Write] = []
    for job in active if cron.concurrency == "Replace" else ():
        if not leaving(job):
            writes += [Delete(ref_of(job)), Emit(ref, "Normal", "SuccessfulDelete", f"Deleted job {meta(job)['name']}")]
    made = Create(_job(obj, cron, name, due, form))
    return [*writes, made, Emit(ref, "Normal", "SuccessfulCreate", f"Created job {name}")], due


def _job(obj: Obj, cron: CronJob, name: str, due: float, form: JobForm) -> Obj:
    """Return a Job. Its time is written in the zone of the schedule."""
    at = datetime.fromtimestamp(due, zone_of(cron.zone)).isoformat(timespec="seconds").replace("+00:00", "Z")
    made = job_object(obj, name, cron.spec, {**cron.annotations, form.scheduled_at: at}, cron.labels)
    return {**made, "apiVersion": form.api_version}


# -- what is over


def _forgotten(cron: CronJob, own: list[Obj], form: JobForm) -> Iterator[Write]:
    """Yield deletions of finished Jobs beyond those to keep, the oldest first."""
    succeeded = [job for job in own if form.has_succeeded(job)]
    failed = [job for job in own if form.has_finished(job) and not form.has_succeeded(job)]
    for jobs, keeps in zip((succeeded, failed), cron.keeps, strict=True):
        for job in jobs[: max(0, len(jobs) - keeps)]:
            if not leaving(job):
                yield Delete(ref_of(job))


def _status(obj: Obj, active: list[Obj], own: list[Obj], last: float | None, form: JobForm) -> list[Write]:
    old = part(obj, "status")
    new = {**old, "active": [_reference(job, form) for job in active] or None}
    if last is not None:
        new["lastScheduleTime"] = stamp(last)
    ends = [end for job in own if form.has_succeeded(job) and (end := form.ended_at(job))]
    if ends:
        new["lastSuccessfulTime"] = max([*ends, str(old.get("lastSuccessfulTime", ""))])
    return status_patch(obj, new)


def _reference(job: Obj, form: JobForm) -> Obj:
    m = meta(job)
    return {
        "apiVersion": form.api_version,
        "kind": "Job",
        "namespace": m["namespace"],
        "name": m["name"],
        "uid": m.get("uid", ""),
    }


def _wake(obj: Obj, cron: CronJob, now: float) -> list[Write]:
    following = None if cron.suspended else cron.schedule.after(now)
    return [] if following is None else [Wake(ref_of(obj), min(max(following - now, 0.0), _WAKE_MAX_S))]
