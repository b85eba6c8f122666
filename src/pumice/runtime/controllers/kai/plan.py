"""What KAI's pod-grouper derives from the owner of a pod: the gang that the pod is part of."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pumice.model.manifest.reading.fields import Obj
from pumice.model.workloads.gang import SUB_GROUPS_MAX, SubGroup, TopologyConstraint
from pumice.model.workloads.job import JOB_PODS_MAX
from pumice.runtime.controllers.writes import annotations_of, meta

TRAIN, BUILD, INFERENCE = "train", "build", "inference"
#: Annotation of a Job, JobSet or template of a replicated job with another minimum than its own.
MIN_MEMBER_ANNOTATION = "kai.scheduler/batch-min-member"
#: The same of a StatefulSet.
SET_MIN_MEMBER_ANNOTATION = "kai.scheduler/min-member"
TOPOLOGY_ANNOTATION = "kai.scheduler/topology"
REQUIRED_ANNOTATION = "kai.scheduler/topology-required-placement"
PREFERRED_ANNOTATION = "kai.scheduler/topology-preferred-placement"
#: Pods of a segment are placed in one domain. Annotations of pods, templates or owners.
SEGMENT_SIZE_ANNOTATION = "kai.scheduler/segment-size"
_SEGMENT_REQUIRED = "kai.scheduler/segment-topology-required-placement"
_SEGMENT_PREFERRED = "kai.scheduler/segment-topology-preferred-placement"


class NoGang(Exception):
    """An owner's spec is invalid. The text has what was found and what was wanted."""


class GangPlan(Struct, frozen=True):
    """A gang. ``minimum`` has no meaning if ``min_sub_group`` is given. ``member``: the pod's sub-group, "" for none.
    ``top``: the object that the group belongs to, None for the top owner. ``suffix``: end of the group's name, after
    that of the top. ``name``: the whole name, "" to follow the top. ``priority_class``: if neither top nor pod name
    one. ``own_class``: the one that the owner's spec names, before the pod's. ``alone``: the pod is a gang of its own,
    which has its name. ``topology``: None to follow the annotations of the top."""

    minimum: int = 1
    sub_groups: tuple[SubGroup, ...] = ()
    min_sub_group: int | None = None
    member: str = ""
    top: Obj | None = None
    suffix: str = ""
    name: str = ""
    priority_class: str = TRAIN
    own_class: str = ""
    alone: bool = False
    topology: TopologyConstraint | None = None


def checked(plan: GangPlan, owner: Obj) -> GangPlan:
    """Return the plan if its numbers are within bounds. Raises: NoGang."""
    if not 1 <= plan.minimum <= JOB_PODS_MAX:
        raise NoGang(f"{named(owner)}: found {plan.minimum} pods that must start together, wanted 1 to {JOB_PODS_MAX}")
    check_sub_groups(len(plan.sub_groups), owner)
    return plan


def check_sub_groups(number: int, owner: Obj) -> None:
    """Raise NoGang if there are too many sub-groups. Asked before they are made: the number is the user's."""
    if number > SUB_GROUPS_MAX:
        raise NoGang(f"{named(owner)}: found {number} groups of pods, wanted at most {SUB_GROUPS_MAX}")


def named(owner: Obj) -> str:
    """Return kind and name, for messages."""
    return f"{owner.get('kind')} {meta(owner).get('name')}"


def whole(text: str) -> int | None:
    """Return the decimal number in a label or annotation, or None."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def minimum_in(
    annotations: Mapping[str, str], where: str, default: int, annotation: str = MIN_MEMBER_ANNOTATION
) -> int:
    """Return the minimum in the annotation, the default without it. Raises: NoGang."""
    written = annotations.get(annotation)
    if written is None:
        return default
    found = whole(written)
    if not found:
        shown = written[:40]
        raise NoGang(f"{where}: annotation {annotation}: found {shown!r}, wanted an integer from 1")
    return found


def constraint_in(annotations: Mapping[str, str]) -> TopologyConstraint | None:
    """Return the topology constraint in annotations. Without a topology or without levels there is none."""
    return _constraint(annotations.get(TOPOLOGY_ANNOTATION), annotations, REQUIRED_ANNOTATION, PREFERRED_ANNOTATION)


def segment_constraint(pod: Obj, template: Mapping[str, str], owner: Obj) -> TopologyConstraint | None:
    """Return the constraint of each segment: from the pod, else the template's annotations, the topology's name also
    from the owner."""
    nearest = {**template, **{key: text for key, text in annotations_of(pod).items() if text}}
    topology = nearest.get(TOPOLOGY_ANNOTATION) or annotations_of(owner).get(TOPOLOGY_ANNOTATION)
    return _constraint(topology, nearest, _SEGMENT_REQUIRED, _SEGMENT_PREFERRED)


def _constraint(
    topology: str | None, annotations: Mapping[str, str], required: str, preferred: str
) -> TopologyConstraint | None:
    levels = annotations.get(required) or "", annotations.get(preferred) or ""
    return TopologyConstraint(topology, *levels) if topology and any(levels) else None
