"""The gang: a PodGroup, its sub-groups, its topology wish and its status."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pumice.model.pod import EMPTY_MAP, PREEMPTABLE_KEY, LabelSelector, is_true
from pumice.model.resources import Resource
from pumice.model.workloads.gang import Gang, GroupResources, SchedulingCondition

#: Where a job says how long it may wait; the first that can be read counts. Source: Volcano sla.
SLA_ANNOTATIONS = ("volcano.sh/sla-waiting-time", "sla-waiting-time")
#: A ``min_member`` that no gang has.
OUT_OF_REACH = 2**31 - 1
#: How many of a job's tasks must run, or may be missing, whoever wants them to leave; the first that is there counts.
MIN_RUNNING_ANNOTATION, MAX_MISSING_ANNOTATION = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"


class NetworkTopology(Struct, frozen=True):
    """``mode`` hard or soft; the bound is a tier number or, when that is unset, a tier name."""

    mode: str = "hard"
    highest_tier: int | None = None
    highest_tier_name: str = ""

    @property
    def is_hard(self) -> bool:
        """Hard with a resolved bound. Without a bound a hard topology constrains nothing (Volcano)."""
        return self.mode == "hard" and self.highest_tier is not None


class SubGroupPolicy(Struct, frozen=True):
    """A part of a PodGroup whose pods are grouped by label, with a topology of its own."""

    name: str
    topology: NetworkTopology | None = None
    sub_group_size: int | None = None
    min_sub_groups: int | None = None
    selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()


class PodGroupCondition(Struct, frozen=True):
    """One of ``status.conditions`` of a PodGroup."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    transition_id: str = ""
    last_transition: float = 0.0


class PodGroupStatus(Struct, frozen=True):
    """``scheduling``, ``pending`` and ``resources`` are KAI's alone, the newest condition last."""

    phase: str = "Pending"
    conditions: tuple[PodGroupCondition, ...] = ()
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    pending: int = 0
    scheduling: tuple[SchedulingCondition, ...] = ()
    resources: GroupResources | None = None


class PodGroup(Struct, frozen=True):
    """The gang. ``gang``: what a PodGroup of KAI's says beyond the rest, None for one of Volcano's.

    ``unread``: what of it could not be read, and why. ``min_member`` is out of reach then: no pod of it is placed, and
    those that run count in its queue and are nobody's victims.
    """

    namespace: str
    name: str
    uid: str
    queue: str = "default"
    min_member: int = 0
    min_task_member: Mapping[str, int] = EMPTY_MAP  # type: ignore[assignment]
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
    unread: tuple[str, ...] = ()

    @property
    def barred(self) -> bool:
        """Whether what could not be read of it may have forbidden something."""
        return bool(self.unread) and self.min_member == OUT_OF_REACH

    @property
    def preemptable(self) -> bool:
        """Whether the job says of itself that it may be evicted; a job that says nothing does not."""
        return is_true(self.annotations.get(PREEMPTABLE_KEY, self.labels.get(PREEMPTABLE_KEY)))

    @property
    def key(self) -> str:
        """``namespace/name``: the job's identity in the scheduler."""
        return f"{self.namespace}/{self.name}"
