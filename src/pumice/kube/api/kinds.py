"""Kinds of objects that are watched and written, with their paths."""

from __future__ import annotations

from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from pumice.model.queue import Queue
from pumice.model.workloads.composite import CompositePodGroup
from pumice.model.workloads.native_group import COMPOSITE_VERSIONS, NATIVE_GROUP, NATIVE_VERSIONS
from pumice.model.workloads.podgroup import PodGroup


class Kind(Struct, frozen=True):
    """A kind in one API version.

    ``needed``: without it nothing can be scheduled. ``gives``: what is off if the kind is not installed. ``also``:
    older versions with the same objects; the newest that the server has is followed. ``seldom``: most clusters do not
    have it, so that its absence is no problem to report.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    needed: bool = False
    gives: str = "what needs it"
    also: tuple[str, ...] = ()
    seldom: bool = False

    @property
    def versions(self) -> tuple[Kind, ...]:
        """The kind in each of its versions, the preferred one first."""
        return self, *(replace(self, version=version, also=()) for version in self.also)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """``podgroups.scheduling.volcano.sh``: short names exist in several groups."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def version_path(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @property
    def list_path(self) -> str:
        return f"{self.version_path}/{self.plural}"

    def path(self, key: str, subresource: str = "") -> str:
        """Return the path of an object. ``key``: ``namespace/name``, or the name of a cluster-wide one."""
        namespace, _, name = key.rpartition("/")
        within = f"/namespaces/{quote(namespace, safe='')}" if self.namespaced else ""
        below = f"/{subresource}" if subresource else ""
        return f"{self.version_path}{within}/{self.plural}/{quote(name, safe='')}{below}"

    def namespace_path(self, namespace: str) -> str:
        return f"{self.version_path}/namespaces/{quote(namespace, safe='')}/{self.plural}"


