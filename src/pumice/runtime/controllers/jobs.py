"""A ``batch.volcano.sh`` Job from its creation to its end: PodGroup, pods, restarts, status, time to live.

An action first writes the new phase and a new version of the job. By that, all pods of older versions must be deleted,
now or after a crash. If only a part of the job loses its pods, these are marked before they are deleted.

Source: Volcano's job controller and garbage collector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from pumice.model.instants import epoch_of
from pumice.model.manifest.job_fields import check_order, read_volcano_job
from pumice.model.manifest.jobs import NO_VALUES, Values, group_name_of, podgroup_of
from pumice.model.manifest.pod_spec import SpecCache
from pumice.model.manifest.reading.fields import FieldError, Obj
from pumice.model.plain_words import first_names
from pumice.model.pod import ENDED, TASK_SPEC_KEY
from pumice.model.workloads.job import JobTask, VolcanoJob
from pumice.runtime.controllers import job_frameworks, job_ssh
from pumice.runtime.controllers.encode import podgroup_object
from pumice.runtime.controllers.job_phases import (
    FINISHED,
    LIVE,
    TARGETED,
    Counts,
    JobAction,
    JobPhase,
    Move,
    count_pods,
    move,
    phase_by_pods,
)
from pumice.runtime.controllers.job_plugins import plugins_of, pod_name, unknown_arguments
from pumice.runtime.controllers.job_pods import controlled_resources, pod_objects, supporting_objects
from pumice.runtime.controllers.job_policies import (
    OUT_OF_SYNC,
    PolicyAction,
    Request,
    happened,
    is_current,
    is_target,
    judge,
    version_of,
)
from pumice.runtime.controllers.job_status import JobState, since_of, state_of_job, status_writes
from pumice.runtime.controllers.writes import (
    COMMAND_API,
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
    owner_reference,
    part,
    ref_of,
)

_DEFAULT_QUEUE = "default"
_WANTED = (JobAction.COMPLETE, JobAction.RESUME)  # not failures
_SHOWN = 5


class JobView(Struct, frozen=True):
    """What is known of a job: itself, its pods, its PodGroup if any, commands for it, events (``lost`` pods, and
    requests that a ``Wake`` kept), and the queue that its namespace names, if any."""

    job: Obj
    pods: list[Obj] = []
    group: Obj | None = None
    commands: list[Obj] = []
    requests: tuple[Request, ...] = ()
    namespace_queue: str = ""


class _Case(Struct, frozen=True):
    """A view, decoded."""

    obj: Obj
    job: VolcanoJob
    pods: list[Obj]
    group: Obj | None
    state: JobState
    priorities: Values
    now: float
    new_keys: job_ssh.NewKeys

    @property
    def group_name(self) -> str:
        return group_name_of(self.job) if self.group is None else str(meta(self.group)["name"])


def reconcile_job(
    view: JobView,
    now: float,
    cache: SpecCache,
    priorities: Values = NO_VALUES,
    scheduler_names: tuple[str, ...] = ("volcano",),
    new_keys: job_ssh.NewKeys = job_ssh.new_keys,
) -> list[Write]:
    """Return what to write for a job now. ``priorities``: the value of each PriorityClass. ``new_keys``: creates a pair
    of keys for a job whose pods use ssh."""
    obj = view.job
    if leaving(obj):
        return []
    try:
        job = _in_queue(read_volcano_job(obj, cache, _DEFAULT_QUEUE, scheduler_names[0]), view)
        plugins = plugins_of(obj)
        unknown = [*unknown_arguments(plugins), *job_frameworks.ray_doubts(obj, job, plugins)]
        job_frameworks.check(job, plugins)
        job_ssh.check(plugins)
        check_order(((task.name, task.depends_on) for task in job.tasks), "spec.tasks")
    except FieldError as error:
        return [Emit(ref_of(obj), "Warning", "JobStatusError", str(error))]
    if (part(obj, "spec").get("schedulerName") or scheduler_names[0]) not in scheduler_names:
        return []
    uid = meta(obj).get("uid", "")
    pods = sorted((p for p in view.pods if controller_uid(p) == uid), key=lambda p: str(meta(p)["name"]))
    case = _Case(obj, job, pods, view.group, state_of_job(obj), priorities, now, new_keys)
    chosen, wakes = _action_for(case, view)
    found = move(case.state.phase, chosen.action)
    consumed: list[Write] = [Delete(ref_of(command)) for command in view.commands if not leaving(command)]
    if found is not None:
        return [*_moved(case, found, chosen), *consumed, *wakes]
    if case.state.phase in LIVE:
        try:
            writes = _kept(case)
        except job_ssh.NoKeys as error:
            return [Emit(ref_of(obj), "Warning", "PluginError", str(error)), *consumed, *wakes]
    elif case.state.phase is JobPhase.RESTARTING:
        writes = _restarting(case)
    else:
        writes = _ending(case)
    return [*writes, *consumed, *wakes, *_doubts(case, unknown)]


def _doubts(case: _Case, unknown: list[str]) -> Iterator[Write]:
    """Yield warnings. ``unknown``: arguments of plugins."""
    if unknown:
        yield Emit(ref_of(case.obj), "Warning", "PluginArgument", "; ".join(unknown))
    first = sum(task.replicas for task in case.job.tasks if not task.depends_on)
    if case.job.min_available > first:
        text = (
            f"minAvailable is {case.job.min_available}, and only {first} pods are made before others run (dependsOn):"
            " the gang is never complete"
        )
        yield Emit(ref_of(case.obj), "Warning", "DependsOn", text)


def _in_queue(job: VolcanoJob, view: JobView) -> VolcanoJob:
    """Return the job with a queue. A job without one is in that of its PodGroup, which is created in the queue of the
    namespace."""
    if job.queue != _DEFAULT_QUEUE:
        return job
    queue = view.namespace_queue if view.group is None else part(view.group, "spec").get("queue")
    return replace(job, queue=queue) if isinstance(queue, str) and queue else job


def command_target(command: Obj) -> tuple[str, str] | None:
    """Return (kind, UID) of a command's target, or None."""
    target = command.get("target")
    if command.get("apiVersion") != COMMAND_API or not isinstance(target, dict):
        return None
    return str(target.get("kind", "")), str(target.get("uid", ""))


