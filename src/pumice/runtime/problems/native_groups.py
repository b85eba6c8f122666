"""Name what is wrong with the trees of CompositePodGroups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pumice.model.workloads.gang import Gang
from pumice.model.workloads.podgroup import PodGroup
from pumice.model.workloads.tree_gang import PARENT_FIELD
from pumice.runtime.problems.problem import Problem, Severity


def tree_problems(objects: Iterable[object]) -> Iterator[Problem]:
    """Yield the PodGroups that are in no tree, and the CompositePodGroups with fewer groups than they need."""
    for obj in objects:
        if not isinstance(obj, PodGroup) or obj.native is None:
            continue
        for each in obj.unparsable:
            if each.startswith(PARENT_FIELD):
                yield Problem(f"PodGroup {obj.key}", f"{each}; its pods are not placed")
        if not obj.native.is_tree or obj.gang is None:
            continue
        if obj.gang.sub_groups:
            yield from _too_few(obj, obj.gang)
        else:
            # Only a tree that is too large has none.
            root = f"CompositePodGroup {obj.namespace}/{obj.name.partition(':')[2]}"
            yield Problem(root, f"{'; '.join(obj.unparsable)}; its pods are not placed")


def _too_few(group: PodGroup, gang: Gang) -> Iterator[Problem]:
    inside = gang.children()
    sets = [(group.name, gang.min_sub_group), *((each.name, each.min_sub_group) for each in gang.sub_groups)]
    for name, wanted in sets:
        members = inside.get("" if name == group.name else name, ())
        if wanted is not None and wanted > len(members):
            where = f"CompositePodGroup {group.namespace}/{name.partition(':')[2]}"
            what = f"minGroupCount is {wanted}, but it has {len(members)} groups"
            yield Problem(where, what, Severity.WARNING)
