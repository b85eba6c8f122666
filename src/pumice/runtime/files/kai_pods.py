"""Give KAI's pods in files their PodGroups, as KAI's pod-grouper does on a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from pumice.model.manifest.jobs import pods_of_batch_job
from pumice.model.manifest.reading.fields import FieldError, Obj
from pumice.model.plain_words import first_names
from pumice.model.workloads.job import BatchJob
from pumice.runtime.controllers.kai.groups import (
    GROUP_API,
    GroupAssignment,
    GroupingSettings,
    group_for,
    membership,
    missing_queues,
    needs_group,
)
from pumice.runtime.controllers.kai.karta import KARTA_API
from pumice.runtime.controllers.kai.kind_defaults import KindDefaults, has_kind_defaults, read_kind_defaults
from pumice.runtime.controllers.kai.kubeflow import launched_job
from pumice.runtime.controllers.kai.owners import pod_gang_of
from pumice.runtime.controllers.kai.plan import NoGang
from pumice.runtime.controllers.kai.rules import PodContext
from pumice.runtime.controllers.writes import Create, annotations_of, controller_of, meta, part
from pumice.runtime.problems.problem import Problem, Severity, unforeseen

#: Pods that Jobs in files may create together. Bounded, because tenants write the numbers of pods and Jobs.
MADE_PODS_MAX = 100_000
_DURATION = "pumice.dev/duration"
_SPANS = ("pumice.dev/arrival", _DURATION)  # of a Job, for its pods in a simulation
_DEPTH_MAX = 8  # owners of owners
#: How pods in files are grouped, where no flag says otherwise.
KAI_GROUPING = GroupingSettings()
_QUEUE_API = "scheduling.run.ai/v2"
_SYSTEM_CLASS = "system-"  # classes that every cluster has
_SHOWN = 3

_Key = tuple[str, str, str, str]  # API group, kind, namespace, name


class _Pod(Struct, frozen=True):
    """``obj``: with a namespace and a uid. ``written``: as it is in the file."""

    where: str
    obj: Obj
    written: Obj


class KaiPods:
    """Pods that need a group, and what owns them. ``problems``: what was wrong with owners, and what was made."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.owning: set[tuple[str, str]] = set()  # apiVersion and kind of owners that were read for a group
        self._pods: list[_Pod] = []
        self._with_pods: set[tuple[str, str]] = set()  # Jobs that own a pod, by namespace and name
        self._launched: set[tuple[str, str]] = set()  # MPI jobs whose launcher has a pod, by namespace and name
        self._owners: dict[_Key, Obj] = {}
        self._groups: dict[tuple[str, str], Obj] = {}  # of each only whether it has sub-groups
        self._queues: set[str] = set()
        self._kartas: list[Obj] = []
        self._classes: set[str] = set()
        self._defaults: dict[tuple[str, str], tuple[str, Obj]] = {}  # ConfigMaps, by namespace and name

    def take(self, where: str, obj: Any) -> bool:
        """Return True if the object is a pod that needs a group: it is given out later, by ``read``."""
        if not _is_object(obj):
            return False
        if obj.get("kind") == "Pod":
            if not _is_pod(obj):
                return False
            self._note_job_of(obj)
            if part(obj, "spec").get("schedulerName") in KAI_GROUPING.scheduler_names:
                self.may_own(obj)  # a leader owns its workers, a driver its executors
            if (job := launched_job(_with_names(obj))) is not None:
                self._launched.add(job)
            if not needs_group(obj, KAI_GROUPING):
                return False
            self._pods.append(_Pod(where, _with_names(obj), obj))
            return True
        if (obj.get("kind"), obj.get("apiVersion")) == ("Karta", KARTA_API):
            self._kartas.append(obj)
            self.owning.add((KARTA_API, "Karta"))
        if obj.get("kind") == "PriorityClass":
            self._classes.add(str(meta(obj).get("name")))
        if (obj.get("kind"), obj.get("apiVersion")) == ("ConfigMap", "v1") and has_kind_defaults(obj):
            named = _with_names(obj)["metadata"]
            self._defaults.setdefault((named["namespace"], str(named.get("name"))), (where, obj))
        if obj.get("kind") == "Queue" and obj.get("apiVersion") == _QUEUE_API:
            self._queues.add(str(meta(obj).get("name")))
        if obj.get("kind") == "PodGroup" and obj.get("apiVersion") == GROUP_API:
            named = _with_names(obj)["metadata"]
            has_parts = bool(part(obj, "spec").get("subGroups"))
            self._groups[named["namespace"], str(named.get("name"))] = {"spec": {"subGroups": has_parts}}
        return False

    def _note_job_of(self, pod: Obj) -> None:
        owners = meta(pod).get("ownerReferences")
        for each in owners if isinstance(owners, list) else ():
            if isinstance(each, dict) and each.get("kind") == "Job":
                self._with_pods.add((_with_names(pod)["metadata"]["namespace"], str(each.get("name"))))

    def may_own(self, obj: Any) -> None:
        """Note an object that may own pods, or own their owners."""
        if _is_object(obj):
            self._owners[_key_of(obj)] = _with_names(obj)

    def create_pods(self, jobs: Iterable[tuple[BatchJob, str]]) -> None:
        """Create the pods of Jobs of batch/v1 that have none, with their places, if KAI's scheduler places them."""
        left = MADE_PODS_MAX
        for job, where in sorted(jobs, key=lambda each: (each[0].replicas, each[0].key)):
            is_ours = job.template.scheduler_name in KAI_GROUPING.scheduler_names
            if not is_ours or (job.namespace, job.name) in self._with_pods:
                continue
            left -= job.replicas
            if left < 0:
                what = f"Job {job.key}: gets no PodGroup: Jobs of KAI create at most {MADE_PODS_MAX:,} pods"
                self.problems.append(Problem(where, what))
                continue
            if job.completions is not None and job.completions > job.replicas > 0:
                what = f"completions {job.completions} above parallelism: only the first {job.replicas} pods are run"
                self.problems.append(Problem(f"Job {job.key}", what, Severity.WARNING))
            key = ("batch", "Job", job.namespace, job.name)
            for pod in raw_pods_of_job(job, self._owners[key]):
                self._pods.append(_Pod(where, pod, pod))
            # Each pod runs for itself; a group with a duration would end with the first.
            self._owners[key] = _without_duration(self._owners[key])

    def read(self) -> Iterator[tuple[str, Obj]]:
        """Yield each group that is made, each pod with its group, and missing queues, with their places."""
        wanted: dict[tuple[str, str], tuple[str, Obj]] = {}
        pods: list[tuple[str, Obj]] = []
        made: list[str] = []
        defaults = self._read_defaults() if self._pods else KindDefaults()
        # By age and name, so that the result does not depend on the order of files.
        for pod in sorted(self._pods, key=_age):
            found = self._grouped(pod, defaults)
            if found is not None:
                namespace, name = meta(found.group)["namespace"], meta(found.group)["name"]
                if (namespace, name) not in self._groups:
                    wanted[namespace, name] = pod.where, found.group
                made.append(f"{namespace}/{meta(pod.obj)['name']}")
            pods.append((pod.where, pod.written if found is None else _member(pod.written, found)))
        self._report(made)
        yield from wanted.values()
        yield from pods
        names = {part(group, "spec").get("queue") for _, group in wanted.values()}
        if KAI_GROUPING.default_queue in names:
            yield from default_queues(sorted(self._queues))

    def _read_defaults(self) -> KindDefaults:
        """Return the defaults of kinds. On a cluster a flag names their ConfigMap; here it is known by its content."""
        if not self._defaults:
            return KindDefaults()
        self.owning.add(("v1", "ConfigMap"))
        chosen, *others = sorted(self._defaults)
        for other in others:
            what = f"ConfigMap {'/'.join(other)} has defaults of kinds too; using those of {'/'.join(chosen)}"
            self.problems.append(Problem(self._defaults[other][0], what, Severity.WARNING))
        where, config_map = self._defaults[chosen]
        try:
            return read_kind_defaults(config_map)
        except FieldError as error:
            self.problems.append(Problem(where, f"ConfigMap {'/'.join(chosen)}: {error}; no kind has defaults"))
        return KindDefaults()

    def _class_exists(self, name: str) -> bool:
        # Files often leave out PriorityClasses altogether; then every class counts.
        return not self._classes or name in self._classes or name.startswith(_SYSTEM_CLASS)

    def _grouped(self, pod: _Pod, defaults: KindDefaults) -> GroupAssignment | None:
        try:
            return group_for(pod.obj, self._context_of(pod.obj, defaults), KAI_GROUPING)
        except NoGang as error:
            self.problems.append(Problem(f"{pod.where}, Pod {meta(pod.obj).get('name')}", str(error)))
        except Exception as error:
            # Owners are read as they are written, and anything may be written in a file.
            self.problems.append(Problem(pod.where, unforeseen(error)))
        return None

    def _context_of(self, pod: Obj, defaults: KindDefaults) -> PodContext:
        owners, namespace = self._owners_of(pod), meta(pod)["namespace"]
        self.owning |= {(str(each.get("apiVersion")), str(each.get("kind"))) for each in owners}
        ref = pod_gang_of(pod, owners)
        gang = None
        if ref is not None:
            group = ref.api_version.partition("/")[0]
            gang = self._owners.get((group, ref.kind, namespace, ref.name))
            self.owning.add((ref.api_version, ref.kind))

        def find_group(name: str) -> Obj | None:
            return self._groups.get((namespace, name))

        launched = self._launcher_there(owners)
        return PodContext(owners, find_group, launched, gang, self._kartas, defaults, self._class_exists)

    def _owners_of(self, pod: Obj) -> list[Obj]:
        """Return the controlling owners, the nearest first. Of one that is in no file only its reference is known."""
        found: list[Obj] = []
        ref = controller_of(pod)
        while ref is not None and len(found) < _DEPTH_MAX:
            group = ref.api_version.rpartition("/")[0]
            stub: Obj = {"metadata": {"namespace": ref.namespace, "name": ref.name, "uid": ref.uid}}
            owner = self._owners.get((group, ref.kind, ref.namespace, ref.name), stub)
            found.append({**owner, "apiVersion": ref.api_version, "kind": ref.kind})
            ref = controller_of(owner)
        return found

    def _launcher_there(self, owners: list[Obj]) -> bool:
        job = next((each for each in owners if each.get("kind") == "MPIJob"), None)
        return job is None or (meta(job).get("namespace", ""), meta(job).get("name", "")) in self._launched

    def _report(self, made: list[str]) -> None:
        if made:
            what = "has no PodGroup and got one, as KAI's pod-grouper would create it"
            self.problems.append(Problem(f"Pod {first_names(made, _SHOWN)}", what, Severity.NOTE))


