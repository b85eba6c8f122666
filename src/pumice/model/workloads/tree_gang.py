"""Make the gang of a CompositePodGroup with all groups below it. Source: ``scheduling.k8s.io``, KEP-6012."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from pumice.model.workloads.composite import COMPOSITE_PREFIX, LEVELS_MAX, CompositePodGroup
from pumice.model.workloads.gang import SUB_GROUPS_MAX, Gang, SubGroup, TopologyConstraint
from pumice.model.workloads.native_group import COMPOSITE_INITIALLY_SCHEDULED, GroupClaim, NativeGroup
from pumice.model.workloads.podgroup import OUT_OF_REACH, PodGroup, PodGroupStatus

PARENT_FIELD = "spec.parentCompositePodGroupName"
Children = Callable[[str], Sequence[CompositePodGroup | PodGroup]]


class _Part(Struct, frozen=True):
    """A sub-group with those below it. ``least``: pods that it needs at least. ``problems``: what is unreadable in
    it."""

    sub_groups: tuple[SubGroup, ...]
    least: int
    leaves_whole: bool = False
    never_preempts: bool = False
    problems: tuple[str, ...] = ()


class _TooManyError(Exception):
    """A tree has more groups than are placed."""


#: What is known of a tree that is too large. It is not built, because each of its groups that comes or goes would cost
#: as much as all of them.
_TOO_MANY = _Part(
    (), 0, True, True, (f"found more than {SUB_GROUPS_MAX} groups in the tree, wanted at most {SUB_GROUPS_MAX}",)
)


def tree_gang(root: CompositePodGroup, children: Children) -> PodGroup | None:
    """Return the PodGroup of a whole tree, or None while no PodGroup is in it. ``children``: the groups below one, by
    its key."""
    try:
        whole = _inside(root, "", children, LEVELS_MAX - 1, [SUB_GROUPS_MAX])
    except _TooManyError:
        whole = _TOO_MANY
    if whole is None:
        return None
    problems = whole.problems
    scheduled = any(each.type == COMPOSITE_INITIALLY_SCHEDULED and each.status == "True" for each in root.conditions)
    return PodGroup(
        namespace=root.namespace,
        name=root.tree_name,
        uid=root.uid,
        queue=root.queue,
        min_member=OUT_OF_REACH if problems else whole.least,
        priority_class_name=root.priority_class_name,
        creation=root.creation,
        labels=root.labels,
        annotations=root.annotations,
        status=PodGroupStatus("Running" if scheduled else "Pending", root.conditions),
        resource_version=root.resource_version,
        gang=Gang(whole.sub_groups, root.topology, root.min_groups),
        native=NativeGroup(
            root.api_version,
            leaves_whole=whole.leaves_whole,
            never_preempts=whole.never_preempts,
            is_tree=True,
            generation=root.generation,
            claims=tuple(_claims(root.key, children, LEVELS_MAX - 1)) if not problems else (),
        ),
        unparsable=problems,
    )


def tree_members(tree: PodGroup) -> tuple[CompositePodGroup | PodGroup, ...]:
    """Return the groups of which ``tree_gang`` made a PodGroup, as far as it says, the root first; () for a tree that
    is too large, which says nothing of them."""
    native, gang = tree.native, tree.gang
    assert native is not None and gang is not None
    if not gang.sub_groups:
        return ()
    version, namespace, inner = native.api_version, tree.namespace, gang.children()

    def composite(name: str, parent: str, least: int | None, topology: TopologyConstraint | None) -> CompositePodGroup:
        return CompositePodGroup(
            namespace,
            name.removeprefix(COMPOSITE_PREFIX),
            tree.uid if not parent else f"{namespace}/{name}",
            version,
            parent=parent,
            min_groups=least or 1,
            topology=topology,
        )

    # What holds for the tree as a whole is said by its root, from which it follows again.
    root = replace(
        composite(tree.name, "", gang.min_sub_group, gang.topology),
        queue=tree.queue,
        leaves_whole=native.leaves_whole,
        never_preempts=native.never_preempts,
        priority_class_name=tree.priority_class_name,
        creation=tree.creation,
        labels=tree.labels,
        annotations=tree.annotations,
        conditions=tree.status.conditions,
        resource_version=tree.resource_version,
        unparsable=tree.unparsable,
        generation=native.generation,
    )
    found: list[CompositePodGroup | PodGroup] = [root]
    for each in gang.sub_groups:
        parent = each.parent.removeprefix(COMPOSITE_PREFIX) or root.name
        if each.name in inner:
            found.append(composite(each.name, parent, each.min_sub_group, each.topology))
            continue
        # The tree lists the claims of all its groups, and only their own group's pods may use them.
        claims = tuple(claim for claim in native.claims if claim.group.name == each.name)
        found.append(
            PodGroup(
                namespace,
                each.name,
                f"{namespace}/{each.name}",
                queue=tree.queue,
                min_member=each.min_member,
                gang=Gang(topology=each.topology),
                native=NativeGroup(version, parent=parent, claims=claims),
            )
        )
    return tuple(found)


def _claims(composite: str, children: Children, levels: int) -> Iterator[GroupClaim]:
    """Yield the claims of all PodGroups below a CompositePodGroup."""
    for each in children(composite) if levels else ():
        if not isinstance(each, PodGroup):
            yield from _claims(each.key, children, levels - 1)
        elif each.native is not None:
            yield from each.native.claims


def _inside(composite: CompositePodGroup, name: str, children: Children, levels: int, left: list[int]) -> _Part | None:
    """Return what is below a CompositePodGroup, whose sub-group has that name, or None if no PodGroup is. ``left``: how
    many more groups the tree may have. Raises: _TooManyError."""
    if not levels:
        return None
    parts, below = [], children(composite.key)
    left[0] -= len(below)
    if left[0] < 0:
        raise _TooManyError
    for each in below:
        if isinstance(each, PodGroup):
            parts.append(_pod_set(each, name))
            continue
        inside = _inside(each, each.tree_name, children, levels - 1, left)
        # Without PodGroups it counts as missing, and not as one that needs nothing.
        if inside is not None:
            own = SubGroup(each.tree_name, 0, name, each.topology, each.min_groups)
            parts.append(_joined((inside,), (own,), inside.least))
    if not parts:
        return None
    needed = sorted(each.least for each in parts)[: composite.min_groups]
    # A group that does not exist yet needs a pod at least.
    least = min(sum(needed) + composite.min_groups - len(needed), OUT_OF_REACH)
    found = _joined(parts, (), least)
    return _Part(
        found.sub_groups,
        least,
        # Evictions look at the gang as a whole, so one of its groups speaks for all.
        found.leaves_whole or composite.leaves_whole,
        found.never_preempts or composite.never_preempts,
        (*found.problems, *(f"CompositePodGroup {composite.key}: {each}" for each in composite.unparsable)),
    )


def _pod_set(group: PodGroup, parent: str) -> _Part:
    assert group.native is not None
    topology = group.gang.topology if group.gang is not None else None
    return _Part(
        (SubGroup(group.name, group.min_member, parent, topology),),
        group.min_member,
        group.native.leaves_whole,
        group.native.never_preempts,
        tuple(f"PodGroup {group.key}: {each}" for each in group.unparsable) if group.quarantined else (),
    )


def _joined(parts: Sequence[_Part], own: tuple[SubGroup, ...], least: int) -> _Part:
    return _Part(
        (*own, *(sub for each in parts for sub in each.sub_groups)),
        least,
        any(each.leaves_whole for each in parts),
        any(each.never_preempts for each in parts),
        tuple(problem for each in parts for problem in each.problems),
    )