PODS = Kind("", "v1", "pods", "Pod", needed=True)
NODES = Kind("", "v1", "nodes", "Node", namespaced=False, needed=True)
NAMESPACES = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
RESOURCE_QUOTAS = Kind("", "v1", "resourcequotas", "ResourceQuota")
PRIORITY_CLASSES = Kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap", gives="waiting for ConfigMaps")
DISRUPTION_BUDGETS = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
POD_GROUPS = Kind("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", gives="gang scheduling")
QUEUES = Kind("scheduling.volcano.sh", "v1beta1", "queues", "Queue", namespaced=False, gives="queues")
HYPER_NODES = Kind(
    "topology.volcano.sh", "v1alpha1", "hypernodes", "HyperNode", namespaced=False, gives="network topology"
)
NUMA_TOPOLOGIES = Kind(
    "nodeinfo.volcano.sh", "v1alpha1", "numatopologies", "Numatopology", namespaced=False, gives="NUMA awareness"
)
NODE_ZONES = Kind(
    *("topology.node.k8s.io", "v1alpha2", "noderesourcetopologies", "NodeResourceTopology"),
    namespaced=False,
    gives="NUMA awareness",
    seldom=True,
)
NODE_SHARDS = Kind("shard.volcano.sh", "v1alpha1", "nodeshards", "NodeShard", namespaced=False, gives="node sharding")
_DEVICES, _CLAIMS_GIVE = "resource.k8s.io", "claims of devices"
RESOURCE_CLAIMS = Kind(_DEVICES, "v1", "resourceclaims", "ResourceClaim", gives=_CLAIMS_GIVE)
RESOURCE_CLAIM_TEMPLATES = Kind(_DEVICES, "v1", "resourceclaimtemplates", "ResourceClaimTemplate", gives=_CLAIMS_GIVE)
RESOURCE_SLICES = Kind(_DEVICES, "v1", "resourceslices", "ResourceSlice", namespaced=False, gives=_CLAIMS_GIVE)
DEVICE_CLASSES = Kind(_DEVICES, "v1", "deviceclasses", "DeviceClass", namespaced=False, gives=_CLAIMS_GIVE)
_STORAGE, _VOLUMES_GIVE = "storage.k8s.io", "volumes"
VOLUMES_KIND = Kind("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False, gives=_VOLUMES_GIVE)
VOLUME_CLAIMS = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", gives=_VOLUMES_GIVE)
STORAGE_CLASSES = Kind(_STORAGE, "v1", "storageclasses", "StorageClass", namespaced=False, gives=_VOLUMES_GIVE)
CSI_NODES = Kind(_STORAGE, "v1", "csinodes", "CSINode", namespaced=False, gives="limits of volumes")
STORAGE_CAPACITIES = Kind(_STORAGE, "v1", "csistoragecapacities", "CSIStorageCapacity", gives="capacity of volumes")
KAI_QUEUES = Kind("scheduling.run.ai", "v2", "queues", "Queue", namespaced=False, gives="queues")
KAI_POD_GROUPS = Kind("scheduling.run.ai", "v2alpha2", "podgroups", "PodGroup", gives="gang scheduling")
BIND_REQUESTS = Kind("scheduling.run.ai", "v1alpha2", "bindrequests", "BindRequest", gives="bindings by KAI's binder")
TOPOLOGIES = Kind("kai.scheduler", "v1alpha1", "topologies", "Topology", namespaced=False, gives="topologies")
NATIVE_POD_GROUPS = Kind(
    NATIVE_GROUP,
    NATIVE_VERSIONS[0],
    "podgroups",
    "PodGroup",
    gives="Kubernetes' own gangs",
    also=NATIVE_VERSIONS[1:],
    seldom=True,
)
COMPOSITE_POD_GROUPS = Kind(
    NATIVE_GROUP,
    COMPOSITE_VERSIONS[0],
    "compositepodgroups",
    "CompositePodGroup",
    gives="trees of Kubernetes' own gangs",
    also=COMPOSITE_VERSIONS[1:],
    seldom=True,
)
#: Later versions of Workload are left out: what they say is in the PodGroups that are made from them.
WORKLOADS = Kind(NATIVE_GROUP, "v1alpha1", "workloads", "Workload", gives="gangs of Kubernetes 1.35", seldom=True)
EVENTS = Kind("", "v1", "events", "Event")
LEASES = Kind("coordination.k8s.io", "v1", "leases", "Lease")
TOKEN_REVIEWS = Kind("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
SUBJECT_ACCESS_REVIEWS = Kind(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)

#: Kinds on which claims of devices and volumes rest.
_CLAIMED = (
    DEVICE_CLASSES,
    RESOURCE_SLICES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    STORAGE_CLASSES,
    CSI_NODES,
    STORAGE_CAPACITIES,
    VOLUMES_KIND,
    VOLUME_CLAIMS,
)

#: Kinds that a scheduler under Volcano's language follows, those on which others depend first.
FOLLOWED = (
    NAMESPACES,
    PRIORITY_CLASSES,
    QUEUES,
    RESOURCE_QUOTAS,
    DISRUPTION_BUDGETS,
    NODES,
    HYPER_NODES,
    NUMA_TOPOLOGIES,
    NODE_SHARDS,
    *_CLAIMED,
    COMPOSITE_POD_GROUPS,
    WORKLOADS,
    # Native ones first: where two kinds have an object of one name, that of the kind listed first counts.
    NATIVE_POD_GROUPS,
    POD_GROUPS,
    PODS,
)
#: Kinds that a scheduler under KAI's language follows.
KAI_FOLLOWED = (
    NAMESPACES,
    PRIORITY_CLASSES,
    KAI_QUEUES,
    DISRUPTION_BUDGETS,
    NODES,
    NODE_ZONES,
    TOPOLOGIES,
    COMPOSITE_POD_GROUPS,
    WORKLOADS,
    NATIVE_POD_GROUPS,
    KAI_POD_GROUPS,
    BIND_REQUESTS,
    CONFIG_MAPS,
    *_CLAIMED,
    PODS,
)


def kind_of_group(group: PodGroup) -> Kind:
    """Return the kind of a PodGroup: Volcano's, KAI's, or Kubernetes' own in the version in which it was read. A tree
    has that of its root, and a pod group of a Workload that of the Workload."""
    if group.native is not None:
        if not group.native.has_object:
            return WORKLOADS
        of_kind = COMPOSITE_POD_GROUPS if group.native.is_tree else NATIVE_POD_GROUPS
        return _in_version(of_kind, group.native.api_version)
    return POD_GROUPS if group.gang is None else KAI_POD_GROUPS


def kind_of_composite(group: CompositePodGroup) -> Kind:
    """Return the kind of a CompositePodGroup in the version in which it was read."""
    return _in_version(COMPOSITE_POD_GROUPS, group.api_version)


def native_pod_groups(api_version: str) -> Kind:
    """Return the kind of Kubernetes' own PodGroups in a version."""
    return _in_version(NATIVE_POD_GROUPS, api_version)


def _in_version(kind: Kind, api_version: str) -> Kind:
    return next((each for each in kind.versions if each.api_version == api_version), kind)


def kind_of_queue(queue: Queue) -> Kind:
    """Return the kind of a Queue: Volcano's or KAI's."""
    return QUEUES if queue.sharing is None else KAI_QUEUES
