"""Pods as the API server describes them, reduced to what a scheduler reads.

``PodSpec`` holds everything that pods of one job normally share. Equal specs should be one object, because the core
groups tasks by it (see ``columns.classes``). Sharing them is what makes a gang of a thousand pods cheap.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from msgspec import Struct
from msgspec.structs import replace

from pumice.model.devices.gpu import GPU_RESOURCE, GpuShare
from pumice.model.devices.numa import ContainerRequests, NumaAsk
from pumice.model.devices.shared_devices import DeviceAsk
from pumice.model.resources import EMPTY, Resource
from pumice.model.strategy import ResourceStrategy


# Most pods have no annotations. One shared map for all of them saves memory, and must not be written by mistake.
class _EmptyMap(dict[str, str]):
    """A mapping that stays empty and, unlike Python 3.11's mappingproxy, is hashable."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return 0

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("EMPTY_MAP is shared by everything that has none: make a mapping of your own")

    __setitem__ = __ior__ = update = setdefault = _refuse


EMPTY_MAP: Mapping[str, str] = _EmptyMap()

#: Phases in which no container of a pod runs any more.
ENDED = ("Succeeded", "Failed")
GROUP_NAME_ANNOTATION = "scheduling.k8s.io/group-name"
#: Marks a pod whose ``spec.schedulingGroup`` or ``spec.workloadRef`` names its group. The value is the group that
#: another field or an annotation of the pod names instead, "" if none differs. No annotation of the API: it is set when
#: the pod is read.
NATIVE_GROUP_MARK = "pumice.dev/scheduling-group"
#: Names the PodGroup of a pod in the tree of a CompositePodGroup, to which the whole tree belongs as one gang. Set like
#: the mark above.
NATIVE_SUB_GROUP_MARK = "pumice.dev/pod-group"
#: KAI's labels of a pod: its queue, while it has no PodGroup (of a claim: the owner's queue), and its order among the
#: pods of its gang, larger first.
KAI_QUEUE_LABEL = "kai.scheduler/queue"
KAI_TASK_PRIORITY_LABEL = "kai.scheduler/task-priority"
TASK_SPEC_KEY = "volcano.sh/task-spec"
TASK_PRIORITY_ANNOTATION = "volcano.sh/task-priority"
PREEMPTABLE_KEY = "volcano.sh/preemptable"
REVOCABLE_ZONE_KEY = "volcano.sh/revocable-zone"
QUEUE_GATE = "scheduling.volcano.sh/queue-allocation-gate"
#: Annotations that hold the whole object as its user wrote it, with its environment, which may contain secrets. They
#: are never written to files.
WHOLE_OBJECT_ANNOTATIONS = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
#: A gate of a pod without a node that could not be read: an unreadable field may say where it must not run.
UNREAD_GATE = "pumice.dev/unread"


_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})


def is_true(text: str | None) -> bool:
    """Return True if an annotation is true. Source: Go strconv.ParseBool."""
    return text in _TRUE


def without_queue_gate(gates: tuple[str, ...]) -> tuple[str, ...]:
    """Return scheduling gates without that of Volcano's queues. Source: Volcano."""
    return tuple(gate for gate in gates if gate != QUEUE_GATE)


class Requirement(Struct, frozen=True):
    """One entry of ``matchExpressions`` or ``matchFields``. Operators: In NotIn Exists DoesNotExist Gt Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(Struct, frozen=True):
    """A conjunction of requirements; ``matchLabels`` are stored as ``In`` with one value. Empty: matches everything."""

    requirements: tuple[Requirement, ...] = ()


class NodeSelectorTerm(Struct, frozen=True):
    """A conjunction of requirements on labels and on fields (only ``metadata.name``). Empty: matches nothing."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


class PreferredNodeTerm(Struct, frozen=True):
    """Nodes that a pod prefers, with a weight from 1 to 100."""

    weight: int
    term: NodeSelectorTerm


# None and empty differ in both selectors, as in Kubernetes: an empty one matches everything.
class PodAffinityTerm(Struct, frozen=True):
    """A term of inter-pod affinity or anti-affinity.

    ``namespaces``: the pod's own if the term names none. ``selector`` None: matches no pod. ``namespace_selector``
    None: not given; empty: every namespace.
    """

    topology_key: str
    selector: LabelSelector | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    # Beside the selector, so that required and preferred terms are one type and are compared in one way.
    weight: int = 0  # preferred terms only


class Toleration(Struct, frozen=True):
    """Taints that a pod tolerates. No key: any key."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class TopologySpreadConstraint(Struct, frozen=True):
    """How evenly pods must be spread over the domains of a node label."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: str  # DoNotSchedule | ScheduleAnyway
    selector: LabelSelector | None
    min_domains: int = 1
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"


class Affinity(Struct, frozen=True):
    """Nodes, and pods near it, that a pod requires or prefers."""

    node_required: tuple[NodeSelectorTerm, ...] | None = None  # OR of terms; None: not given
    node_preferred: tuple[PreferredNodeTerm, ...] = ()
    pod_required: tuple[PodAffinityTerm, ...] = ()
    pod_preferred: tuple[PodAffinityTerm, ...] = ()
    anti_required: tuple[PodAffinityTerm, ...] = ()
    anti_preferred: tuple[PodAffinityTerm, ...] = ()


NO_AFFINITY = Affinity()


class HostPort(Struct, frozen=True):
    """A port of the node that a pod occupies."""

    port: int
    protocol: str = "TCP"
    ip: str = "0.0.0.0"


