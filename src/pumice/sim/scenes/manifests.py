"""Objects of manifests in a simulation: what exists at the start, and what arrives.

A Volcano Job expands when it arrives. A PodGroup with its pods is a gang without a job. Pods without a group get the
PodGroup that Volcano would make. The result does not depend on the order of the objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from pumice.model.devices.claims import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from pumice.model.devices.numa import NodeResourceTopology, Numatopology
from pumice.model.disruption import PodDisruptionBudget
from pumice.model.events import Object, key_of
from pumice.model.manifest.decoder import Value
from pumice.model.manifest.defaults.priorities import NO_PRIORITIES, Priorities
from pumice.model.manifest.jobs import (
    group_name_of,
    is_bare,
    podgroup_for_bare_pod,
    podgroup_of,
    pods_of,
    pods_of_batch_job,
)
from pumice.model.node import Node
from pumice.model.plain_words import first_names
from pumice.model.pod import Pod, PodSpec
from pumice.model.queue import PriorityClass, Queue, ResourceQuota
from pumice.model.topology import HyperNode, Topology
from pumice.model.usage import NodeUsage, QueueHistory
from pumice.model.volumes import CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.model.workloads.bare_pods import bare_group_name
from pumice.model.workloads.job import BatchJob, VolcanoJob
from pumice.model.workloads.job_makers import JobMaker
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.problems.problem import Problem, Severity
from pumice.sim.scenes.scene import Scene
from pumice.sim.workloads.spans import ARRIVAL_ANNOTATION, DURATION_ANNOTATION, seconds_of, span_problem
from pumice.sim.workloads.work import FOREVER, LooseGang, Work

#: Pods that all jobs may create together. Bounded, because tenants write the numbers of replicas and jobs.
MADE_PODS_MAX = 500_000
_BESIDE = (
    *(Topology, PodDisruptionBudget, ResourceClaim, ResourceClaimTemplate, ResourceSlice, DeviceClass),
    *(ResourceQuota, NodeUsage, QueueHistory, Numatopology, NodeResourceTopology),
    *(PersistentVolume, PersistentVolumeClaim, StorageClass, CSINode, CSIStorageCapacity),
)
_FIRST = (PriorityClass, Queue, Node, HyperNode, *_BESIDE)  # they come before what refers to them


class ManifestJob(Struct, frozen=True):
    """A ``batch.volcano.sh`` Job. It runs as long as its annotation says, else its estimate, else forever."""

    job: VolcanoJob
    priorities: Priorities = NO_PRIORITIES

    @property
    def key(self) -> str:
        return f"{self.job.namespace}/{group_name_of(self.job)}"

    @property
    def queue(self) -> str:
        return self.job.queue

    @property
    def arrival_s(self) -> float:
        return seconds_of(self.job.annotations, ARRIVAL_ANNOTATION) or 0.0

    @property
    def duration_s(self) -> float:
        said = seconds_of(self.job.annotations, DURATION_ANNOTATION)
        said = self.job.running_estimate_s if said is None else said
        return FOREVER if said is None else max(said, 0.0)

    @property
    def recreates(self) -> bool:
        return True

    @property
    def waits_for_admission(self) -> bool:
        return True

    def expand(self, now: float) -> tuple[PodGroup, Sequence[Pod]]:
        return podgroup_of(self._created(now), self.priorities.values), self.pods_at(now)

    def pods_at(self, now: float) -> list[Pod]:
        return list(pods_of(self._created(now), self.priorities))

    def outline(self, now: float) -> tuple[PodGroup, Iterable[tuple[PodSpec, int]]]:
        group, pods = self.expand(now)
        return group, ((pod.spec, 1) for pod in pods)

    def _created(self, now: float) -> VolcanoJob:
        return self.job if self.job.creation else replace(self.job, creation=now)


def scene_of(objects: Iterable[Value], scheduler_names: tuple[str, ...] = ("volcano",)) -> Scene:
    """Return the scene that decoded objects describe, with each kind, namespace and name once."""
    stage = _Stage(scheduler_names)
    for obj in objects:
        stage.take(obj)
    works = sorted(stage.works(), key=lambda work: (work.arrival_s, work.key))
    rank: dict[type, int] = {kind: i for i, kind in enumerate((*_FIRST, PodGroup, Pod))}
    initial = sorted(stage.initial, key=lambda obj: (rank[type(obj)], key_of(obj)))
    makers = tuple(sorted(stage.makers, key=lambda maker: (maker.kind, maker.key)))
    return Scene(tuple(initial), tuple(works), problems=tuple(sorted(stage.problems, key=str)), makers=makers)


class _Stage:
    def __init__(self, scheduler_names: tuple[str, ...]) -> None:
        self.scheduler_names = scheduler_names
        self.initial: list[Object] = []
        self.problems: list[Problem] = []
        self._groups: dict[str, PodGroup] = {}
        self.makers: list[JobMaker] = []
        self._pods: list[Pod] = []
        self._jobs: list[VolcanoJob] = []
        self._batch_jobs: list[BatchJob] = []
        self._unused: dict[str, int] = {}

    def take(self, obj: Value) -> None:
        match obj:
            case _ if isinstance(obj, _FIRST):
                self.initial.append(obj)
                return
            case PodGroup():
                self._groups[obj.key] = obj
            case Pod():
                self._pods.append(obj)
            case VolcanoJob():
                self._jobs.append(obj)
            case BatchJob():
                self._batch_jobs.append(obj)
            case JobMaker():
                self.makers.append(obj)
                return
            case _:
                what = "is not used by a simulation yet"
                name = f"{namespace}/{obj.name}" if (namespace := getattr(obj, "namespace", "")) else obj.name
                self.problems.append(Problem(f"{type(obj).__name__} {name}", what, Severity.NOTE))
                return
        self._check_spans(f"{type(obj).__name__} {obj.key}", obj.annotations)

    def works(self) -> Iterator[Work]:
        """Return everything that arrives. Pods of a PodGroup that does not exist stay pending."""
        self._leave_out_what_is_too_much()
        self._leave_out_what_collides()
        priorities = Priorities(c for c in self.initial if isinstance(c, PriorityClass))
        members: dict[str, list[Pod]] = {key: [] for key in self._groups}
        declared = frozenset(self._groups)
        for pod in self._all_pods(priorities):
            if is_bare(pod, self.scheduler_names):
                group, pod = podgroup_for_bare_pod(pod)
                self._groups.setdefault(group.key, group)
                members.setdefault(group.key, [])
            if pod.group_key in members:
                members[pod.group_key].append(pod)
            else:
                self.initial.append(pod)
        jobs = {work.key: work for work in (ManifestJob(job, priorities) for job in self._jobs)}
        for key, group in self._groups.items():
            job = jobs.pop(
                key, None
            )  # a job whose PodGroup is there already: what is there counts, the job says how long
            if job is not None:
                group = replace(group, annotations={**_spans(job.job.annotations), **group.annotations})
            pods = sorted(members[key], key=lambda pod: (len(pod.name), pod.name))
            yield LooseGang(group, tuple(pods), kept=key in declared and not _is_made(key, pods))
        yield from jobs.values()

    def _leave_out_what_is_too_much(self) -> None:
        """Leave out jobs that would create too many pods together: the largest first, whatever the order of the
        input."""
        jobs: list[VolcanoJob | BatchJob] = [*self._jobs, *self._batch_jobs]
        total, left_out = 0, []
        for job in sorted(jobs, key=lambda job: (job.replicas, job.key)):
            if total + job.replicas > MADE_PODS_MAX:
                left_out.append(job)
            else:
                total += job.replicas
        if not left_out:
            return
        gone = {id(job) for job in left_out}
        self._jobs = [job for job in self._jobs if id(job) not in gone]
        self._batch_jobs = [job for job in self._batch_jobs if id(job) not in gone]
        found = sum(job.replicas for job in jobs)
        what = f"ignored: all jobs create {found:,} pods, wanted at most {MADE_PODS_MAX:,}"
        self.problems.append(Problem(f"Job {first_names([job.key for job in left_out])}", what))

    def _leave_out_what_collides(self) -> None:
        """Leave out jobs whose pods or PodGroup would have the name of another job's: the job that was created first
        stays.

        An API server accepts one object of a name, so the others could not be created. Job ``a`` with task ``b-c`` and
        Job ``a-b`` with task ``c`` both create ``a-b-c-0``.
        """
        known = _Names(self._pods)
        jobs: list[VolcanoJob | BatchJob] = [*self._jobs, *self._batch_jobs]
        left_out = set()
        for job in sorted(jobs, key=lambda job: (job.creation, _arrival(job), job.key, type(job).__name__)):
            why = known.take(job)
            if why:
                left_out.add(id(job))
                self.problems.append(Problem(f"Job {job.key}", f"left out: {why}"))
        self._jobs = [job for job in self._jobs if id(job) not in left_out]
        self._batch_jobs = [job for job in self._batch_jobs if id(job) not in left_out]

    def _all_pods(self, priorities: Priorities) -> Iterator[Pod]:
        """Yield all pods, and those of Kubernetes' own jobs: each runs for itself, as long as the job says."""
        for pod in self._pods:
            spec = priorities.admitted(pod.spec)
            yield pod if spec is pod.spec else replace(pod, spec=spec)
        for job in self._batch_jobs:
            if job.completions is not None and job.completions > job.replicas > 0:
                what = f"completions {job.completions} above parallelism: only the first {job.replicas} pods are run"
                self.problems.append(Problem(f"Job {job.key}", what, Severity.WARNING))
            for pod in pods_of_batch_job(job, priorities):
                yield replace(pod, annotations={**_spans(job.annotations), **pod.annotations})

    def _check_spans(self, where: str, annotations: Mapping[str, str]) -> None:
        for key in (DURATION_ANNOTATION, ARRIVAL_ANNOTATION):
            problem = span_problem(annotations, key)
            if problem is not None:
                self.problems.append(Problem(where, f"{problem}; it is left out"))


