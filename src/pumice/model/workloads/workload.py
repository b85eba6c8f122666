"""Kubernetes' Workloads of ``scheduling.k8s.io/v1alpha1``, and the PodGroups that follow from them.

In this version a PodGroup is no object: a Workload lists pod groups, and a pod names one in ``spec.workloadRef``. The
pods of one pod group with one replica key are a gang of their own. Source: KEP-4671, Kubernetes 1.35.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pumice.model.pod import EMPTY_MAP
from pumice.model.workloads.gang import Gang
from pumice.model.workloads.native_group import FIRST_VERSION, NativeGroup
from pumice.model.workloads.podgroup import OUT_OF_REACH, PodGroup

#: The first part of the name that a pod group of a Workload has among PodGroups. No object of the API can have it,
#: because a name contains no colon.
WORKLOAD_PREFIX = "workload:"
#: Pod groups of one Workload. Source: kubernetes/api, WorkloadMaxPodGroups.
POD_GROUPS_MAX = 8


class WorkloadRef(NamedTuple):
    """What ``spec.workloadRef`` of a pod names. ``replica``: the key that makes a gang of its own, "" for none."""

    workload: str
    group: str
    replica: str = ""

    @property
    def group_name(self) -> str:
        """The name of the gang among PodGroups."""
        return WORKLOAD_PREFIX + ":".join(self if self.replica else self[:2])

    @property
    def shown(self) -> str:
        """The pod group in words, without its Workload."""
        return f"pod group {self.group}" + (f" with replica key {self.replica}" if self.replica else "")


class WorkloadPodGroup(Struct, frozen=True):
    """A pod group of a Workload. ``min_count`` is None under the policy ``basic``: pods start one by one."""

    name: str
    min_count: int | None = None


class Workload(Struct, frozen=True):
    """A Workload. ``unparsable``: fields that could not be read and may forbid something; then no pod of it is
    placed."""

    namespace: str
    name: str
    uid: str
    queue: str = "default"
    groups: tuple[WorkloadPodGroup, ...] = ()
    creation: float = 0.0
    labels: Mapping[str, str] = EMPTY_MAP
    annotations: Mapping[str, str] = EMPTY_MAP
    resource_version: str = ""
    unparsable: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


def workload_ref(group_name: str) -> WorkloadRef | None:
    """Return what pods name whose PodGroup has that name, or None for a PodGroup of the API."""
    if not group_name.startswith(WORKLOAD_PREFIX):
        return None
    parts = group_name.removeprefix(WORKLOAD_PREFIX).split(":")
    # Authors may write any name into an annotation.
    return WorkloadRef(*parts) if len(parts) in (2, 3) else None


def group_of_workload(workload: Workload, ref: WorkloadRef) -> PodGroup | None:
    """Return the PodGroup of the pods that name a pod group of a Workload, or None if the Workload has no such pod
    group."""
    found = next((each for each in workload.groups if each.name == ref.group), None)
    # Of a Workload that could not be read it is unknown which pod groups it has.
    if found is None and not workload.unparsable:
        return None
    # Under the policy basic, each pod is enough for itself.
    minimum = found.min_count if found is not None else None
    return PodGroup(
        namespace=workload.namespace,
        name=ref.group_name,
        uid=":".join((workload.uid, *ref[1:])),
        queue=workload.queue,
        min_member=OUT_OF_REACH if workload.unparsable else minimum or 1,
        creation=workload.creation,
        labels=workload.labels,
        annotations=workload.annotations,
        resource_version=workload.resource_version,
        # Without the times that KAI's language notes in annotations: pod groups of one Workload would share them.
        gang=Gang(),
        native=NativeGroup(FIRST_VERSION, is_gang=minimum is not None),
        unparsable=workload.unparsable,
    )


def workloads_of(groups: Iterable[PodGroup]) -> Iterator[Workload]:
    """Yield the Workloads from which ``group_of_workload`` made PodGroups, as far as these say; other PodGroups count
    for nothing."""
    found: dict[str, Workload] = {}
    for group in groups:
        ref, native = workload_ref(group.name), group.native
        if ref is None or native is None or native.api_version != FIRST_VERSION:
            continue
        key = f"{group.namespace}/{ref.workload}"
        workload = found.get(key) or Workload(
            namespace=group.namespace,
            name=ref.workload,
            uid=group.uid.partition(":")[0],
            queue=group.queue,
            creation=group.creation,
            labels=group.labels,
            annotations=group.annotations,
            resource_version=group.resource_version,
            unparsable=group.unparsable,
        )
        # Replicas of one pod group say the same of it.
        listed = WorkloadPodGroup(ref.group, group.min_member if native.is_gang else None)
        if listed not in workload.groups:
            workload = replace(workload, groups=(*workload.groups, listed))
        found[key] = workload
    yield from found.values()
