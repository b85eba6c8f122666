"""A gang as a tree: its sets, its pod sets by row, and when a minimum is reached."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.columns.tables import Tables
from pumice.model.workloads.gang import SubGroup, TopologyConstraint
from pumice.model.workloads.native_group import NativeGroup
from pumice.model.workloads.podgroup import PodGroup
from pumice.placing.gang_tree import Member, is_tree, members_of
from tests.unit.kai.cluster import job, node, queue, store

RACK = TopologyConstraint("topology", "rack")
SETS = (
    SubGroup("prefill", 0, "", RACK, 1),
    SubGroup("leader", 1, "prefill"),
    SubGroup("workers", 2, "prefill"),
    SubGroup("decode", 2),
)


def tree(sub_groups: tuple[SubGroup, ...], *, native: bool = False) -> tuple[Tables, int]:
    """The tables of a cluster with gang ``g``, and its row. Only ``workers`` and ``decode`` have pods."""
    tasks = ["/workers", "/workers", "/decode", "/decode"] if sub_groups else ["", ""]
    objects = [
        replace(each, native=NativeGroup("scheduling.k8s.io/v1alpha3", is_tree=True))
        if native and isinstance(each, PodGroup)
        else each
        for each in job("g", "q", tasks, sub_groups=sub_groups, min_sub_group=1 if sub_groups else None)
    ]
    tables = store(node("n"), queue("q"), objects).snapshot().tables
    return tables, list(tables.jobs.uids).index("ns/g")


def test_sub_groups_are_members_of_their_parents_with_the_rows_of_their_pod_sets() -> None:
    tables, row = tree(SETS)
    root = members_of(tables, row)
    decode, prefill = root.inside  # by name
    assert (root.least, prefill.least, decode.least) == (1, 1, 2)
    assert prefill.topology == RACK and prefill.is_set and not decode.is_set
    assert [tables.subs.uids[sub] for sub in root.subs] == ["ns/g/decode", "ns/g/workers"]
    # A pod set without pods has no row yet.
    assert prefill.inside[0] == Member(1)


def test_a_gang_without_sub_groups_is_a_set_of_its_pod_sets_and_needs_all() -> None:
    root = members_of(*tree(()))
    assert root.is_set and root.least == len(root.inside) == len(root.subs) == 1


@pytest.mark.parametrize(("active", "expected"), [((0, 0), 0), ((2, 0), 1), ((1, 2), 1), ((2, 2), 2)])
def test_a_set_has_reached_as_many_members_as_have_their_minimum(active: tuple[int, int], expected: int) -> None:
    root = members_of(*tree(SETS))
    counts = dict(zip(root.subs, active, strict=True))
    assert root.reached(counts.__getitem__) == expected
    assert root.is_satisfied(counts.__getitem__) is (expected >= 1)


@pytest.mark.parametrize("native", [True, False])
def test_only_the_gang_of_a_composite_group_is_a_tree(native: bool) -> None:
    assert is_tree(*tree(SETS, native=native)) is native