def _is_made(key: str, pods: Sequence[Pod]) -> bool:
    """Return True if the PodGroup of this key was made for these pods, which named none."""
    return any(key == f"{pod.namespace}/{bare_group_name(pod)}" for pod in pods)


def _spans(annotations: Mapping[str, str]) -> dict[str, str]:
    return {key: annotations[key] for key in (DURATION_ANNOTATION, ARRIVAL_ANNOTATION) if key in annotations}


def _arrival(job: VolcanoJob | BatchJob) -> float:
    return seconds_of(job.annotations, ARRIVAL_ANNOTATION) or 0.0


class _Names:
    """Which job creates pods and PodGroups of which names. Pods are known by what precedes their number."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._pods: dict[tuple[str, str], dict[str, Pod]] = {}  # namespace, stem -> number -> pod
        for pod in pods:
            stem, _, number = pod.name.rpartition("-")
            self._pods.setdefault((pod.namespace, stem), {})[number] = pod
        self._stems: dict[tuple[str, str], str] = {}
        self._groups: dict[str, str] = {}

    def take(self, job: VolcanoJob | BatchJob) -> str:
        """Reserve the names for a job, or return why one of them is taken; then none is reserved."""
        if isinstance(job, VolcanoJob):
            stems = [(f"{job.name}-{task.name}", task.replicas) for task in job.tasks if task.replicas]
            group = f"{job.namespace}/{group_name_of(job)}"
        else:
            stems, group = [(job.name, job.replicas)] if job.replicas else [], ""
        if group in self._groups:
            return f"PodGroup {group} would be that of Job {self._groups[group]} as well"
        for stem, replicas in stems:
            place = job.namespace, stem
            if place in self._stems:
                return f"pod {job.namespace}/{stem}-0 would be that of Job {self._stems[place]} as well"
            for number, pod in self._pods.get(place, {}).items():
                ours = pod.group_key == group or (pod.owner is not None and pod.owner[1] == job.name)
                if not ours and _is_number_of(number, replicas):
                    return f"pod {pod.key} exists already and belongs to another job"
        if group:
            self._groups[group] = job.key
        self._stems |= {(job.namespace, stem): job.key for stem, _ in stems}
        return ""


def _is_number_of(text: str, count: int) -> bool:
    """Return True if a text is the number of one of ``count`` pods."""
    return text.isascii() and text.isdecimal() and len(text) < 10 and str(int(text)) == text and int(text) < count