def _action_for(case: _Case, view: JobView) -> tuple[PolicyAction, list[Write]]:
    """Return what to do, and when to examine the job again. Events count while pods are created, orders always."""
    version = case.state.version
    requests = [
        Request(action=command["action"], version=version)
        for command in sorted(view.commands, key=lambda each: str(meta(each).get("creationTimestamp", "")))
        if not leaving(command) and command.get("action") in tuple(JobAction)
    ]
    if case.state.phase in LIVE or case.state.phase is JobPhase.RESTARTING:
        requests += happened(case.pods, case.group, case.job, version, count_pods(case.pods))
        requests += view.requests
    chosen = judge(case.job, version, requests, case.now)
    if not chosen.later:
        return chosen, []
    known = set(view.requests)
    kept = tuple(request for _, request in chosen.later if request in known)
    return chosen, [Wake(ref_of(case.obj), min(wait for wait, _ in chosen.later), kept)]


# -- an action


def _moved(case: _Case, to: Move, chosen: PolicyAction) -> list[Write]:
    """Return writes for a change of phase, the phase first. A part of the job is then deleted here; the whole of it by
    its new phase."""
    old = case.state
    retries = old.retries + to.retry
    message = f"by {chosen.action.value}: {chosen.why}"
    text = f"Start to execute action {chosen.action.value}: {chosen.why}"
    kind = "Normal" if chosen.action in _WANTED else "Warning"
    event = Emit(ref_of(case.obj), kind, "ExecuteAction", text)
    if chosen.action in TARGETED:
        targets = set(chosen.targets)
        doomed = [pod for pod in case.pods if is_current(pod, old.version) and is_target(pod, targets)]
        after = JobState(to.phase, old.version, retries)
        writes = status_writes(case.obj, case.job, after, count_pods(case.pods), case.now, message)
        return [*writes, event, *_marked(doomed)]
    after = JobState(to.phase, old.version + 1, retries)
    writes = status_writes(case.obj, case.job, after, count_pods(case.pods), case.now, message)
    return [*writes, event, *_group_deleted(case)]


