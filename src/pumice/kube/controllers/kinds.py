"""Kinds that controllers watch, write and read, and how much of them is kept."""

from __future__ import annotations

from typing import Any, Final, TypedDict

import msgspec

from pumice.kube.api.codec import BadObject, Codec, Object
from pumice.kube.api.errors import NO_JSON, clean
from pumice.kube.api.kinds import (
    CONFIG_MAPS,
    KAI_POD_GROUPS,
    KAI_QUEUES,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    Kind,
)
from pumice.kube.api.partial_decoding import Meta
from pumice.kube.controllers.owner_kinds import READ_FOR_VOLCANO, REPLICA_SETS, STATEFUL_SETS
from pumice.model.manifest import Decoder
from pumice.model.pod import GROUP_NAME_ANNOTATION

JOBS = Kind("batch.volcano.sh", "v1alpha1", "jobs", "Job")
CRON_JOBS = Kind("batch.volcano.sh", "v1alpha1", "cronjobs", "CronJob")
JOB_FLOWS = Kind("flow.volcano.sh", "v1alpha1", "jobflows", "JobFlow")
JOB_TEMPLATES = Kind("flow.volcano.sh", "v1alpha1", "jobtemplates", "JobTemplate")
COMMANDS = Kind("bus.volcano.sh", "v1alpha1", "commands", "Command")
SERVICES = Kind("", "v1", "services", "Service")
CLAIMS = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
SECRETS = Kind("", "v1", "secrets", "Secret")
NETWORK_POLICIES = Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")

#: Kinds that each controller watches.
WATCHED_BY: Final = {
    "podgroup": (PODS, POD_GROUPS, REPLICA_SETS, STATEFUL_SETS, NAMESPACES),
    "queue": (QUEUES, POD_GROUPS, COMMANDS),
    "job": (JOBS, PODS, POD_GROUPS, COMMANDS, PRIORITY_CLASSES, NAMESPACES),
    "cronjob": (CRON_JOBS, JOBS),
    "jobflow": (JOB_FLOWS, JOB_TEMPLATES, JOBS),
}
#: Owners of pods that are read one by one: they are asked once what they say about their gang.
LOOKED_UP: Final = READ_FOR_VOLCANO
_WRITTEN = (
    PODS,
    POD_GROUPS,
    KAI_POD_GROUPS,
    QUEUES,
    KAI_QUEUES,
    JOBS,
    CRON_JOBS,
    JOB_FLOWS,
    JOB_TEMPLATES,
    COMMANDS,
    CONFIG_MAPS,
    SERVICES,
    SECRETS,
    CLAIMS,
    NETWORK_POLICIES,
)
_BY_NAME: Final = {(kind.api_version, kind.kind): kind for kind in (*_WRITTEN, *LOOKED_UP, REPLICA_SETS, STATEFUL_SETS)}


def kind_of(api_version: str, kind: str) -> Kind | None:
    """Return the kind by an object's apiVersion and kind, or None if no controller handles it."""
    return _BY_NAME.get((api_version, kind))


# -- what is kept


class _PodSpec(TypedDict, total=False):
    containers: Any
    initContainers: Any
    overhead: Any
    resources: Any
    schedulerName: Any
    schedulingGroup: Any
    workloadRef: Any
    priorityClassName: Any
    priority: Any


class _PodStatus(TypedDict, total=False):
    phase: Any
    conditions: Any
    containerStatuses: Any
    initContainerStatuses: Any


class _Pod(TypedDict, total=False):
    metadata: Meta
    spec: _PodSpec
    status: _PodStatus


class _SetSpec(TypedDict, total=False):
    replicas: Any


class _SetStatus(TypedDict, total=False):
    updateRevision: Any


class _Set(TypedDict, total=False):
    metadata: Meta
    spec: _SetSpec
    status: _SetStatus


_CUTS: Final[dict[str, Any]] = {"Pod": _Pod, "ReplicaSet": _Set, "StatefulSet": _Set}


class PlainCodec(Codec):
    """Reads objects as dictionaries for controllers. Of pods and their sets, only the parts that controllers use."""

    def __init__(self, kind: Kind, group_annotation: str = GROUP_NAME_ANNOTATION) -> None:
        """``group_annotation``: the annotation in which a pod names its group."""
        super().__init__(kind, Decoder())
        self._annotation = group_annotation
        self._plain = msgspec.json.Decoder(_CUTS.get(kind.kind, dict[str, Any]))

    def read(self, raw: bytes | msgspec.Raw) -> Object:
        """Return an object. Raises: BadObject."""
        key, uid, version = self.identity(raw)
        try:
            found = self._plain.decode(raw)
        except NO_JSON as error:
            raise BadObject(key, version, clean(str(error)), uid) from None
        found["apiVersion"], found["kind"] = self.kind.api_version, self.kind.kind
        if self.kind is PODS and (found["metadata"].get("annotations") or {}).get(self._annotation):
            found.pop("spec", None)  # the spec of a pod with a group is not needed
        return Object(key, uid, version, found)