# Apart from ``Pod``, because thousands of pods share one: it is the key of task classes, and what it leaves out (names,
# labels, times) cannot tell two tasks of a class apart.
class PodSpec(Struct, frozen=True):
    """The part of a pod that decides where it can run. Hashable; equal values are interchangeable.

    ``request``: total request with init containers, overhead and ``pods: 1``, in canonical units. ``gpu_share``: shares
    of GPUs, in addition to the request. ``nonzero_milli_cpu`` and ``nonzero_memory``: kube-scheduler's request with
    defaults (100m and 200 MiB per container).
    """

    request: Resource
    limit: Resource = EMPTY
    nonzero_milli_cpu: float = 0.0
    nonzero_memory: float = 0.0
    node_selector: tuple[tuple[str, str], ...] = ()  # sorted by key
    affinity: Affinity = NO_AFFINITY
    tolerations: tuple[Toleration, ...] = ()
    spread: tuple[TopologySpreadConstraint, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    images: tuple[str, ...] = ()
    container_count: int = 1
    claim_names: tuple[str, ...] = ()  # PersistentVolumeClaims
    resource_claims: tuple[str, ...] = ()  # dynamic resource allocation
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    qos: str = "Burstable"
    has_sidecar: bool = False
    gpu_share: GpuShare | None = None
    strategy: ResourceStrategy | None = None  # how nodes are to be scored for it
    numa: NumaAsk | None = None  # where its CPUs are to be, if it has some of its own
    # None: one container asks for all, or none of its resources can be aligned.
    containers: ContainerRequests | None = None
    devices: DeviceAsk | None = None  # cards that pods share, in Volcano's words
    missing_config_maps: tuple[str, ...] = ()  # that it needs, and that do not exist

    @property
    def milli_gpus(self) -> float:
        """The GPUs that it asks for, with the fractions that it shares, in thousandths."""
        return self.request.get(GPU_RESOURCE) + (self.gpu_share.milli_gpus if self.gpu_share is not None else 0.0)

    @property
    def asks_for_room_alone(self) -> bool:
        """Whether only resources, taints and cordons of nodes decide where the pod can run."""
        beside = self.node_selector or self.spread or self.host_ports or self.claim_names or self.resource_claims
        return not (beside or self.missing_config_maps) and self.affinity == NO_AFFINITY


class PodCondition(Struct, frozen=True):
    """One of a pod's ``status.conditions``."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition: float = 0.0


class Pod(Struct, frozen=True):
    """A pod. Times are seconds since the epoch.

    ``unparsable``: fields that could not be read, and why; all other fields are right. ``closes_node``: the pod is on
    its node and may hold more than ``spec`` says, so the node takes no new pods while it is there. ``stays``: its
    eviction was refused recently, so no plan rests on it. ``made_claims``: names of the claims made for it from
    templates, and ``claim_entries``: names of claims within the pod, both at the positions of ``spec.resource_claims``;
    the latter only for pods with a PodGroup of Kubernetes, which may share claims. ``finish_time``: when its last
    container ended, None while one runs. ``active_deadline_s``: the kubelet ends it so long after its start.
    ``config_maps``: ConfigMaps without which it cannot start, of a pod without a node.
    """

    namespace: str
    name: str
    uid: str
    spec: PodSpec
    creation: float = 0.0
    labels: Mapping[str, str] = EMPTY_MAP
    annotations: Mapping[str, str] = EMPTY_MAP
    scheduler_name: str = "volcano"
    node_name: str = ""
    phase: str = "Pending"
    deletion: float | None = None
    start_time: float | None = None
    nominated_node: str = ""
    gates: tuple[str, ...] = ()
    conditions: tuple[PodCondition, ...] = ()
    owner: tuple[str, str, str] | None = None  # kind, name, uid of the controller
    resource_version: str = ""
    unparsable: tuple[str, ...] = ()
    closes_node: bool = False
    stays: bool = False
    made_claims: tuple[str, ...] = ()
    claim_entries: tuple[str, ...] = ()
    finish_time: float | None = None
    active_deadline_s: float | None = None
    config_maps: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def group_key(self) -> str:
        """``namespace/podgroup``, or "" if the pod has no PodGroup."""
        group = self.annotations.get(GROUP_NAME_ANNOTATION, "")
        return f"{self.namespace}/{group}" if group else ""

    def made_again(self, uid: str, creation: float) -> Pod:
        """Return the pod as its controller creates it once more: it has another UID and no node, and waits."""
        return replace(
            self,
            uid=uid,
            creation=creation,
            node_name="",
            phase="Pending",
            deletion=None,
            start_time=None,
            finish_time=None,
            nominated_node="",
            conditions=(),
        )

    @property
    def revocable_zone(self) -> str:
        """``*`` if the pod may run on nodes of any revocable zone, "" if on none.

        Source: Volcano. A preemptable pod may, unless it says otherwise.
        """
        # Only the wildcard is supported, as in Volcano: any other name of a zone counts as none.
        zone = self.annotations.get(REVOCABLE_ZONE_KEY)
        if zone is None:
            return "*" if is_true(self.annotations.get(PREEMPTABLE_KEY)) else ""
        return "*" if zone == "*" else ""

    @property
    def role(self) -> str:
        """Role of the task (``volcano.sh/task-spec``): the annotation, or else the label."""
        # Volcano's job controller writes the annotation; other owners often set only a label on the template.
        return self.annotations.get(TASK_SPEC_KEY) or self.labels.get(TASK_SPEC_KEY, "")
