"""A ``flow.volcano.sh`` JobFlow: Jobs from templates, each created when the Jobs that it waits for are far enough.

A Job is named after its flow and its template, so that creating it twice has no further effect. Once one has failed
finally, no others are created.

Source: Volcano's jobflow and jobtemplate controllers, and the design of its retries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from pumice.model.instants import epoch_of, stamp
from pumice.model.manifest.reading.fields import FieldError, Obj
from pumice.runtime.controllers.encode import job_object
from pumice.runtime.controllers.job_flow_spec import Flow, JobFlow, patched, read_job_flow
from pumice.runtime.controllers.job_phases import JobPhase
from pumice.runtime.controllers.job_status import phase_of, since_of
from pumice.runtime.controllers.writes import (
    Create,
    Delete,
    Emit,
    Patch,
    Wake,
    Write,
    annotations_of,
    controller_uid,
    leaving,
    merge_patch,
    meta,
    part,
    ref_of,
    status_patch,
)

FLOW_API = "flow.volcano.sh/v1alpha1"
TEMPLATE_KEY = "volcano.sh/createdByJobTemplate"
_LABEL_MAX = 63
_HISTORY_MAX = 20
_BROKEN = (JobPhase.FAILED, JobPhase.TERMINATED, JobPhase.ABORTED)
#: Lists of the status, with the phases of the Jobs in them. The last one has all others.
_LISTS: Mapping[str, tuple[str, ...]] = {
    "pendingJobs": (JobPhase.PENDING,),
    "runningJobs": (JobPhase.RUNNING,),
    "failedJobs": (JobPhase.FAILED,),
    "completedJobs": (JobPhase.COMPLETED, JobPhase.COMPLETING),
    "terminatedJobs": (JobPhase.TERMINATED, JobPhase.TERMINATING),
    "unKnowJobs": (),
}


class FlowPhase(StrEnum):
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEED = "Succeed"
    FAILED = "Failed"


class RetryCount(NamedTuple):
    """How often a Job was created again. ``uid``: of the last one that was replaced, which is not counted twice."""

    times: int
    uid: str


class _Case(Struct, frozen=True):
    """What is known of one JobFlow. ``jobs``: those that it controls, by name of their flow. ``retries``: of those that
    were retried, by the same."""

    obj: Obj
    flow: JobFlow
    jobs: Mapping[str, Obj]
    templates: Mapping[str, Obj]
    retries: Mapping[str, RetryCount]
    now: float

    def phase(self, name: str) -> str:
        """Return the phase of a Job, "" for one that is new or does not exist."""
        return phase_of(self.jobs.get(name, {}))


def reconcile_job_flow(obj: Obj, jobs: list[Obj], templates: Mapping[str, Obj], now: float) -> list[Write]:
    """Return what to write for a JobFlow now. ``jobs``: those that it controls, possibly with others. ``templates``:
    those of its namespace by name. ``now``: seconds since the epoch."""
    if leaving(obj):
        return []
    try:
        flow = read_job_flow(obj)
    except FieldError as error:
        return [Emit(ref_of(obj), "Warning", "InvalidSpec", str(error))]
    uid = meta(obj).get("uid", "")
    own = {str(meta(job)["name"]): job for job in jobs if controller_uid(job) == uid}
    by_flow = {each.name: own[name] for each in flow.flows if (name := job_name(flow, each)) in own}
    case = _Case(obj, flow, by_flow, templates, _retries(obj), now)
    if part(obj, "status", "state").get("phase") == FlowPhase.SUCCEED:
        return [Delete(ref_of(job)) for job in own.values() if flow.deletes and not leaving(job)]
    again = [each for each in flow.flows if _is_tried_again(case, each)]
    phase = _phase(case, again)
    made = [] if phase is FlowPhase.FAILED else [*_made(case, {each.name for each in again})]
    waits = {each.name: _waits_s(case, each) for each in again if not _is_counted(case, each.name)}
    due = [name for name, wait in waits.items() if wait <= 0]
    return [
        *made,
        *_status(case, phase, {**case.retries, **{name: _counted(case, name) for name in due}}),
        *(Delete(ref_of(by_flow[name])) for name in due),
        *(Wake(ref_of(obj), wait) for wait in waits.values() if wait > 0),
    ]


def job_name(flow: JobFlow, of: Flow) -> str:
    """Return the name of a Job of a flow."""
    return f"{flow.name}-{of.name}"


def _phase(case: _Case, again: list[Flow]) -> FlowPhase:
    """Return the phase of the flow. ``again``: Jobs that have ended and will be retried."""
    phases = [case.phase(each.name) for each in case.flow.flows]
    trying = [each.name for each in again]
    if not again and all(phase == JobPhase.COMPLETED for phase in phases):
        return FlowPhase.SUCCEED
    if any(case.phase(each.name) in _BROKEN and each.name not in trying for each in case.flow.flows):
        return FlowPhase.FAILED
    return FlowPhase.RUNNING if any(phase not in ("", JobPhase.PENDING) for phase in phases) else FlowPhase.PENDING


# -- what is made


def _made(case: _Case, again: Set[str]) -> Iterator[Write]:
    """Yield Jobs to create. ``again``: names of those that have ended and will be retried."""
    for each in case.flow.flows:
        if each.name in case.jobs or not _may_begin(case, each, again):
            continue
        template = case.templates.get(each.name)
        if template is None:
            why = f"JobTemplate {each.name} does not exist; its Job is created when it does"
            yield Emit(ref_of(case.obj), "Warning", "TemplateNotFound", why)
            continue
        job = _job(case, each, template)
        yield Create(job)
        yield Emit(ref_of(case.obj), "Normal", "Created", f"create a job named {job['metadata']['name']}!")


def _may_begin(case: _Case, flow: Flow, again: Set[str]) -> bool:
    """Return True if the Jobs that a Job waits for are far enough. ``again``: as for ``_made``."""
    if not flow.targets:
        return True
    answers = (target not in again and _is_far_enough(case, flow, target) for target in flow.targets)
    return any(answers) if flow.any_target else all(answers)


def _is_far_enough(case: _Case, flow: Flow, target: str) -> bool:
    """Return True if a Job has completed or, if tasks are named, if each of them has as many pods in the phase as it
    must have."""
    job = case.jobs.get(target)
    if job is None:
        return False
    if case.phase(target) == JobPhase.COMPLETED:
        return True
    tasks = {str(each.get("name")): each for each in part(job, "spec").get("tasks") or () if isinstance(each, dict)}
    wanted = [(tasks[name], phase) for name, phase in flow.task_phases if name in tasks]
    return bool(wanted) and all(_count(job, task, phase) >= _least(task) for task, phase in wanted)


def _count(job: Obj, task: Obj, phase: str) -> int:
    found = part(job, "status", "taskStatusCount", str(task["name"]), "phase").get(phase, 0)
    return found if isinstance(found, int) else 0


def _least(task: Obj) -> int:
    """Return how many pods a task must have, at least one."""
    given = task.get("minAvailable", task.get("replicas", 1))
    return max(given, 1) if isinstance(given, int) else 1


def _job(case: _Case, flow: Flow, template: Obj) -> Obj:
    origin = f"{meta(case.obj)['namespace']}.{flow.name}"
    notes = {TEMPLATE_KEY: origin}
    spec = patched(part(template, "spec"), flow.patch)
    return job_object(case.obj, job_name(case.flow, flow), spec, notes, notes if len(origin) <= _LABEL_MAX else {})


# -- what is tried again


def _retries(obj: Obj) -> dict[str, RetryCount]:
    """Return the retries in the status of a JobFlow, by name of their flow."""
    found = {}
    for name, count in part(obj, "status", "retries").items():
        times, uid = (count.get("times"), count.get("uid")) if isinstance(count, dict) else (None, None)
        if isinstance(times, int) and times > 0:
            found[name] = RetryCount(times, str(uid))
    return found


def _is_tried_again(case: _Case, flow: Flow) -> bool:
    """Return True for a Job that failed, or is to run ``always``, and has retries left or is being retried. A Job that
    a user aborts or terminates is not retried."""
    ended = (JobPhase.FAILED, JobPhase.COMPLETED) if flow.retry.always else (JobPhase.FAILED,)
    if case.phase(flow.name) not in ended:
        return False
    return _is_counted(case, flow.name) or _tried(case, flow.name) < flow.retry.most


def _is_counted(case: _Case, name: str) -> bool:
    """Return True if the present Job is the one that is being replaced."""
    return name in case.retries and case.retries[name].uid == meta(case.jobs[name]).get("uid")


def _tried(case: _Case, name: str) -> int:
    return case.retries[name].times if name in case.retries else 0


def _counted(case: _Case, name: str) -> RetryCount:
    return RetryCount(_tried(case, name) + 1, str(meta(case.jobs[name]).get("uid", "")))


def _waits_s(case: _Case, flow: Flow) -> float:
    """Return the seconds until a Job that has ended is created again."""
    ended = epoch_of(since_of(case.jobs[flow.name]))
    delay = flow.retry.delay_s(_tried(case, flow.name))
    return (case.now if ended is None else ended) + delay - case.now


# -- status


def _status(case: _Case, phase: FlowPhase, retries: Mapping[str, RetryCount]) -> list[Write]:
    obj, old = case.obj, part(case.obj, "status")
    jobs = [case.jobs[each.name] for each in case.flow.flows if each.name in case.jobs]
    lists: dict[str, list[str]] = {name: [] for name in _LISTS}
    for job in jobs:
        found = next((name for name, phases in _LISTS.items() if phase_of(job) in phases), "unKnowJobs")
        lists[found].append(str(meta(job)["name"]))
    new = {
        **old,
        **{name: names or None for name, names in lists.items()},
        "conditions": {str(meta(job)["name"]): _condition(job) for job in jobs} or None,
        "jobStatusList": [_job_status(case, each, retries) for each in case.flow.flows if each.name in case.jobs]
        or None,
        "retries": {name: retried._asdict() for name, retried in retries.items()} or None,
        "state": {"phase": phase.value},
    }
    return status_patch(obj, new)


def _condition(job: Obj) -> Obj:
    found: Obj = {"createTime": meta(job).get("creationTimestamp", ""), "phase": phase_of(job)}
    for name in ("runningDuration", "taskStatusCount"):
        if value := part(job, "status").get(name):
            found[name] = value
    return found


def _job_status(case: _Case, flow: Flow, retries: Mapping[str, RetryCount]) -> Obj:
    job = case.jobs[flow.name]
    name, phase = str(meta(job)["name"]), phase_of(job)
    known = part(case.obj, "status").get("jobStatusList") or ()
    before = next((each for each in known if isinstance(each, dict) and each.get("name") == name), {})
    history = list(before.get("runningHistories") or ())
    if phase and (not history or history[-1].get("state") != phase):
        at = stamp(case.now)
        if history:
            history[-1] = {**history[-1], "endTimestamp": at}
        history.append({"state": phase, "startTimestamp": at})
    found: Obj = {"name": name, "state": phase, "startTimestamp": meta(job).get("creationTimestamp", "")}
    if flow.name in retries:
        found["restartCount"] = retries[flow.name].times
    return found | ({"runningHistories": history[-_HISTORY_MAX:]} if history else {})


# -- templates


def reconcile_job_template(obj: Obj, jobs: list[Obj]) -> list[Write]:
    """Return what to write for a JobTemplate: the Jobs that were made from it. ``jobs``: those of its namespace."""
    if leaving(obj):
        return []
    origin = f"{meta(obj)['namespace']}.{meta(obj)['name']}"
    made = sorted(str(meta(job)["name"]) for job in jobs if annotations_of(job).get(TEMPLATE_KEY) == origin)
    change = merge_patch(part(obj, "status"), {"jobDependsOnList": made or None})
    return [Patch(ref_of(obj), {"status": change}, "status")] if change else []