def _marked(pods: list[Obj]) -> Iterator[Write]:
    for pod in pods:
        yield Patch(ref_of(pod), {"metadata": {"annotations": {OUT_OF_SYNC: "true"}}})
        if not leaving(pod):
            yield Delete(ref_of(pod))


def _group_deleted(case: _Case) -> list[Write]:
    return [Delete(ref_of(case.group))] if case.group is not None and not leaving(case.group) else []


# -- phases in which pods are made, and between two tries


def _kept(case: _Case) -> list[Write]:
    """Return writes that bring PodGroup, pods and status to what the job wants."""
    job, state = case.job, case.state
    controlled = controlled_resources(case.obj, job)
    there = part(case.obj, "status").get("controlledResources", {}) == controlled
    creates = () if there else supporting_objects(case.obj, job, case.new_keys)
    doomed = _unwanted(case, surplus=True)
    counts = _counts_without(case, doomed)
    after = JobState(phase_by_pods(job, state.phase, counts, state.retries), state.version, state.retries)
    return [
        *creates,
        *_group_writes(case),
        *_deletes(case, doomed),
        *_created(case),
        *status_writes(case.obj, job, after, counts, case.now, _why_failed(case, after, counts), controlled=controlled),
        *_failure(case, after, counts),
        *_group_trouble(case),
    ]


def _restarting(case: _Case) -> list[Write]:
    doomed = _unwanted(case, surplus=False)
    counts = _counts_without(case, doomed)
    old = case.state
    after = JobState(phase_by_pods(case.job, old.phase, counts, old.retries), old.version, old.retries)
    writes = status_writes(case.obj, case.job, after, counts, case.now, _why_failed(case, after, counts))
    return [*_deletes(case, doomed), *writes, *_failure(case, after, counts)]


def _why_failed(case: _Case, after: JobState, counts: Counts) -> str:
    """Return a reason for people, "" if the job has not just failed."""
    if after.phase is not JobPhase.FAILED or case.state.phase is JobPhase.FAILED:
        return ""
    if case.state.phase is JobPhase.RESTARTING:
        return f"restarted {after.retries} times, the limit of its maxRetry ({case.job.max_retry})"
    failed = sorted(str(meta(pod)["name"]) for pod in case.pods if part(pod, "status").get("phase") == "Failed")
    shown = f", failed: {first_names(failed, _SHOWN)}" if failed else ""
    return f"{counts.succeeded} of {case.job.replicas} pods succeeded{shown}"


def _failure(case: _Case, after: JobState, counts: Counts) -> list[Write]:
    why = _why_failed(case, after, counts)
    return [Emit(ref_of(case.obj), "Warning", "JobFailed", f"Job failed: {why}")] if why else []


def _unwanted(case: _Case, *, surplus: bool) -> list[Obj]:
    """Return pods to delete: of an older version, marked, or more than the job wants. After the last retry, finished
    pods stay for inspection."""
    job, state = case.job, case.state
    keep = state.retries >= job.max_retry
    wanted = _wanted_names(job) if surplus else None
    found = []
    for pod in case.pods:
        if leaving(pod):
            continue
        stale = version_of(pod) < state.version and not (keep and _finished(pod))
        extra = wanted is not None and meta(pod)["name"] not in wanted
        if stale or extra or OUT_OF_SYNC in annotations_of(pod):
            found.append(pod)
    return found


def _deletes(case: _Case, pods: list[Obj]) -> Iterator[Write]:
    """Yield deletions. Pods of the present version are marked first, so that they are not mistaken for evictions."""
    for pod in pods:
        yield from _marked([pod]) if is_current(pod, case.state.version) else (Delete(ref_of(pod)),)


def _counts_without(case: _Case, doomed: list[Obj]) -> Counts:
    return count_pods(case.pods, frozenset(str(meta(pod).get("uid")) for pod in doomed))


def _wanted_names(job: VolcanoJob) -> dict[str, JobTask]:
    return {pod_name(job, task.name, i): task for task in job.tasks for i in range(task.replicas)}


