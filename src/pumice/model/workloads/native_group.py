"""What Kubernetes' own PodGroups say beside the gang. Source: ``scheduling.k8s.io``, KEP-4671, KEP-5710, KEP-6012."""

from __future__ import annotations

from msgspec import Struct

#: The API group, and its versions with PodGroups that a pod names in ``spec.schedulingGroup``, the newest first.
NATIVE_GROUP = "scheduling.k8s.io"
NATIVE_VERSIONS = ("v1", "v1beta1", "v1alpha3", "v1alpha2")
#: The version before these: PodGroups are no objects, and a pod names a pod group of a Workload in
#: ``spec.workloadRef``.
FIRST_VERSION = f"{NATIVE_GROUP}/v1alpha1"
#: The condition for "the minimum has a node": once True it stays so, even if pods are evicted later.
INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
#: Its name in v1alpha2, where it may become False again.
SCHEDULED_IN_V1ALPHA2 = "PodGroupScheduled"
#: The condition of a CompositePodGroup: its minimum of groups has nodes.
COMPOSITE_INITIALLY_SCHEDULED = "CompositePodGroupInitiallyScheduled"
#: The reason of a condition of a group about which the scheduler could not decide.
SCHEDULER_ERROR = "SchedulerError"
#: The versions with CompositePodGroups, the newest first.
COMPOSITE_VERSIONS = ("v1", "v1beta1", "v1alpha3")


class GroupRef(Struct, frozen=True):
    """A PodGroup that uses a claim, and the API version in which it was read."""

    name: str
    uid: str
    api_version: str


class GroupClaim(Struct, frozen=True):
    """A claim of devices that the pods of a PodGroup share. Source: KEP-5729.

    ``group``: the PodGroup. ``entry``: its name there, and in pods that use it. ``source``: the claim, or
    ``template/<name>``. ``made``: the claim that was made from the template, "" if that is not known.
    """

    group: GroupRef
    entry: str
    source: str
    made: str = ""


class NativeGroup(Struct, frozen=True):
    """A PodGroup of ``scheduling.k8s.io``. ``api_version``: in which it was read. ``parent``: its CompositePodGroup, ""
    at the top. ``is_gang`` False is the policy ``basic``: pods are scheduled one by one. ``leaves_whole``: its pods are
    evicted only together (disruption mode ``all``). ``never_preempts``: nothing is evicted for it. ``is_tree``: it
    is a CompositePodGroup with all groups below it. ``generation``: of the object, which counts changes of its spec.
    ``min_count``: the minimum of a group that is in no tree, whose pods are not placed; 0 for others.
    ``claims``: those that its pods share."""

    api_version: str
    parent: str = ""
    is_gang: bool = True
    leaves_whole: bool = False
    never_preempts: bool = False
    is_tree: bool = False
    generation: int = 0
    min_count: int = 0
    claims: tuple[GroupClaim, ...] = ()

    @property
    def has_object(self) -> bool:
        """False for a pod group of a Workload, to which no status can be written."""
        return self.api_version != FIRST_VERSION

    @property
    def condition(self) -> str:
        """The type of the condition that says whether the group has got its minimum."""
        if self.is_tree:
            return COMPOSITE_INITIALLY_SCHEDULED
        return SCHEDULED_IN_V1ALPHA2 if self.api_version.endswith("/v1alpha2") else INITIALLY_SCHEDULED
