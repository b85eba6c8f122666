"""A ``batch/v1`` Job: creates pods of its template until enough have succeeded, and counts each that ended once.

A pod holds the tracking finalizer until it is counted: first its UID is written into ``uncountedTerminatedPods``, then
the finalizer is removed, then the UID becomes part of a number. A stop between any two of these loses and repeats
nothing. Source: Kubernetes' job controller, without ``podFailurePolicy``, ``successPolicy`` and
``backoffLimitPerIndex``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field

from pumice.model.instants import epoch_of, stamp
from pumice.model.manifest.reading.fields import Obj
from pumice.model.pod import ENDED
from pumice.runtime.controllers.job_indexes import Indexes
from pumice.runtime.controllers.writes import (
    Create,
    Delete,
    Patch,
    Wake,
    Write,
    age_key,
    annotations_of,
    labels_of,
    leaving,
    meta,
    owner_reference,
    part,
    ref_of,
    status_patch,
)

INDEX = "batch.kubernetes.io/job-completion-index"
FINALIZER = "batch.kubernetes.io/job-tracking"
_INDEX_ENV = "JOB_COMPLETION_INDEX"
#: Pods that are created in one call. The controller is called again for the rest, after what else is due.
CREATED_MAX = 500
_BACKOFF_FIRST_S, _BACKOFF_LAST_S = 10.0, 600.0


class _Pods(Struct):
    """The pods of a job. ``held``: that ended or are leaving, with the finalizer. ``succeeded``, ``failed``: UIDs that
    are part of no number yet. ``indexes``: that succeeded."""

    active: list[Obj] = field(default_factory=list)
    terminating: int = 0
    held: list[Obj] = field(default_factory=list)
    succeeded: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    last_failure: float = 0.0
    indexes: set[int] = field(default_factory=set)


def is_finished(job: Obj) -> bool:
    """Return True if a job is complete or has failed."""
    return bool(_condition(job, "Complete") or _condition(job, "Failed"))


def is_complete(job: Obj) -> bool:
    """Return True if a job has succeeded."""
    return _condition(job, "Complete") is not None


def reconcile_batch_job(job: Obj, pods: Sequence[Obj], now: float) -> list[Write]:
    """Return what to write for a Job now. ``pods``: those that it controls. ``now``: seconds since the epoch."""
    if leaving(job):
        return [_released(pod) for pod in pods if _is_held(pod)]
    spec, status = part(job, "spec"), part(job, "status")
    found = _sorted_out(job, pods)
    if is_finished(job):
        return [*_forget(job, now), *_counted(job, found, status), *_deletions(found.active)]
    suspended = bool(spec.get("suspend"))
    new = dict(status)
    if not suspended and not status.get("startTime"):
        new["startTime"] = stamp(now)
    done = _completed_indexes(job) | found.indexes
    succeeded = done.count() if _is_indexed(job) else _number(status, "succeeded") + len(found.succeeded)
    failed = _number(status, "failed") + len(found.failed)
    ending = _ending(spec, new, succeeded, failed, len(found.active), now)
    writes: list[Write] = []
    if ending:
        new = _ended(new, *ending, now)
        writes += _deletions(found.active)
        found = _stopped(found)
    elif suspended:
        writes += _deletions(found.active)
        found = _stopped(found)
        new = _suspension(new, now, "True")
    else:
        new = _suspension(new, now, "False") if _condition(job, "Suspended") else new
        writes += _manage(job, found, succeeded, failed, done, now)
        writes += _wakes(job, new, now)
    if _is_indexed(job):
        new["completedIndexes"] = done.text() or None
    return [*_counted(job, found, new), *writes]


# -- what became of pods


def _sorted_out(job: Obj, pods: Sequence[Obj]) -> _Pods:
    found = _Pods()
    uncounted = part(job, "status", "uncountedTerminatedPods")
    known = {uid for uids in uncounted.values() for uid in uids or ()}
    for pod in sorted(pods, key=age_key):
        phase = part(pod, "status").get("phase") or "Pending"
        held = _is_held(pod)
        if phase not in ENDED and not leaving(pod):
            found.active.append(pod)
            continue
        if phase not in ENDED and part(pod, "spec").get("nodeName"):
            found.terminating += 1
        index = _index_of(pod)
        if phase == "Succeeded" and index is not None:
            found.indexes.add(index)
        if held:
            found.held.append(pod)
        new = held and meta(pod)["uid"] not in known
        if phase == "Succeeded":
            found.succeeded += [meta(pod)["uid"]] if new else []
        else:
            found.failed += [meta(pod)["uid"]] if new else []
            found.last_failure = max(found.last_failure, _end_of(pod))
    found.succeeded += uncounted.get("succeeded") or ()
    found.failed += uncounted.get("failed") or ()
    return found


def _stopped(found: _Pods) -> _Pods:
    found.terminating += sum(bool(part(pod, "spec").get("nodeName")) for pod in found.active)
    found.active = []
    return found


def _counted(job: Obj, found: _Pods, new: Obj) -> list[Write]:
    """Return the writes that count pods that ended. Those without the finalizer become part of a number."""
    held = {meta(pod)["uid"] for pod in found.held}
    uncounted: Obj = {}
    new = dict(new)
    for key, uids in (("succeeded", found.succeeded), ("failed", found.failed)):
        waiting = [uid for uid in uids if uid in held]
        uncounted[key] = waiting or None
        if number := len(uids) - len(waiting) + _number(new, key):
            new[key] = number
    if _is_indexed(job):
        new["succeeded"] = (_completed_indexes(job) | found.indexes).count() or None
    ready = sum(
        any(c.get("type") == "Ready" and c.get("status") == "True" for c in _conditions(p)) for p in found.active
    )
    new |= {"active": len(found.active) or None, "ready": ready, "terminating": found.terminating}
    new["uncountedTerminatedPods"] = {key: uids for key, uids in uncounted.items() if uids}
    return [*status_patch(job, new), *map(_released, found.held)]


def _is_held(pod: Obj) -> bool:
    return FINALIZER in (meta(pod).get("finalizers") or ())


def _released(pod: Obj) -> Patch:
    left = [each for each in meta(pod).get("finalizers") or () if each != FINALIZER]
    return Patch(ref_of(pod), {"metadata": {"finalizers": left or None}})


def _deletions(pods: Iterable[Obj]) -> Iterator[Write]:
    """Yield the writes that end pods. They do not count as failed: the finalizer is removed before."""
    for pod in pods:
        if _is_held(pod):
            yield _released(pod)
        yield Delete(ref_of(pod))


def _end_of(pod: Obj) -> float:
    """Return when a pod ended: its containers, else when it was last ready, deleted or created."""
    ends = [
        part(c, "state", "terminated").get("finishedAt") for c in part(pod, "status").get("containerStatuses") or ()
    ]
    ready = [each.get("lastTransitionTime") for each in _conditions(pod) if each.get("type") == "Ready"]
    for times in (ends, ready, [meta(pod).get("deletionTimestamp")], [meta(pod).get("creationTimestamp")]):
        found = [at for text in times if text and (at := epoch_of(str(text))) is not None]
        if found:
            return max(found)
    return 0.0


# -- what is missing


def _manage(job: Obj, found: _Pods, succeeded: int, failed: int, done: Indexes, now: float) -> Iterator[Write]:
    """Yield pods that are missing, or deletions of those that are too many, the youngest first."""
    spec = part(job, "spec")
    wanted = _number(spec, "parallelism", 1)
    completions = spec.get("completions")
    if completions is not None:
        wanted = min(wanted, max(completions - succeeded, 0))
    elif succeeded:
        wanted = len(found.active)  # any one success is enough, and those that run may end
    surplus: list[Obj] = []
    needed: list[Obj] = []
    for pod in found.active:
        has_no_use = _is_indexed(job) and ((index := _index_of(pod)) is None or index in done)
        (surplus if has_no_use else needed).append(pod)
    surplus += needed[max(wanted, 0) :]
    yield from _deletions(surplus)
    missing = min(wanted - (len(found.active) - len(surplus)), CREATED_MAX)
    if missing <= 0:
        return
    if failed:
        resumes = found.last_failure + min(_BACKOFF_FIRST_S * 2 ** min(failed - 1, 10), _BACKOFF_LAST_S)
        if resumes > now:
            yield Wake(ref_of(job), resumes - now)
            return
    taken = done | {index for pod in found.active if (index := _index_of(pod)) is not None}
    free = taken.missing(completions or 0)
    for _ in range(missing):
        index = next(free, None) if _is_indexed(job) else None
        if _is_indexed(job) and index is None:
            return
        yield Create(_pod(job, index))


def _pod(job: Obj, index: int | None) -> Obj:
    """Return a new pod. One with an index finds it in its labels, its annotations, its environment and its name."""
    template = copy.deepcopy(part(job, "spec", "template"))
    spec, name = part(template, "spec"), str(meta(job)["name"])
    labels, annotations = dict(labels_of(template)), dict(annotations_of(template))
    if index is not None:
        labels[INDEX] = annotations[INDEX] = str(index)
        spec.setdefault("hostname", f"{name}-{index}"[:63])
        source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
        for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
            given = container.get("env") or []
            if all(each.get("name") != _INDEX_ENV for each in given):
                container["env"] = [*given, {"name": _INDEX_ENV, "valueFrom": source}]
    stem = name if index is None else f"{name}-{index}"
    metadata = {
        "generateName": f"{stem[:57]}-",
        "namespace": meta(job)["namespace"],
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": [owner_reference(job)],
        "finalizers": [*(meta(template).get("finalizers") or ()), FINALIZER],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


# -- how it ends


def _ending(
    spec: Obj, status: Obj, succeeded: int, failed: int, active: int, now: float
) -> tuple[str, str, str] | None:
    """Return the condition with which a job ends now (type, reason, message), None if it goes on."""
    limit, deadline, completions = (
        _number(spec, "backoffLimit", 6),
        spec.get("activeDeadlineSeconds"),
        spec.get("completions"),
    )
    if failed > limit:
        return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    began = epoch_of(str(status.get("startTime") or ""))
    if deadline is not None and began is not None and not spec.get("suspend") and now - began >= deadline:
        return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
    if succeeded >= completions if completions is not None else succeeded and not active:
        return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
    return None


def _ended(status: Obj, kind: str, reason: str, message: str, now: float) -> Obj:
    at = stamp(now)
    first = "FailureTarget" if kind == "Failed" else "SuccessCriteriaMet"
    about = {"status": "True", "lastProbeTime": at, "lastTransitionTime": at, "reason": reason, "message": message}
    conditions = [*(status.get("conditions") or ()), {"type": first, **about}, {"type": kind, **about}]
    return {**status, "conditions": conditions, **({"completionTime": at} if kind == "Complete" else {})}


def _suspension(status: Obj, now: float, value: str) -> Obj:
    """Return the status of a job that is suspended, or resumed. The time of a deadline begins anew then."""
    old = next((each for each in status.get("conditions") or () if each.get("type") == "Suspended"), None)
    if old is not None and old.get("status") == value:
        return status
    at, suspended = stamp(now), value == "True"
    about = ("JobSuspended", "Job suspended") if suspended else ("JobResumed", "Job resumed")
    condition = {"type": "Suspended", "status": value, "lastProbeTime": at, "lastTransitionTime": at}
    condition |= {"reason": about[0], "message": about[1]}
    kept = [each for each in status.get("conditions") or () if each is not old]
    return {**status, "conditions": [*kept, condition], "startTime": None if suspended else at}


def _wakes(job: Obj, status: Obj, now: float) -> Iterator[Wake]:
    deadline, began = part(job, "spec").get("activeDeadlineSeconds"), epoch_of(str(status.get("startTime") or ""))
    if deadline is not None and began is not None:
        yield Wake(ref_of(job), max(began + deadline - now, 0.0))


def _forget(job: Obj, now: float) -> Iterator[Write]:
    """Yield the deletion of a finished job whose time to stay is over, or when it will be."""
    stays = part(job, "spec").get("ttlSecondsAfterFinished")
    condition = _condition(job, "Complete") or _condition(job, "Failed") or {}
    ended = epoch_of(str(condition.get("lastTransitionTime", "")))
    if stays is None or ended is None:
        return
    left = ended + stays - now
    yield Wake(ref_of(job), left) if left > 0 else Delete(ref_of(job))


# -- fields


def _is_indexed(job: Obj) -> bool:
    return part(job, "spec").get("completionMode") == "Indexed"


def _index_of(pod: Obj) -> int | None:
    text = annotations_of(pod).get(INDEX, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def _completed_indexes(job: Obj) -> Indexes:
    """Return the indexes of ``status.completedIndexes`` below the number of completions."""
    text = str(part(job, "status").get("completedIndexes") or "")
    return Indexes.read(text, _number(part(job, "spec"), "completions"))


def _number(obj: Obj, key: str, default: int = 0) -> int:
    found = obj.get(key)
    return found if isinstance(found, int) else default


def _conditions(obj: Obj) -> list[Obj]:
    return part(obj, "status").get("conditions") or []


def _condition(job: Obj, kind: str) -> Obj | None:
    return next((c for c in _conditions(job) if c.get("type") == kind and c.get("status") == "True"), None)
