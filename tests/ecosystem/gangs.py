"""What a manifest's gangs are, as the scheduler takes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pumice.model.events import Object
from pumice.model.pod import GROUP_NAME_ANNOTATION, NATIVE_SUB_GROUP_MARK, Pod
from pumice.model.workloads.gang import SUB_GROUP_LABEL, SubGroup, TopologyConstraint
from pumice.model.workloads.podgroup import PodGroup
from pumice.sim.scenes.inputs import read_inputs

HERE = Path(__file__).parent
MANIFESTS = sorted((HERE / "manifests").glob("*/*.yaml"))
#: Queues, nodes, classes and the Topology that all manifests of a form share.
CLUSTERS = {form: HERE / f"cluster-{form}.yaml" for form in ("volcano", "kai", "native")}

Plain = dict[str, Any]


def name_of(manifest: Path) -> str:
    """Return ``form/name``."""
    return f"{manifest.parent.name}/{manifest.stem}"


def objects_of(manifest: Path) -> list[Object]:
    """Return what a manifest and its cluster hold, with the PodGroups that are made."""
    scene = read_inputs([str(CLUSTERS[manifest.parent.name]), str(manifest)]).scene
    expanded = (work.expand(0.0) for work in scene.works)
    return [*scene.objects, *(each for group, pods in expanded for each in (group, *pods))]


def gangs_of(manifest: Path) -> dict[str, Plain]:
    """Return the gangs of a manifest by the name of their PodGroup, without what has its default."""
    objects = objects_of(manifest)
    groups = sorted((each for each in objects if isinstance(each, PodGroup)), key=lambda each: each.name)
    pods = [each for each in objects if isinstance(each, Pod)]
    return {group.name: _plain(group, pods) for group in groups}


def _plain(group: PodGroup, pods: Iterable[Pod]) -> Plain:
    mine = [pod for pod in pods if pod.annotations.get(GROUP_NAME_ANNOTATION) == group.name]
    found: Plain = {"pods": _members(mine), "queue": group.queue}
    if group.gang is None or group.gang.min_sub_group is None:
        found["minimum"] = group.min_member
    if group.priority_class_name:
        found["priority"] = group.priority_class_name
    if group.topology is not None:
        found["topology"] = f"{group.topology.mode}, tier {group.topology.highest_tier}"
    if group.min_resources is not None:
        found["resources"] = f"{group.min_resources.milli_cpu / 1000:g} cpu"
    if group.gang is not None:
        found |= _tree(group)
    if group.native is not None:
        found["evicted"] = "whole" if group.native.leaves_whole else "pod by pod"
    return found


def _members(pods: Iterable[Pod]) -> Any:
    """Return how many pods there are, or of each sub-group."""
    counted = Counter(pod.annotations.get(NATIVE_SUB_GROUP_MARK) or pod.labels.get(SUB_GROUP_LABEL, "") for pod in pods)
    return counted[""] if set(counted) <= {""} else dict(sorted(counted.items()))


def _tree(group: PodGroup) -> Plain:
    gang, found = group.gang, {}
    assert gang is not None
    if gang.min_sub_group is not None:
        found["sub_groups_needed"] = gang.min_sub_group
    if gang.topology is not None:
        found["topology"] = _place(gang.topology)
    if gang.preemptibility:
        found["preemptibility"] = gang.preemptibility
    if gang.preemption_delay:
        found["preemption_delay_s"] = gang.preemption_delay
    if gang.sub_groups:
        found["sub_groups"] = {each.name: _sub_group(each) for each in gang.sub_groups}
    return found


def _sub_group(sub: SubGroup) -> Any:
    """Return the minimum, or more if there is more."""
    if not (sub.parent or sub.topology or sub.min_sub_group is not None):
        return sub.min_member
    found: Plain = {}
    if sub.min_sub_group is None:
        found["minimum"] = sub.min_member
    else:
        found["sub_groups_needed"] = sub.min_sub_group
    if sub.parent:
        found["parent"] = sub.parent
    if sub.topology:
        found["topology"] = _place(sub.topology)
    return found


def _place(topology: TopologyConstraint) -> str:
    return f"{topology.topology}: required {topology.required or '-'}, preferred {topology.preferred or '-'}"
