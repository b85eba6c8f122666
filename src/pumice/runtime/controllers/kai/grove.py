"""Gangs of Grove (and of Dynamo, which uses it) in KAI's terms: the PodGang says what they are. Source: KAI
``grove_grouper``."""

from __future__ import annotations

from pumice.model.manifest.reading.fields import Obj
from pumice.model.workloads.gang import SubGroup, TopologyConstraint
from pumice.runtime.controllers.kai.owners import inheriting
from pumice.runtime.controllers.kai.plan import (
    TOPOLOGY_ANNOTATION,
    GangPlan,
    NoGang,
    check_sub_groups,
    constraint_in,
    named,
)
from pumice.runtime.controllers.writes import annotations_of, count_or, meta, part, parts

_TOPOLOGY_NAME = "grove.io/topology-name"


def grove(pod: Obj, owner: Obj, pod_gang: Obj | None) -> GangPlan:
    """Return the gang of a PodGang. ``owner``: the top owner, whose labels pass to the group. Raises: NoGang."""
    if pod_gang is None:
        raise NoGang(f"{named(owner)}: pod {meta(pod).get('name')}: found no PodGang of its label grove.io/podgang")
    topology = annotations_of(pod_gang).get(_TOPOLOGY_NAME) or annotations_of(pod_gang).get(TOPOLOGY_ANNOTATION) or ""
    spec = part(pod_gang, "spec")
    listed, above = parts(spec, "podgroups"), parts(spec, "topologyConstraintGroupConfigs")
    check_sub_groups(len(listed) + len(above), pod_gang)
    parents: dict[str, str] = {}
    sets: list[SubGroup] = []
    for each in above:
        inside = [name for name in each.get("podGroupNames") or () if isinstance(name, str)]
        if inside:
            name = _name(each, pod_gang)
            parents |= dict.fromkeys(inside, name)
            sets.append(SubGroup(name, topology=_place(each, topology, pod_gang), min_sub_group=len(inside)))
    leaves, member = [], ""
    for each in listed:
        name, least = _name(each, pod_gang), count_or(each.get("minReplicas"), 0)
        if not least:
            raise NoGang(f"{named(pod_gang)}: pod group {name}: minReplicas: found none, wanted an integer from 1")
        leaves.append(SubGroup(name, least, parents.get(name, ""), _place(each, topology, pod_gang)))
        if any(ref.get("name") == meta(pod).get("name") for ref in parts(each, "podReferences")):
            member = name
    top = inheriting(pod_gang, owner)
    return GangPlan(
        sum(each.min_member for each in leaves) or 1,
        (*sets, *leaves),
        member=member,
        top=top,
        own_class=str(spec.get("priorityClassName") or ""),
        topology=_place(spec, topology, pod_gang) or constraint_in(annotations_of(top)),
    )


def _place(obj: Obj, topology: str, pod_gang: Obj) -> TopologyConstraint | None:
    pack = part(obj, "topologyConstraint", "packConstraint")
    levels = str(pack.get("required") or ""), str(pack.get("preferred") or "")
    if not any(levels):
        return None
    if not topology:
        raise NoGang(f"{named(pod_gang)}: found a topologyConstraint, wanted the annotation {_TOPOLOGY_NAME} beside it")
    return TopologyConstraint(topology, *levels)


def _name(obj: Obj, pod_gang: Obj) -> str:
    name = obj.get("name")
    if not isinstance(name, str) or not name:
        raise NoGang(f"{named(pod_gang)}: found a group of pods without a name")
    return name.lower()