def raw_pods_of_job(job: BatchJob, written: Obj) -> Iterator[Obj]:
    """Yield the first pods of a Job of batch/v1 as an API server would have them. ``written``: the Job as it is in the
    file, with a namespace and a uid."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job.name, "uid": meta(written)["uid"], "controller": True}
    created = {"creationTimestamp": made} if (made := meta(written).get("creationTimestamp")) else {}
    spans = {key: text for key, text in job.annotations.items() if key in _SPANS}
    spec = dict(part(written, "spec", "template", "spec"))
    if job.active_deadline_s is not None:  # it counts from the start of the Job, which is that of its first pods
        spec["activeDeadlineSeconds"] = int(job.active_deadline_s)
    for pod in pods_of_batch_job(job):
        metadata = {
            **created,
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
            "labels": dict(pod.labels),
            "annotations": {**spans, **pod.annotations},
            "ownerReferences": [owner],
        }
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _without_duration(job: Obj) -> Obj:
    kept = {key: text for key, text in annotations_of(job).items() if key != _DURATION}
    return {**job, "metadata": {**meta(job), "annotations": kept}}


def default_queues(names: Sequence[str]) -> Iterator[tuple[str, Obj]]:
    """Yield KAI's default queue and its parent with their place, if the former is not among the queues of these
    names."""
    for write in missing_queues(names, KAI_GROUPING.default_queue):
        assert isinstance(write, Create)
        yield "default queue", write.obj


def _member(pod: Obj, found: GroupAssignment) -> Obj:
    return {**pod, "metadata": {**meta(pod), **_merged(meta(pod), membership(found))}}


def _merged(metadata: Obj, more: Mapping[str, Any]) -> Obj:
    return {key: {**(metadata.get(key) or {}), **value} for key, value in more.items()}


def _age(pod: _Pod) -> tuple[str, str, str]:
    metadata = meta(pod.obj)
    return metadata["namespace"], str(metadata.get("creationTimestamp") or ""), metadata["name"]


def _key_of(obj: Obj) -> _Key:
    named = _with_names(obj)["metadata"]
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    return group, str(obj.get("kind")), named["namespace"], str(named.get("name"))


def _with_names(obj: Obj) -> Obj:
    """Return the object with a namespace and a uid, which files may leave out."""
    metadata = meta(obj)
    given = {
        "namespace": metadata.get("namespace") or "default",
        "uid": metadata.get("uid") or str(obj["kind"]).lower(),
    }
    return {**obj, "metadata": {**metadata, **given}}


def _is_object(obj: Any) -> bool:
    if not isinstance(obj, dict) or not isinstance(obj.get("kind"), str):
        return False
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return False
    # An owner is looked up by these, whatever its kind; a wrong one is reported when the object is decoded.
    return all(isinstance(metadata.get(key), str | None) for key in ("namespace", "uid"))


def _is_pod(obj: Obj) -> bool:
    """Return True if what the rules read of a pod has the type it should have. Others are reported when decoded."""
    tables = (meta(obj).get("labels"), meta(obj).get("annotations"))
    return isinstance(obj.get("spec"), dict) and all(
        each is None or (isinstance(each, dict) and all(isinstance(text, str) for text in each.values()))
        for each in tables
    )
