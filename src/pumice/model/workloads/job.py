"""Workloads from which a controller makes a PodGroup and pods: Volcano's Job, and Kubernetes' own."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pumice.model.pod import EMPTY_MAP, PodSpec
from pumice.model.workloads.podgroup import NetworkTopology

#: Most pods of one job. Bounded, because a tenant writes the number of replicas.
JOB_PODS_MAX = 100_000


# Kept for the controller that makes the pods; the scheduler itself reads none of it.
class LifecyclePolicy(Struct, frozen=True):
    """After ``timeout_s``, do ``action`` on one of these events, or on this exit code."""

    action: str
    events: tuple[str, ...] = ()
    exit_code: int | None = None
    timeout_s: float | None = None


class PartitionPolicy(Struct, frozen=True):
    """A task divided into ``total`` partitions of ``size`` pods. Each becomes a sub-job."""

    total: int
    size: int
    min_partitions: int = 0
    topology: NetworkTopology | None = None


# Read once per task, since all its pods share the spec, which is the costly part of a pod.
class PodTemplate(Struct, frozen=True):
    """The common part of a task's pods. ``active_deadline_s``: each is ended so long after its start."""

    spec: PodSpec
    labels: Mapping[str, str] = EMPTY_MAP
    annotations: Mapping[str, str] = EMPTY_MAP
    scheduler_name: str = "volcano"
    gates: tuple[str, ...] = ()
    active_deadline_s: float | None = None


class JobTask(Struct, frozen=True):
    """A task of a Volcano Job: ``replicas`` pods from one template."""

    name: str
    replicas: int
    template: PodTemplate
    min_available: int | None = None
    policies: tuple[LifecyclePolicy, ...] = ()
    max_retry: int = 3
    # Handed on to pods as an annotation; only the plugin numa-aware reads it.
    topology_policy: str = ""  # none, best-effort, restricted, single-numa-node
    depends_on: tuple[str, ...] = ()
    depends_on_any: bool = False
    partition: PartitionPolicy | None = None

    @property
    def minimum(self) -> int:
        """Least pods of this task: as it says, else as its partitions say, else all."""
        if self.min_available is not None:
            return self.min_available
        # As Volcano's webhook fills it in. Without it a partitioned task would need all of its pods.
        if self.partition is not None and self.partition.min_partitions * self.partition.size:
            return self.partition.min_partitions * self.partition.size
        return self.replicas


class VolcanoJob(Struct, frozen=True):
    """A ``batch.volcano.sh/v1alpha1`` Job. ``min_available`` is at least 1 unless the job has no pods."""

    namespace: str
    name: str
    tasks: tuple[JobTask, ...]
    min_available: int
    uid: str = ""
    queue: str = "default"
    priority_class_name: str = ""
    min_success: int | None = None
    policies: tuple[LifecyclePolicy, ...] = ()
    max_retry: int = 3
    ttl_s: int | None = None
    running_estimate_s: float | None = None
    topology: NetworkTopology | None = None
    creation: float = 0.0
    labels: Mapping[str, str] = EMPTY_MAP
    annotations: Mapping[str, str] = EMPTY_MAP
    resource_version: str = ""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def replicas(self) -> int:
        """Number of pods of all tasks."""
        return sum(task.replicas for task in self.tasks)


# Only what decides how many pods there are, and when: Kubernetes' own controller reads the rest.
class BatchJob(Struct, frozen=True):
    """A ``batch/v1`` Job: ``parallelism`` equal pods at a time, ``completions`` in total (None: any one success)."""

    namespace: str
    name: str
    template: PodTemplate
    uid: str = ""
    parallelism: int = 1
    completions: int | None = None
    suspended: bool = False
    active_deadline_s: float | None = None
    creation: float = 0.0
    labels: Mapping[str, str] = EMPTY_MAP
    annotations: Mapping[str, str] = EMPTY_MAP
    resource_version: str = ""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def replicas(self) -> int:
        """Number of pods at the start."""
        # A suspended Job gets its pods later, so until then its gang must need none.
        if self.suspended:
            return 0
        # Kubernetes never runs more pods than are still to succeed.
        return self.parallelism if self.completions is None else min(self.parallelism, self.completions)