def _created(case: _Case) -> list[Write]:
    """Return the missing pods, once the PodGroup is admitted. A name that is still in use is waited for."""
    group = case.group
    if group is None or leaving(group) or part(group, "status").get("phase") in (None, "", "Pending"):
        return []
    there = {meta(pod)["name"] for pod in case.pods}
    running = Counter(annotations_of(pod).get(TASK_SPEC_KEY) for pod in case.pods if _runs_or_ran(pod))
    enough = {task.name: running[task.name] >= task.minimum for task in case.job.tasks}
    ready = {task.name: _depends_on_ready(task, enough) for task in case.job.tasks}
    names = frozenset(n for n, task in _wanted_names(case.job).items() if n not in there and ready[task.name])
    if not names:
        return []
    state = case.state
    return [
        Create(pod) for pod in pod_objects(case.obj, case.job, names, case.group_name, state.version, state.retries)
    ]


def _depends_on_ready(task: JobTask, enough: Mapping[str, bool]) -> bool:
    """Return True if the pods of a task may be created. ``enough``: by task, whether as many of its pods run, or ran
    successfully, as the task must have, all if it does not say (Volcano's webhook writes that into the job)."""
    if not task.depends_on:
        return True
    answers = (enough[name] for name in task.depends_on)
    return any(answers) if task.depends_on_any else all(answers)


def _runs_or_ran(pod: Obj) -> bool:
    status = part(pod, "status")
    if leaving(pod) or status.get("phase") not in ("Running", "Succeeded"):
        return False
    return status["phase"] == "Succeeded" or all(c.get("ready") for c in status.get("containerStatuses") or ())


# -- the PodGroup


def _group_writes(case: _Case) -> list[Write]:
    wanted = podgroup_object(podgroup_of(case.job, case.priorities), [owner_reference(case.obj)])
    if case.group is None:
        return [Create(wanted)]
    if leaving(case.group):
        return []
    spec, new = part(case.group, "spec"), wanted["spec"]
    tasks = {**part(spec, "minTaskMember"), **new.get("minTaskMember", {})}
    followed = {key: new.get(key) for key in ("priorityClassName", "minMember", "minResources", "subGroupPolicy")}
    changed = merge_patch(spec, {**spec, **followed, "minTaskMember": tasks or None})
    return [Patch(ref_of(case.group), {"spec": changed})] if changed else []


def _group_trouble(case: _Case) -> list[Write]:
    """Return an event on the job for what the scheduler says about its PodGroup."""
    conditions = part(case.group or {}, "status").get("conditions") or ()
    true = [each for each in conditions if isinstance(each, dict) and each.get("status") == "True"]
    newest = max(true, key=lambda each: str(each.get("lastTransitionTime", "")), default=None)
    if newest is None or newest.get("type") == "Scheduled":
        return []
    kind, why = str(newest.get("type", "")).lower(), newest.get("message", "")
    text = f"PodGroup {case.job.namespace}:{case.job.name} {kind}, reason: {why}"
    return [Emit(ref_of(case.obj), "Warning", "PodGroupPending", text)]


# -- the end


def _ending(case: _Case) -> list[Write]:
    """Return deletions of unfinished pods and the PodGroup, and after its time to live of the job."""
    doomed = [pod for pod in case.pods if not leaving(pod) and not _finished(pod)]
    counts = _counts_without(case, doomed)
    old = case.state
    after = JobState(phase_by_pods(case.job, old.phase, counts, old.retries), old.version, old.retries)
    writes: list[Write] = [Delete(ref_of(pod)) for pod in doomed]
    writes += _group_deleted(case)
    writes += status_writes(case.obj, case.job, after, counts, case.now)
    return writes + (_outlived(case) if after.phase in FINISHED else [])


def _outlived(case: _Case) -> list[Write]:
    since = epoch_of(since_of(case.obj))
    if case.job.ttl_s is None or since is None:
        return []
    left = since + case.job.ttl_s - case.now
    return [Wake(ref_of(case.obj), left)] if left > 0 else [Delete(ref_of(case.obj))]


def _finished(pod: Obj) -> bool:
    return part(pod, "status").get("phase") in ENDED
