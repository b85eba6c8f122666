"""Workloads that a controller turns into a PodGroup and pods: Volcano's Job, and Kubernetes' own."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pumice.model.pod import EMPTY_MAP, PodSpec
from pumice.model.workloads.podgroup import NetworkTopology

#: A tenant writes the number of replicas; more pods than this of one job are an error.
JOB_PODS_MAX = 100_000


class LifecyclePolicy(Struct, frozen=True):
    """On one of these events (or this exit code), after ``timeout_s``, do ``action``."""

    action: str
    events: tuple[str, ...] = ()
    exit_code: int | None = None
    timeout_s: float | None = None


class PartitionPolicy(Struct, frozen=True):
    """A task cut into ``total`` partitions of ``size`` pods: each becomes a sub-job."""

    total: int
    size: int
    min_partitions: int = 0
    topology: NetworkTopology | None = None


class PodTemplate(Struct, frozen=True):
    """What the pods of one task have in common."""

    spec: PodSpec
    labels: Mapping[str, str] = EMPTY_MAP
    annotations: Mapping[str, str] = EMPTY_MAP
    scheduler_name: str = "volcano"
    gates: tuple[str, ...] = ()


class JobTask(Struct, frozen=True):
    name: str
    replicas: int
    template: PodTemplate
    min_available: int | None = None
    policies: tuple[LifecyclePolicy, ...] = ()
    max_retry: int = 3
    topology_policy: str = ""  # none, best-effort, restricted, single-numa-node
    depends_on: tuple[str, ...] = ()
    depends_on_any: bool = False
    partition: PartitionPolicy | None = None

    @property
    def minimum(self) -> int:
        """Pods that this task must have: what it says, else what its partitions say, else all of it."""
        if self.min_available is not None:
            return self.min_available
        if self.partition is not None and self.partition.min_partitions * self.partition.size:
            return self.partition.min_partitions * self.partition.size
        return self.replicas


class VolcanoJob(Struct, frozen=True):
    """A ``batch.volcano.sh/v1alpha1`` Job. ``min_available`` is at least 1 unless there is nothing to run."""

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
        """``namespace/name``"""
        return f"{self.namespace}/{self.name}"

    @property
    def replicas(self) -> int:
        """Pods of all tasks."""
        return sum(task.replicas for task in self.tasks)


class BatchJob(Struct, frozen=True):
    """A ``batch/v1`` Job: ``parallelism`` equal pods at a time, ``completions`` in all (None: any one success)."""

    namespace: str
    name: str
    template: PodTemplate
    uid: str = ""
    parallelism: int = 1
    completions: int | None = None
    suspended: bool = False
    creation: float = 0.0
    labels: Mapping[str, str] = EMPTY_MAP
    annotations: Mapping[str, str] = EMPTY_MAP
    resource_version: str = ""

    @property
    def key(self) -> str:
        """``namespace/name``"""
        return f"{self.namespace}/{self.name}"

    @property
    def replicas(self) -> int:
        """Pods that run at first."""
        if self.suspended:
            return 0
        return self.parallelism if self.completions is None else min(self.parallelism, self.completions)
