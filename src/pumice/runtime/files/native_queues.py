"""Which queue Kubernetes' own groups are in that name none: the default queue of the scheduler that their pods name.

On a cluster the scheduler that reads a group knows its own. Files may have pods of several.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from pumice.model.manifest.native import named_queue
from pumice.model.pod import NATIVE_GROUP_MARK, Pod
from pumice.model.workloads.composite import CompositePodGroup, tree_key
from pumice.model.workloads.podgroup import PodGroup
from pumice.model.workloads.workload import WORKLOAD_PREFIX, Workload, workload_ref

Group = PodGroup | CompositePodGroup | Workload


def moved_groups(objects: Iterable[Any], scheduler_names: Iterable[str], queue: str) -> Iterator[Group]:
    """Yield the groups that name no queue and have pods of these schedulers, or groups below them have, as they are in
    the default queue of these."""
    names, parents, groups, found = frozenset(scheduler_names), dict[str, str](), list[Group](), set[str]()
    for each in objects:
        if isinstance(each, Pod):
            if each.scheduler_name in names and NATIVE_GROUP_MARK in each.annotations:
                found.add(_node_of(each))
        elif isinstance(each, CompositePodGroup | Workload) or (isinstance(each, PodGroup) and each.native is not None):
            groups.append(each)
            parents[_node(each)] = _parent(each)
    for each in sorted(found):
        _mark_above(each, parents, found)
    yield from (
        replace(each, queue=queue)
        for each in groups
        if _node(each) in found and not named_queue(each.labels, each.annotations)
    )


def _node_of(pod: Pod) -> str:
    """Return the key of the group that a pod names."""
    ref = workload_ref(pod.group_key.partition("/")[2])
    return _workload_key(pod.namespace, ref.workload) if ref is not None else pod.group_key


def _workload_key(namespace: str, name: str) -> str:
    return f"{namespace}/{WORKLOAD_PREFIX}{name}"


def _node(group: Group) -> str:
    """Return the key of a group. A CompositePodGroup or a Workload may have the name of a PodGroup."""
    if isinstance(group, Workload):
        return _workload_key(group.namespace, group.name)
    return tree_key(group.key) if isinstance(group, CompositePodGroup) else group.key


def _parent(group: Group) -> str:
    """Return the key of the CompositePodGroup that contains a group, "" for none."""
    if isinstance(group, Workload):
        return ""
    parent = group.parent if isinstance(group, CompositePodGroup) else group.native.parent if group.native else ""
    return tree_key(f"{group.namespace}/{parent}") if parent else ""


def _mark_above(group: str, parents: Mapping[str, str], found: set[str]) -> None:
    """Add all groups that contain a group."""
    above = parents.get(group, "")
    # Parents may go round in a circle.
    while above and above not in found:
        found.add(above)
        above = parents.get(above, "")
