"""Decode Kubernetes objects into values of ``model``, in full, or as far as an unreadable object still counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pumice.model.bind_request import BindRequest
from pumice.model.config_map import ConfigMap
from pumice.model.devices.claims import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from pumice.model.devices.numa import NodeResourceTopology, Numatopology
from pumice.model.disruption import PodDisruptionBudget
from pumice.model.manifest.claims import (
    read_device_class,
    read_resource_claim,
    read_resource_claim_template,
    read_resource_slice,
)
from pumice.model.manifest.config_maps import read_config_map
from pumice.model.manifest.disruption import read_disruption_budget
from pumice.model.manifest.groups import read_pod_group, read_priority_class, read_queue, read_resource_quota
from pumice.model.manifest.hypernodes import read_hypernode
from pumice.model.manifest.job_fields import read_batch_job, read_job_maker, read_volcano_job
from pumice.model.manifest.kai import (
    read_bind_request,
    read_kai_pod_group,
    read_kai_queue,
    read_topology,
)
from pumice.model.manifest.native import read_composite_pod_group, read_native_pod_group, read_workload
from pumice.model.manifest.nodes import read_node
from pumice.model.manifest.numa import read_node_resource_topology, read_numa_topology
from pumice.model.manifest.pod_spec import SpecCache
from pumice.model.manifest.pods import read_pod
from pumice.model.manifest.reading.fields import FieldError, ManifestError, Obj, UnsupportedKind, shown
from pumice.model.manifest.reading.unreadable import (
    effect_of,
    salvaged_bind_request,
    salvaged_composite_pod_group,
    salvaged_hypernode,
    salvaged_kai_queue,
    salvaged_native_pod_group,
    salvaged_node,
    salvaged_node_resource_topology,
    salvaged_numa_topology,
    salvaged_pod,
    salvaged_pod_group,
    salvaged_priority_class,
    salvaged_queue,
    salvaged_resource_quota,
    salvaged_topology,
    salvaged_workload,
)
from pumice.model.manifest.usages import read_node_usage, read_queue_history
from pumice.model.manifest.volumes import (
    read_csi_node,
    read_storage_capacity,
    read_storage_class,
    read_volume,
    read_volume_claim,
)
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.queue import PriorityClass, Queue, ResourceQuota
from pumice.model.topology import HyperNode, Topology
from pumice.model.usage import NodeUsage, QueueHistory
from pumice.model.volumes import CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.model.workloads.composite import CompositePodGroup
from pumice.model.workloads.job import BatchJob, VolcanoJob
from pumice.model.workloads.job_makers import CRON_JOB, JOB_FLOW, JOB_TEMPLATE, JobMaker
from pumice.model.workloads.native_group import COMPOSITE_VERSIONS, FIRST_VERSION, NATIVE_GROUP, NATIVE_VERSIONS
from pumice.model.workloads.podgroup import PodGroup
from pumice.model.workloads.workload import Workload

Value = (
    Pod
    | Node
    | PodGroup
    | CompositePodGroup
    | Workload
    | Queue
    | PriorityClass
    | ResourceQuota
    | HyperNode
    | Topology
    | BindRequest
    | ConfigMap
    | PodDisruptionBudget
    | ResourceClaim
    | ResourceClaimTemplate
    | ResourceSlice
    | DeviceClass
    | PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIStorageCapacity
    | NodeUsage
    | QueueHistory
    | Numatopology
    | NodeResourceTopology
    | VolcanoJob
    | BatchJob
    | JobMaker
)


# One error and not all: the strict reader ends at the first, and the object has to be corrected field by field anyway.
class Reading(NamedTuple):
    """The result of reading an object. ``error``: the first error in it. ``effect``: its consequence."""

    value: Value
    error: ManifestError | None = None
    effect: str = ""

    @property
    def why(self) -> str:
        """What is reported of the object, "" if it was read in full."""
        return f"{self.error}; {self.effect}" if self.error is not None else ""


class Decoder:
    """Decode objects. Holds the cache that makes equal pod specs one object, so each thread needs its own.

    ``default_queue`` and ``default_scheduler``: for objects that name none.
    """

    def __init__(
        self, *, default_queue: str = "default", default_scheduler: str = "volcano", specs_max: int = 65_536
    ) -> None:
        # Defaults of a language, given from outside, since one reader serves Volcano's and KAI's objects.
        self.default_queue = default_queue
        self.default_scheduler = default_scheduler
        self.specs = SpecCache(specs_max)

    def decode(self, obj: object) -> Value:
        """Return the value of a decoded object.

        Raises: UnsupportedKind for kinds that Pumice does not read, ManifestError for any error in the object.
        """
        return self.decode_as(*_with_kind(obj))

    def read(self, obj: object) -> Reading:
        """Return what counts of a decoded object, whatever errors are in it.

        Raises: as ``decode``, for kinds of which nothing counts then (jobs), and for objects without a name.
        """
        return self.read_as(*_with_kind(obj))

    def read_as(self, api_version: str, kind: str, obj: Obj) -> Reading:
        """Return what counts of an object whose kind is already known. Raises: as ``read``."""
        # The strict reader first: nearly all objects are readable, and for them nothing is repaired.
        try:
            return Reading(self.decode_as(api_version, kind, obj))
        except UnsupportedKind:
            raise
        except ManifestError as error:
            salvaged = _SALVAGED.get((api_version, kind))
            # A job that cannot be read makes no pods, so nothing of it needs to count.
            if salvaged is None:
                raise
            reader = _READERS[api_version, kind]
            try:
                value = salvaged(obj, lambda each: reader(self, each))
            # Not even the least of it is readable: the first error says more than one about the rest.
            except FieldError:
                raise error from None
            return Reading(value, error, effect_of(value))

    def decode_as(self, api_version: str, kind: str, obj: Obj) -> Value:
        """Return the value of an object whose kind is already known, as in a typed list. Raises: as ``decode``."""
        # By version and kind: a later version of an API may give a field another meaning.
        reader = _READERS.get((api_version, kind))
        if reader is None:
            raise UnsupportedKind(where(obj, kind), _short(f"{api_version} {kind}"))
        try:
            return reader(self, obj)
        except FieldError as error:
            # The reader knows the path of the field, and only this place the name of the object.
            raise ManifestError(f"{where(obj, kind)}: {error.path}", error.found, error.wanted) from None


def _with_kind(obj: object) -> tuple[str, str, Obj]:
    """Return apiVersion, kind and the object. Raises: ManifestError."""
    # ``type`` and not ``isinstance``, here as in all checks: it is faster, and JSON has no subclasses.
    if type(obj) is not dict:
        raise ManifestError("object", shown(obj), "an object with apiVersion and kind")
    # Both before anything else, since no reader can be chosen without them.
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if type(api_version) is str and type(kind) is str and api_version and kind:
        return api_version, kind, obj
    key, value = ("kind", kind) if type(api_version) is str and api_version else ("apiVersion", api_version)
    raise ManifestError(f"{where(obj)}: {key}", shown(value), "a string that is not empty")


def where(obj: Obj, kind: str = "") -> str:
    """Return ``Pod bench/x``, as far as the object says."""
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    parts = [_short(metadata.get(key)) for key in ("namespace", "name")]
    return f"{_short(kind or obj.get('kind')) or 'object'} {'/'.join(part for part in parts if part) or '(no name)'}"


def _short(value: object) -> str:
    if not isinstance(value, str):
        return ""
    # A name from an unreadable object may be of any length, and may contain control characters.
    return value if len(value) <= 80 and value.isprintable() else shown(value)


# Three versions with one reader: it takes both places in which a field was over time.
_DEVICES = ("resource.k8s.io/v1", "resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1")


def _native_reader(version: str) -> Callable[[Decoder, Obj], Value]:
    # Items of a list do not say their version themselves.
    return lambda decoder, obj: read_native_pod_group(obj, version, decoder.default_queue)


def _composite_reader(version: str) -> Callable[[Decoder, Obj], Value]:
    return lambda decoder, obj: read_composite_pod_group(obj, version, decoder.default_queue)


_NATIVE = tuple(f"{NATIVE_GROUP}/{version}" for version in NATIVE_VERSIONS)
_COMPOSITE = tuple(f"{NATIVE_GROUP}/{version}" for version in COMPOSITE_VERSIONS)
_READERS: dict[tuple[str, str], Callable[[Decoder, Obj], Value]] = {
    ("v1", "Pod"): lambda decoder, obj: read_pod(obj, decoder.specs, decoder.default_scheduler),
    ("v1", "Node"): lambda _, obj: read_node(obj),
    ("v1", "ResourceQuota"): lambda _, obj: read_resource_quota(obj),
    ("v1", "ConfigMap"): lambda _, obj: read_config_map(obj),
    ("policy/v1", "PodDisruptionBudget"): lambda _, obj: read_disruption_budget(obj),
    ("scheduling.k8s.io/v1", "PriorityClass"): lambda _, obj: read_priority_class(obj),
    ("scheduling.volcano.sh/v1beta1", "PodGroup"): lambda decoder, obj: read_pod_group(obj, decoder.default_queue),
    ("scheduling.volcano.sh/v1beta1", "Queue"): lambda _, obj: read_queue(obj),
    ("topology.volcano.sh/v1alpha1", "HyperNode"): lambda _, obj: read_hypernode(obj),
    ("scheduling.run.ai/v2alpha2", "PodGroup"): lambda decoder, obj: read_kai_pod_group(obj, decoder.default_queue),
    ("scheduling.run.ai/v2", "Queue"): lambda _, obj: read_kai_queue(obj),
    ("scheduling.run.ai/v1alpha2", "BindRequest"): lambda _, obj: read_bind_request(obj),
    ("kai.scheduler/v1alpha1", "Topology"): lambda _, obj: read_topology(obj),
    ("nodeinfo.volcano.sh/v1alpha1", "Numatopology"): lambda _, obj: read_numa_topology(obj),
    ("topology.node.k8s.io/v1alpha2", "NodeResourceTopology"): lambda _, obj: read_node_resource_topology(obj),
    ("pumice.dev/v1alpha1", "NodeUsage"): lambda _, obj: read_node_usage(obj),
    ("pumice.dev/v1alpha1", "QueueHistory"): lambda _, obj: read_queue_history(obj),
    ("batch.volcano.sh/v1alpha1", "Job"): lambda decoder, obj: read_volcano_job(
        obj, decoder.specs, decoder.default_queue, decoder.default_scheduler
    ),
    ("batch.volcano.sh/v1alpha1", CRON_JOB): lambda _, obj: read_job_maker(obj, CRON_JOB),
    ("flow.volcano.sh/v1alpha1", JOB_FLOW): lambda _, obj: read_job_maker(obj, JOB_FLOW),
    ("flow.volcano.sh/v1alpha1", JOB_TEMPLATE): lambda _, obj: read_job_maker(obj, JOB_TEMPLATE),
    ("batch/v1", "Job"): lambda decoder, obj: read_batch_job(obj, decoder.specs, decoder.default_scheduler),
    ("v1", "PersistentVolume"): lambda _, obj: read_volume(obj),
    ("v1", "PersistentVolumeClaim"): lambda _, obj: read_volume_claim(obj),
    ("storage.k8s.io/v1", "StorageClass"): lambda _, obj: read_storage_class(obj),
    ("storage.k8s.io/v1", "CSINode"): lambda _, obj: read_csi_node(obj),
    ("storage.k8s.io/v1", "CSIStorageCapacity"): lambda _, obj: read_storage_capacity(obj),
    **{(version, "ResourceClaim"): lambda _, obj: read_resource_claim(obj) for version in _DEVICES},
    **{(version, "ResourceClaimTemplate"): lambda _, obj: read_resource_claim_template(obj) for version in _DEVICES},
    **{(version, "ResourceSlice"): lambda _, obj: read_resource_slice(obj) for version in _DEVICES},
    **{(version, "DeviceClass"): lambda _, obj: read_device_class(obj) for version in _DEVICES},
    (FIRST_VERSION, "Workload"): lambda decoder, obj: read_workload(obj, decoder.default_queue),
    **{(version, "PodGroup"): _native_reader(version) for version in _NATIVE},
    **{(version, "CompositePodGroup"): _composite_reader(version) for version in _COMPOSITE},
}

#: Readers of what counts of an unreadable object. Each uses the strict reader of its kind.
_SALVAGED: dict[tuple[str, str], Callable[[Obj, Callable[[Obj], Any]], Value]] = {
    ("v1", "Pod"): salvaged_pod,
    ("v1", "Node"): salvaged_node,
    ("v1", "ResourceQuota"): salvaged_resource_quota,
    ("scheduling.k8s.io/v1", "PriorityClass"): salvaged_priority_class,
    ("scheduling.volcano.sh/v1beta1", "PodGroup"): salvaged_pod_group,
    ("scheduling.volcano.sh/v1beta1", "Queue"): salvaged_queue,
    ("topology.volcano.sh/v1alpha1", "HyperNode"): salvaged_hypernode,
    ("nodeinfo.volcano.sh/v1alpha1", "Numatopology"): salvaged_numa_topology,
    ("topology.node.k8s.io/v1alpha2", "NodeResourceTopology"): salvaged_node_resource_topology,
    ("scheduling.run.ai/v2alpha2", "PodGroup"): salvaged_pod_group,
    ("scheduling.run.ai/v2", "Queue"): salvaged_kai_queue,
    ("scheduling.run.ai/v1alpha2", "BindRequest"): salvaged_bind_request,
    ("kai.scheduler/v1alpha1", "Topology"): salvaged_topology,
    (FIRST_VERSION, "Workload"): salvaged_workload,
    **{(version, "PodGroup"): salvaged_native_pod_group for version in _NATIVE},
    **{(version, "CompositePodGroup"): salvaged_composite_pod_group for version in _COMPOSITE},
}

#: ``(apiVersion, kind)`` of everything that can be decoded.
SUPPORTED_KINDS = tuple(_READERS)
