"""PodGroups with their sub-groups, topology and status."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pumice.model.pod import EMPTY_MAP, PREEMPTABLE_KEY, LabelSelector, is_true
from pumice.model.resources import Resource
from pumice.model.workloads.gang import Gang, GroupResources, SchedulingCondition
from pumice.model.workloads.native_group import NativeGroup

#: Annotations with the waiting time of a job; the first valid one counts. Source: Volcano sla.
SLA_ANNOTATIONS = ("volcano.sh/sla-waiting-time", "sla-waiting-time")
#: A ``min_member`` that no gang reaches.
#: The largest value of the field, so that it survives being written to an API server.
OUT_OF_REACH = 2**31 - 1
#: Annotations of a job: how many tasks must keep running, or may be missing; the first that is set counts. Source:
#: Volcano tdm.
MIN_RUNNING_ANNOTATION, MAX_MISSING_ANNOTATION = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"


class NetworkTopology(Struct, frozen=True):
    """Topology of a job. ``mode``: hard or soft. The bound is the number of a tier or, if that is None, its name."""

    mode: str = "hard"
    highest_tier: int | None = None
    highest_tier_name: str = ""

    @property
    def is_hard(self) -> bool:
        """True for hard with a known bound. As in Volcano, a hard topology without a bound restricts nothing."""
        return self.mode == "hard" and self.highest_tier is not None


class SubGroupPolicy(Struct, frozen=True):
    """A part of a PodGroup: pods grouped by labels, with a topology of its own."""

    name: str
    topology: NetworkTopology | None = None
    sub_group_size: int | None = None
    min_sub_groups: int | None = None
    selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()


class PodGroupCondition(Struct, frozen=True):
    """One of a PodGroup's ``status.conditions``. ``observed_generation``: of the object that it is about; only
    Kubernetes' own groups have it."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    transition_id: str = ""
    last_transition: float = 0.0
    observed_generation: int = 0


class PodGroupStatus(Struct, frozen=True):
    """Status of a PodGroup. ``scheduling`` (the newest last), ``pending`` and ``resources`` are KAI's."""

    phase: str = "Pending"
    conditions: tuple[PodGroupCondition, ...] = ()
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    pending: int = 0
    scheduling: tuple[SchedulingCondition, ...] = ()
    resources: GroupResources | None = None


class PodGroup(Struct, frozen=True):
    """A PodGroup. ``gang``: the tree of sub-groups of KAI's and of Kubernetes' own PodGroup, None for one of Volcano.
    ``native``: what only Kubernetes' own says, None for others.

    ``unparsable``: fields that could not be read, and why. Then ``min_member`` is out of reach: no pod of it is placed,
    and pods that run still count in its queue and are never victims.
    """

    namespace: str
    name: str
    uid: str
    queue: str = "default"
    min_member: int = 0
    min_task_member: Mapping[str, int] = EMPTY_MAP  # type: ignore[assignment]
    # None and empty differ: without it, a group is admitted unasked.
    min_resources: Resource | None = None
    priority_class_name: str = ""
    topology: NetworkTopology | None = None
    sub_groups: tuple[SubGroupPolicy, ...] = ()
    creation: float = 0.0
    labels: Mapping[str, str] = EMPTY_MAP
    annotations: Mapping[str, str] = EMPTY_MAP
    status: PodGroupStatus = PodGroupStatus()
    resource_version: str = ""
    gang: Gang | None = None
    native: NativeGroup | None = None
    unparsable: tuple[str, ...] = ()

    @property
    def quarantined(self) -> bool:
        """True if an unreadable field may have forbidden something."""
        # Other unreadable fields, such as a condition, forbid nothing, and the job runs.
        return bool(self.unparsable) and self.min_member == OUT_OF_REACH

    @property
    def preemptable(self) -> bool:
        """True if the job says that it may be evicted. Without a word it may not."""
        return is_true(self.annotations.get(PREEMPTABLE_KEY, self.labels.get(PREEMPTABLE_KEY)))

    @property
    def leaves_whole(self) -> bool:
        """True if its pods may be evicted only together."""
        return self.native is not None and self.native.leaves_whole

    @property
    def never_preempts(self) -> bool:
        """True if nothing may be evicted for it."""
        return self.native is not None and self.native.never_preempts

    @property
    def key(self) -> str:
        """``namespace/name``, the identity of the job in the scheduler."""
        return f"{self.namespace}/{self.name}"
