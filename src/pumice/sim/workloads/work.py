"""What arrives in a simulation: jobs of a trace, PodGroups with their pods, and (in ``sim.scenes.manifests``) Volcano
Jobs. Each expands when it arrives.

Source: names, labels and annotations of pods are those of Volcano's job controller.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from pumice.model.pod import EMPTY_MAP, GROUP_NAME_ANNOTATION, TASK_SPEC_KEY, Pod, PodSpec
from pumice.model.resources import EMPTY, Resource
from pumice.model.workloads.estimate import ESTIMATE_ANNOTATION, estimate_text
from pumice.model.workloads.gang import Gang
from pumice.model.workloads.podgroup import NetworkTopology, PodGroup
from pumice.sim.workloads.spans import ARRIVAL_ANNOTATION, DURATION_ANNOTATION, seconds_of

JOB_NAME_KEY = "volcano.sh/job-name"
USER_LABEL = "pumice.dev/user"  # who submitted a job of a trace

#: Duration of a job without one: it runs forever.
FOREVER = math.inf


class Work(Protocol):
    """A unit of work. ``arrival_s``: from the start of the simulation. ``duration_s``: from when the gang runs."""

    @property
    def key(self) -> str:
        """``namespace/podgroup``."""
        ...

    @property
    def queue(self) -> str: ...

    @property
    def arrival_s(self) -> float: ...

    @property
    def duration_s(self) -> float: ...

    @property
    def recreates(self) -> bool:
        """True if a deleted pod is created again."""
        ...

    @property
    def waits_for_admission(self) -> bool:
        """True if pods are created only after the PodGroup is admitted. Source: Volcano's job controller."""
        ...

    def expand(self, now: float) -> tuple[PodGroup, Sequence[Pod]]:
        """Return the PodGroup and the pods, created at ``now``."""
        ...

    def pods_at(self, now: float) -> Sequence[Pod]:
        """Return the pods, created at ``now``."""
        ...

    def outline(self, now: float) -> tuple[PodGroup, Iterable[tuple[PodSpec, int]]]:
        """Return the PodGroup, created at ``now``, and the specs of its future pods with their numbers."""
        ...


class SimTask(Struct, frozen=True):
    """Equal pods of a job. Jobs of one shape should share ``spec``, because the core groups tasks by its identity."""

    role: str
    replicas: int
    spec: PodSpec
    min_available: int | None = None  # None: all of them

    @property
    def minimum(self) -> int:
        return self.replicas if self.min_available is None else self.min_available


class SimJob(Struct, frozen=True):
    """A gang from a trace. ``estimate_s``: the user's estimate of the run time, if the trace has it. ``scheduler``: the
    scheduler name of its pods. ``gang``: its PodGroup in KAI's terms, None for none. ``user``: becomes a label."""

    namespace: str
    name: str
    queue: str
    tasks: tuple[SimTask, ...]
    min_available: int
    duration_s: float
    arrival_s: float = 0.0
    priority_class: str = ""
    min_resources: Resource | None = None  # None: of the first ``min_available`` pods
    topology: NetworkTopology | None = None
    estimate_s: float | None = None
    waits_for_admission: bool = True
    scheduler: str = "volcano"
    gang: Gang | None = None
    user: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def size(self) -> int:
        """Number of pods of all tasks."""
        return sum(task.replicas for task in self.tasks)

    @property
    def recreates(self) -> bool:
        return True

    def expand(self, now: float) -> tuple[PodGroup, Sequence[Pod]]:
        return self.group(now), self.pods_at(now)

    def outline(self, now: float) -> tuple[PodGroup, Iterable[tuple[PodSpec, int]]]:
        return self.group(now), ((task.spec, task.replicas) for task in self.tasks)

    def group(self, now: float) -> PodGroup:
        """Return the PodGroup, in phase Pending."""
        return PodGroup(
            namespace=self.namespace,
            name=self.name,
            uid=self.key,
            queue=self.queue,
            min_member=self.min_available,
            min_task_member={task.role: task.minimum for task in self.tasks},
            min_resources=self.min_resources if self.min_resources is not None else self._first_requests(),
            priority_class_name=self.priority_class,
            topology=self.topology,
            creation=now,
            annotations=EMPTY_MAP if not self.estimate_s else {ESTIMATE_ANNOTATION: estimate_text(self.estimate_s)},
            gang=self.gang,
            labels=self._user_label or EMPTY_MAP,
        )

    @property
    def _user_label(self) -> dict[str, str]:
        return {USER_LABEL: self.user} if self.user else {}

    def pods_at(self, now: float) -> list[Pod]:
        """Return the pods, task by task. Those of a task share spec, labels and annotations."""
        pods = []
        for task in self.tasks:
            one = Pod(
                self.namespace,
                name="",
                uid="",
                spec=task.spec,
                creation=now,
                labels={JOB_NAME_KEY: self.name, TASK_SPEC_KEY: task.role, **self._user_label},
                annotations={GROUP_NAME_ANNOTATION: self.name, TASK_SPEC_KEY: task.role},
                owner=("Job", self.name, self.key),
                scheduler_name=self.scheduler,
            )
            begin, namespace = f"{self.name}-{task.role}-", self.namespace
            names = [f"{begin}{i}" for i in range(task.replicas)]
            pods += [replace(one, name=name, uid=f"{namespace}/{name}") for name in names]
        return pods

    def _first_requests(self) -> Resource:
        total, left = EMPTY, self.min_available
        for task in self.tasks:
            count = min(left, task.replicas)
            left -= count
            if count:
                total = total.add(task.spec.request.multi(float(count)))
        return total


