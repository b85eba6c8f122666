"""Trees of CompositePodGroups over time: whatever the order of events, the result is that of the objects at the end."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pumice.model.events import Gone, Seen
from pumice.model.pod import GROUP_NAME_ANNOTATION, NATIVE_GROUP_MARK, NATIVE_SUB_GROUP_MARK, Pod, PodSpec
from pumice.model.resources import EMPTY
from pumice.model.workloads.composite import CompositePodGroup
from pumice.model.workloads.gang import SUB_GROUPS_MAX, SubGroup
from pumice.model.workloads.native_group import NativeGroup
from pumice.model.workloads.podgroup import PodGroup, PodGroupStatus
from pumice.model.workloads.workload import Workload, WorkloadPodGroup, WorkloadRef
from pumice.state.group_trees import GroupTrees, apart, with_trees

VERSION = "scheduling.k8s.io/v1alpha3"
Key = tuple[type, str]


def composite(name: str, parent: str = "", least: int = 1, **more: Any) -> CompositePodGroup:
    return CompositePodGroup("n", name, f"c-{name}", VERSION, parent=parent, min_groups=least, **more)


def group(name: str, parent: str = "", least: int = 1, **native: bool) -> PodGroup:
    of = NativeGroup(VERSION, parent=parent, **native)
    return PodGroup("n", name, f"g-{name}", min_member=least, native=of)


def pod(name: str, of: str) -> Pod:
    annotations = {GROUP_NAME_ANNOTATION: of, NATIVE_GROUP_MARK: ""}
    return Pod("n", name, f"p-{name}", PodSpec(EMPTY), annotations=annotations)


def held(events: list[Seen | Gone]) -> dict[Key, Any]:
    """What is there after all of these events have passed the trees."""
    trees, found = GroupTrees(), {}
    for event in events:
        for each in trees.pass_on(event):
            if isinstance(each, Seen):
                found[type(each.obj), each.obj.key] = each.obj  # type: ignore[union-attr]
            else:
                found.pop((each.kind, each.key), None)
    return found


def workload(name: str, *groups: str, least: int | None = 1) -> Workload:
    return Workload("n", name, f"w-{name}", groups=tuple(WorkloadPodGroup(each, least) for each in groups))


NAMES = "abcd"
KINDS = (CompositePodGroup, PodGroup, Pod, Workload)
REFS = st.builds(WorkloadRef, st.sampled_from("ab"), st.sampled_from("ab"), st.sampled_from(("", "x")))
OBJECTS = st.one_of(
    st.builds(composite, st.sampled_from(NAMES), st.sampled_from(("", *NAMES)), st.integers(1, 3)),
    st.builds(group, st.sampled_from(NAMES), st.sampled_from(("", *NAMES)), st.integers(1, 3)),
    st.builds(pod, st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.builds(pod, st.sampled_from(NAMES), REFS.map(lambda ref: ref.group_name)),
    st.builds(workload, st.sampled_from("ab"), st.sampled_from(NAMES), least=st.sampled_from((None, 1, 2))),
)
EVENTS = st.one_of(
    OBJECTS.map(Seen),
    st.builds(
        Gone,
        st.sampled_from((CompositePodGroup, PodGroup, Pod, Workload)),
        st.sampled_from([f"n/{name}" for name in NAMES]),
    ),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(EVENTS, max_size=25))
def test_the_order_of_events_makes_no_difference(events: list[Seen | Gone]) -> None:
    last: dict[Key, Any] = {}
    for event in events:
        if isinstance(event, Seen):
            last[type(event.obj), event.obj.key] = event.obj  # type: ignore[union-attr]
        else:
            last.pop((event.kind, event.key), None)
    at_once = {(type(each), each.key): each for each in with_trees(last.values())}
    assert held(events) == at_once
    assert not any(isinstance(each, CompositePodGroup | Workload) for each in at_once.values())
    # Nothing is lost: a pod is in a tree, or where it says.
    assert {key for key in at_once if key[0] is Pod} == {key for key in last if key[0] is Pod}


def test_a_tree_is_one_gang() -> None:
    objects = [
        composite("all", least=2),
        composite("in", "all", 1),
        group("a", "in", 3),
        group("b", "in", 2),
        group("c", "all", 4),
    ]
    (tree,) = with_trees(objects)
    assert (tree.key, tree.uid, tree.min_member) == ("n/composite:all", "c-all", 6)
    assert tree.gang.min_sub_group == 2
    assert tree.gang.sub_groups == (
        SubGroup("c", 4),
        SubGroup("composite:in", 0, min_sub_group=1),
        SubGroup("a", 3, "composite:in"),
        SubGroup("b", 2, "composite:in"),
    )


def test_what_one_group_forbids_holds_for_the_tree() -> None:
    (tree,) = with_trees(
        [composite("all"), group("a", "all", leaves_whole=True), group("b", "all", never_preempts=True)]
    )
    assert tree.leaves_whole and tree.never_preempts


def test_pods_come_into_the_tree_and_leave_it() -> None:
    seen = [Seen(pod("p", "a")), Seen(group("a", "all")), Seen(composite("all"))]
    inside = held(seen)[Pod, "n/p"]
    assert (inside.group_key, inside.annotations[NATIVE_SUB_GROUP_MARK]) == ("n/composite:all", "a")
    outside = held([*seen, Gone(CompositePodGroup, "n/all")])
    assert outside[Pod, "n/p"] == pod("p", "a") and outside[PodGroup, "n/a"].quarantined
    assert (PodGroup, "n/composite:all") not in outside


def test_a_status_of_a_member_changes_nothing() -> None:
    trees, member = GroupTrees(), group("a", "all")
    for each in (composite("all"), member):
        assert list(trees.pass_on(Seen(each))) or isinstance(each, CompositePodGroup)
    written = replace(member, status=PodGroupStatus("Running"), resource_version="9")
    assert not list(trees.pass_on(Seen(written)))
    assert trees.members_of("n/composite:all")[-1] == written


def test_the_members_of_a_tree_are_named_with_its_root_first() -> None:
    trees = GroupTrees()
    objects = (composite("all"), composite("in", "all"), group("b", "in"), group("a", "all"), group("x", "other"))
    for each in objects:
        list(trees.pass_on(Seen(each)))
    assert [each.name for each in trees.members_of("n/composite:all")] == ["all", "in", "a", "b"]
    assert not trees.members_of("n/composite:other") and not trees.members_of("n/x")


def test_a_tree_of_too_many_groups_waits_and_is_not_built() -> None:
    wide = [group(f"g{i}", f"c{i % 2}") for i in range(SUB_GROUPS_MAX - 1)]
    objects = [composite("all"), composite("c0", "all"), composite("c1", "all"), *wide]
    (tree,) = with_trees(objects)
    assert tree.quarantined and not tree.gang.sub_groups
    assert tree.unparsable == (f"found more than {SUB_GROUPS_MAX} groups in the tree, wanted at most {SUB_GROUPS_MAX}",)
    (whole,) = with_trees(objects[:-1])
    assert not whole.quarantined and len(whole.gang.sub_groups) == SUB_GROUPS_MAX


def test_workloads_can_be_found_again_in_their_pod_groups() -> None:
    before = [
        workload("a", "x", "y"),
        workload("b", "x", least=None),
        *(pod(f"p{i}", ref.group_name) for i, ref in enumerate((*_refs("a", "x", "y"), *_refs("b", "x")))),
    ]
    made = with_trees(before)
    assert {each.min_member for each in made if isinstance(each, PodGroup)} == {1}
    found = list(apart(made))
    assert sorted((each for each in found if isinstance(each, Workload)), key=lambda each: each.name) == before[:2]
    assert {each.key: each for each in with_trees(found)} == {each.key: each for each in made}


def _refs(of: str, *groups: str) -> list[WorkloadRef]:
    return [WorkloadRef(of, each, replica) for each in groups for replica in ("", "0", "1")]
