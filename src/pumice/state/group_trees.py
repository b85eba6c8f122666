"""Make one gang of each CompositePodGroup with the groups below it, while objects come and go.

The store, and all that reads pods and PodGroups, then see a PodGroup whose sub-groups are the groups of the tree, and
pods that belong to it. A PodGroup whose parents lead to no tree stays a job of its own, whose pods are not placed.
Source: ``scheduling.k8s.io``, KEP-6012.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from msgspec.structs import replace

from pumice.model.events import Gone, Object, Seen
from pumice.model.pod import GROUP_NAME_ANNOTATION, NATIVE_GROUP_MARK, NATIVE_SUB_GROUP_MARK, Pod
from pumice.model.workloads.composite import COMPOSITE_PREFIX, LEVELS_MAX, CompositePodGroup
from pumice.model.workloads.gang import SUB_GROUPS_MAX
from pumice.model.workloads.podgroup import OUT_OF_REACH, PodGroup
from pumice.model.workloads.tree_gang import PARENT_FIELD, tree_gang, tree_members
from pumice.model.workloads.workload import Workload, workloads_of
from pumice.state.workload_groups import WorkloadGroups

Group = CompositePodGroup | PodGroup
_GROUPED = (Pod, PodGroup, CompositePodGroup, Workload)


class _Home(NamedTuple):
    """Where a PodGroup with a parent is: in the tree of this root, or in none because of a problem."""

    root: str = ""
    problem: str = ""


# Outside of the store, because informers, controllers and laws look up the gang of a pod by its key as well, and all of
# them must find the same one.
class GroupTrees:
    """The trees of one cluster. Not thread-safe."""

    def __init__(self) -> None:
        self._composites: dict[str, CompositePodGroup] = {}
        self._groups: dict[str, PodGroup] = {}  # those with a parent, as they were read
        self._below: dict[str, dict[tuple[bool, str], None]] = {}  # parent -> (is composite, key), in a dict as a set
        self._pods: dict[str, dict[str, Pod]] = {}  # PodGroup -> its pods as they were read, by key
        self._group_of: dict[str, str] = {}  # pod -> its PodGroup
        self._homes: dict[str, _Home] = {}
        self._trees: dict[str, PodGroup] = {}  # root -> what was passed on
        self._workloads = WorkloadGroups()

    def __bool__(self) -> bool:
        return bool(self._composites or self._groups)

    def pass_on(self, event: Seen | Gone) -> Iterator[Seen | Gone]:
        """Yield what an event of the API means for those who know no CompositePodGroups and no Workloads."""
        for each in self._workloads.pass_on(event):
            yield from self._pass_on(each)

    def _pass_on(self, event: Seen | Gone) -> Iterator[Seen | Gone]:
        match event:
            case Seen(Pod() as pod):
                yield Seen(self._pod_seen(pod))
            case Gone(kind, key) if kind is Pod:
                self._pod_gone(key)
                yield event
            case Seen(PodGroup() as group) if group.native is not None and group.native.parent:
                yield from self._group_changed(group.key, group)
            case Seen(PodGroup() as group) if group.key not in self._groups:
                yield event
            # The parent of a group never changes, but it may be deleted and created anew between two events.
            case Seen(PodGroup() as group):
                yield from self._group_changed(group.key, None)
                yield event
            case Gone(kind, key) if kind is PodGroup and key in self._groups:
                yield from self._group_changed(key, None)
            case Seen(CompositePodGroup() as composite):
                yield from self._composite_changed(composite.key, composite)
            case Gone(kind, key) if kind is CompositePodGroup:
                yield from self._composite_changed(key, None)
            case _:
                yield event

    def members_of(self, tree: str) -> tuple[Group, ...]:
        """Return the objects of a tree as they were read, the root first, then CompositePodGroups and PodGroups, by the
        key of its PodGroup, or () if there is no such tree."""
        root = tree.replace(COMPOSITE_PREFIX, "", 1)
        if root not in self._trees:
            return ()
        # From the root down: a cluster may have many trees, and this is asked for each that changes.
        inner, level = list[str](), [root]
        for _ in range(LEVELS_MAX - 2):
            level = [key for parent in level for is_inner, key in self._below.get(parent, ()) if is_inner]
            inner += level
        below, _ = self._reach(root, is_composite=True)
        groups = (self._groups[key] for key in sorted(below) if self._homes[key].root == root)
        return self._composites[root], *(self._composites[key] for key in sorted(inner)), *groups

    # -- pods ---------------------------------------------------------------------------------------------------------

    def _pod_seen(self, pod: Pod) -> Pod:
        # A pod that was created anew may have another group.
        self._pod_gone(pod.key)
        if NATIVE_GROUP_MARK not in pod.annotations:
            return pod
        group = pod.group_key
        # Kept even if its group has no parent as far as is known: the group may come after its pods.
        self._pods.setdefault(group, {})[pod.key] = pod
        self._group_of[pod.key] = group
        return self._pod_at_home(pod)

    def _pod_gone(self, key: str) -> None:
        group = self._group_of.pop(key, None)
        if group is not None:
            del self._pods[group][key]
            if not self._pods[group]:
                del self._pods[group]

    def _pod_at_home(self, pod: Pod) -> Pod:
        """Return the pod as a member of its tree, if its PodGroup is in one."""
        home = self._homes.get(pod.group_key)
        if home is None or home.root not in self._trees:
            return pod
        # In annotations, where all that asks for a pod's group looks; its labels decide about affinity and stay as they
        # are.
        named = {
            GROUP_NAME_ANNOTATION: self._trees[home.root].name,
            NATIVE_SUB_GROUP_MARK: pod.annotations[GROUP_NAME_ANNOTATION],
        }
        return replace(pod, annotations={**pod.annotations, **named})

    # -- groups -------------------------------------------------------------------------------------------------------

    def _composite_changed(self, key: str, composite: CompositePodGroup | None) -> Iterator[Seen | Gone]:
        before = self._composites.get(key)
        # What it reaches before and after the change: a group may leave one tree and come into another.
        touched, roots = self._reach(key, is_composite=True)
        if composite is None:
            self._composites.pop(key, None)
        else:
            self._composites[key] = composite
        self._hang(before, composite, is_composite=True)
        more, others = self._reach(key, is_composite=True)
        yield from self._settle(touched | more, roots | others)

    def _group_changed(self, key: str, group: PodGroup | None) -> Iterator[Seen | Gone]:
        before = self._groups.get(key)
        _, roots = self._reach(key, is_composite=False)
        if group is None:
            self._groups.pop(key, None)
        else:
            self._groups[key] = group
        self._hang(before, group, is_composite=False)
        # The scheduler writes statuses itself, and nothing of a tree rests on those of its PodGroups.
        if before is not None and group is not None and _but_status(before) == _but_status(group):
            if not self._homes[key].root:
                yield from self._settle({key: None}, {})
            return
        _, others = self._reach(key, is_composite=False)
        yield from self._settle({key: None}, roots | others)

    def _hang(self, before: Group | None, after: Group | None, *, is_composite: bool) -> None:
        """Keep the groups below each parent up to date."""
        old, new = _parent_of(before), _parent_of(after)
        # Usually equal: the parent is immutable, and most changes are statuses.
        if old == new:
            return
        if before is not None and old:
            self._below[old].pop((is_composite, before.key))
            if not self._below[old]:
                del self._below[old]
        if after is not None and new:
            self._below.setdefault(new, {})[is_composite, after.key] = None

    def _reach(self, key: str, *, is_composite: bool) -> tuple[dict[str, None], dict[str, None]]:
        """Return the PodGroups whose place a change of a group may change, and the root of its tree, as sets."""
        groups: dict[str, None] = {} if is_composite else {key: None}
        level = [key] if is_composite else []
        # As deep as a tree may be: what is further down is in no tree, before and after.
        for _ in range(LEVELS_MAX):
            below = [each for parent in level for each in self._below.get(parent, ())]
            groups.update((each, None) for is_inner, each in below if not is_inner)
            level = [each for is_inner, each in below if is_inner]
        held: Group | None = self._composites.get(key) if is_composite else self._groups.get(key)
        home = self._home_of(held) if held is not None else _Home()
        return groups, {home.root: None} if home.root else {}

    def _home_of(self, group: Group) -> _Home:
        """Return the place of a group: the root that its parents lead to."""
        if isinstance(group, CompositePodGroup) and not group.parent:
            return _Home(group.key)
        parent, path = _parent_of(group), [group.name]
        for _ in range(LEVELS_MAX - 1):
            name = parent.partition("/")[2]
            above = self._composites.get(parent)
            # Controllers create a tree from the top, but watches of two kinds have no order between them: it may come.
            if above is None:
                return _Home(problem=f'found "{name}", wanted the name of an existing CompositePodGroup')
            if name in path[1:]:
                circle = " -> ".join((*path[path.index(name, 1) :], name))
                return _Home(problem=f"found a circle of parents ({circle}), wanted a tree")
            if not above.parent:
                return _Home(above.key)
            path.append(name)
            parent = _parent_of(above)
        if self._is_circle(parent):
            return _Home(problem=f"found a circle of parents ({' -> '.join(path[1:])} -> …), wanted a tree")
        return _Home(problem=f"found more than {LEVELS_MAX} levels of groups, wanted at most {LEVELS_MAX}")

    def _is_circle(self, key: str) -> bool:
        """Return True if the parents of a CompositePodGroup, of which 64 are looked at, come back to one of them."""
        seen: set[str] = set()
        # Bounded, because a tenant chooses how long the chain is, and this is only about the words of a reason.
        while key in self._composites and key not in seen and len(seen) < 64:
            seen.add(key)
            key = _parent_of(self._composites[key])
        return key in seen

    def _settle(self, groups: Mapping[str, None], roots: Mapping[str, None]) -> Iterator[Seen | Gone]:
        """Yield what has changed: trees, PodGroups outside of trees, and the pods that go from one to the other."""
        left: list[Gone] = []
        # Trees before pods: a pod's place rests on the tree that was passed on.
        for root in sorted(roots):
            before, made = self._trees.get(root), self._tree_of(root)
            if made is not None:
                self._trees[root] = made
                if made != before:
                    yield Seen(made)
            # The last PodGroup of it has gone, or its root has.
            elif before is not None:
                del self._trees[root]
                left.append(Gone(PodGroup, before.key))
        for key in sorted(groups):
            group, old = self._groups.get(key), self._homes.get(key)
            new = self._home_of(group) if group is not None else None
            if group is not None and new is not None and new.problem:
                yield Seen(_unplaceable(group, new.problem))
            elif old is not None and old.problem:
                left.append(Gone(PodGroup, key))
            if new is None:
                self._homes.pop(key, None)
            else:
                self._homes[key] = new
            if (old.root if old else "") != (new.root if new else ""):
                yield from (Seen(self._pod_at_home(pod)) for pod in self._pods.get(key, {}).values())
        # Last, so that no pod is without a group in between.
        yield from left

    def _tree_of(self, root: str) -> PodGroup | None:
        composite = self._composites.get(root)
        return None if composite is None or composite.parent else tree_gang(composite, self._children)

    def _children(self, key: str) -> tuple[Group, ...]:
        """Return the groups below a CompositePodGroup, by name. Of more than a tree may have so many that it shows."""
        found = sorted(islice(self._below.get(key, ()), SUB_GROUPS_MAX + 1))
        return tuple(self._composites[each] if is_composite else self._groups[each] for is_composite, each in found)


def apart(objects: Iterable[Object]) -> Iterator[Object]:
    """Yield the groups and pods of Kubernetes' own gangs as they were before ``with_trees``, as far as it is known, and
    no other objects."""
    of_workloads: list[PodGroup] = []
    for each in objects:
        match each:
            case PodGroup(native=native) if native is not None and not native.has_object:
                of_workloads.append(each)
            case PodGroup(native=native) if native is not None and native.is_tree:
                yield from tree_members(each) or (each,)
            case PodGroup(native=native) if native is not None and native.min_count:
                left = tuple(why for why in each.unparsable if not why.startswith(PARENT_FIELD))
                yield replace(each, min_member=native.min_count, unparsable=left, native=replace(native, min_count=0))
            case PodGroup(native=native) if native is not None:
                yield each
            case Pod(annotations=annotations) if NATIVE_GROUP_MARK in annotations:
                own = {key: value for key, value in annotations.items() if key != NATIVE_SUB_GROUP_MARK}
                if NATIVE_SUB_GROUP_MARK in annotations:
                    own[GROUP_NAME_ANNOTATION] = annotations[NATIVE_SUB_GROUP_MARK]
                yield replace(each, annotations=own)
    yield from workloads_of(of_workloads)


def with_trees(objects: Iterable[Any]) -> list[Any]:
    """Return objects in which each CompositePodGroup with the groups below it is one PodGroup, as is each pod group of
    a Workload that pods name, and the others are as they were."""
    listed, trees = list(objects), GroupTrees()
    # Most inputs have no trees, and keep the order of their objects.
    if not any(isinstance(each, CompositePodGroup | Workload) or _parent_of(each) for each in listed):
        return listed
    last: dict[tuple[type, str], Object] = {}
    for each in listed:
        if isinstance(each, _GROUPED):
            for event in trees.pass_on(Seen(each)):
                if isinstance(event, Seen):
                    last[type(event.obj), event.obj.key] = event.obj  # type: ignore[union-attr]  # these kinds have keys
                elif isinstance(event, Gone):
                    last.pop((event.kind, event.key), None)
    others = [each for each in listed if not isinstance(each, _GROUPED)]
    return [*others, *last.values()]


def _parent_of(group: object) -> str:
    """Return the key of the CompositePodGroup that a group names as its parent, or ""."""
    if isinstance(group, PodGroup):
        parent = group.native.parent if group.native is not None else ""
    else:
        parent = group.parent if isinstance(group, CompositePodGroup) else ""
    return f"{group.namespace}/{parent}" if parent else ""  # type: ignore[attr-defined]  # only groups have parents


def _but_status(group: PodGroup) -> PodGroup:
    return replace(group, status=group.status.__class__(), resource_version="")


def _unplaceable(group: PodGroup, problem: str) -> PodGroup:
    """Return a PodGroup of which no pod is placed, because it belongs to a tree that does not exist."""
    unparsable = (*group.unparsable, f"{PARENT_FIELD}: {problem}")
    assert group.native is not None
    native = replace(group.native, min_count=group.min_member)
    return replace(group, min_member=OUT_OF_REACH, unparsable=unparsable, native=native)