class LooseGang(Struct, frozen=True):
    """A PodGroup and pods that exist without a job. ``kept``: the creator of the PodGroup creates deleted pods again.
    Otherwise, as for pods without a PodGroup, only pods with a controller are created again. ``is_admitted`` False: the
    pods are created after the PodGroup is admitted."""

    group: PodGroup
    pods: tuple[Pod, ...]
    kept: bool = True
    is_admitted: bool = True

    @property
    def key(self) -> str:
        return self.group.key

    @property
    def queue(self) -> str:
        return self.group.queue

    @property
    def arrival_s(self) -> float:
        # A group that is made for pods has nothing of the Job that owns them; its pods have.
        holders: list[PodGroup | Pod] = [self.group, *(() if self.kept else self.pods)]
        found = (seconds_of(each.annotations, ARRIVAL_ANNOTATION) for each in holders)
        return min((each for each in found if each is not None), default=0.0)

    @property
    def duration_s(self) -> float:
        said = seconds_of(self.group.annotations, DURATION_ANNOTATION)
        return FOREVER if said is None else said

    @property
    def recreates(self) -> bool:
        return self.kept or any(pod.owner is not None for pod in self.pods)

    @property
    def waits_for_admission(self) -> bool:
        return not self.is_admitted

    def expand(self, now: float) -> tuple[PodGroup, Sequence[Pod]]:
        return self.group, self.pods

    def pods_at(self, now: float) -> Sequence[Pod]:
        return self.pods

    def outline(self, now: float) -> tuple[PodGroup, Iterable[tuple[PodSpec, int]]]:
        return self.group, ((pod.spec, 1) for pod in self.pods)


def arriving(work: Work, at_s: float) -> Work:
    """Return the work with another time of arrival."""
    # A job of a trace stays one, because ``sim.workloads.language`` changes those and no other work.
    if isinstance(work, SimJob):
        return replace(work, arrival_s=at_s)
    return _Shifted(work.work if isinstance(work, _Shifted) else work, at_s)


class _Shifted(Struct, frozen=True):
    """Work that arrives at another time than it says itself."""

    work: Work
    arrival_s: float

    @property
    def key(self) -> str:
        return self.work.key

    @property
    def queue(self) -> str:
        return self.work.queue

    @property
    def duration_s(self) -> float:
        return self.work.duration_s

    @property
    def recreates(self) -> bool:
        return self.work.recreates

    @property
    def waits_for_admission(self) -> bool:
        return self.work.waits_for_admission

    def expand(self, now: float) -> tuple[PodGroup, Sequence[Pod]]:
        return self.work.expand(now)

    def pods_at(self, now: float) -> Sequence[Pod]:
        return self.work.pods_at(now)

    def outline(self, now: float) -> tuple[PodGroup, Iterable[tuple[PodSpec, int]]]:
        return self.work.outline(now)
