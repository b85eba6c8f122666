"""Where volumes can be used, bound or made, and how many a node takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.framework.plugin.points import bind_context
from pumice.model.pod import LabelSelector, Requirement
from pumice.model.volumes import CSINode, CSIStorageCapacity, PersistentVolume
from pumice.placing.volumes.filters import BINDING, LIMITS, ZONE, VolumeFilters
from pumice.placing.volumes.ledger import volume_ledger
from pumice.testing.build import pod, run, session
from tests.unit.placing.volumes.kit import CONF, FAST, GI, at, binds, bound, pv, pvc, using, why, world, zone
from tests.unit.placing.volumes.kit import ZONE as LABEL


@pytest.mark.parametrize(
    ("volume", "where"),
    [
        pytest.param(pv("v"), "n1", id="everywhere"),
        pytest.param(pv("v", nodes=at("n2")), "n2", id="on one node"),
        pytest.param(pv("v", labels={LABEL: "z2"}), "n2", id="in one zone"),
        pytest.param(pv("v", labels={LABEL: "z0__z2"}), "n2", id="in one of two zones"),
        pytest.param(pv("v", labels={"failure-domain.beta.kubernetes.io/zone": "z2"}), "n2", id="by the old label"),
    ],
)
def test_a_pod_goes_where_its_volume_is(volume: PersistentVolume, where: str) -> None:
    assert binds(world(bound("c", "v"), volume, using("a", "c"))) == {"ns/a": where}


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param([], 'persistentvolumeclaim \\"c\\" not found', id="no claim"),
        pytest.param([pvc("c", deleting=True)], "is being deleted", id="going"),
        pytest.param([pvc("c", lost=True, volume="v")], "bound to non-existent persistentvolume", id="lost"),
        pytest.param([pvc("c", "now")], "unbound immediate PersistentVolumeClaims", id="not bound"),
        pytest.param([bound("c", "v")], "bound to non-existent pv(s)", id="no volume"),
        pytest.param([bound("c", "v"), pv("v", nodes=at("n9"))], "PersistentVolume's node affinity", id="elsewhere"),
        pytest.param([bound("c", "v"), pv("v", labels={LABEL: "z9"})], "no available volume zone", id="other zone"),
        pytest.param([pvc("c", "local")], "find available persistent volumes to bind", id="nothing to bind"),
    ],
)
def test_a_pod_without_its_volumes_waits_and_says_why(objects: list[Any], reason: str) -> None:
    assert reason.replace('\\"', '"') in why(world(*objects, using("a", "c"))).replace('\\"', '"')


@pytest.mark.parametrize(
    ("objects", "where"),
    [
        pytest.param([replace(FAST, nodes=zone("z2"))], {"ns/a": "n2"}, id="where its class allows"),
        pytest.param([pvc("c", node="n2")], {"ns/a": "n2"}, id="where one is being made"),
        pytest.param(
            [
                CSIStorageCapacity("ns", "s1", "fast", LabelSelector((Requirement(LABEL, "In", ("z1",)),)), GI / 2),
                CSIStorageCapacity("ns", "s2", "fast", LabelSelector((Requirement(LABEL, "In", ("z2",)),)), GI),
            ],
            {"ns/a": "n2"},
            id="where there is room",
        ),
        pytest.param(
            [CSIStorageCapacity("ns", "s", "fast", LabelSelector(), 9 * GI, GI / 2)], {}, id="nowhere so large"
        ),
    ],
)
def test_where_a_volume_can_be_made(objects: list[Any], where: dict[str, str]) -> None:
    assert binds(world(pvc("c"), *objects, using("a", "c"))) == where


@pytest.mark.parametrize(("most", "count"), [(1, 2), (2, 3), (0, 0)])
def test_a_node_takes_so_many_volumes_of_a_driver(most: int, count: int) -> None:
    claims = [pvc(name) for name in "xyz"]
    limits = [CSINode("n1", (("csi.example.com", most),)), CSINode("n2", (("csi.example.com", min(most, 1)),))]
    store = world(claims, limits, [using(n, c) for n, c in zip("abc", "xyz", strict=True)], names="abc")
    assert len(binds(store)) == count


def test_a_volume_that_is_there_already_needs_no_further_place() -> None:
    there = using("z", "c", on="n1")
    limit = CSINode("n1", (("csi.example.com", 1),))
    volume = pv("v", driver="csi.example.com", handle="h", nodes=at("n1"))
    assert binds(world(bound("c", "v"), volume, limit, there, using("a", "c"))) == {"ns/a": "n1"}


def test_a_claim_for_one_pod_is_used_by_one() -> None:
    alone = replace(bound("c", "v"), modes=("ReadWriteOncePod",))
    store = world(alone, pv("v"), using("a", "c"), using("b", "c"), names="ab")
    assert binds(store) == {"ns/a": "n1"}


def test_filters_can_be_left_out() -> None:
    conf = CONF.replace("{name: predicates}", "{name: predicates, arguments: {predicate.VolumeZoneEnable: false}}")
    assert run(world(bound("c", "v"), pv("v", labels={LABEL: "z9"}), using("a", "c")), conf).binds


def test_without_claims_or_filters_nobody_is_asked() -> None:
    off = {f"predicate.{name}Enable": False for name in (BINDING, ZONE, LIMITS)}
    without = CONF.replace("{name: predicates}", f"{{name: predicates, arguments: {off}}}")
    idle, used = (world(bound("c", "v"), pv("v"), each) for each in (pod("a", "a"), using("a", "c")))
    each = (idle, CONF), (used, without), (used, CONF)
    asked = [session(store, conf).hooks.has(bind_context) for store, conf in each]
    assert asked == [False, False, True]


OTHER_ZONE, FULL = "had no available volume zone", "exceed max volume count"


@pytest.mark.parametrize(
    ("on", "reasons"),
    [
        pytest.param((BINDING, ZONE, LIMITS), [OTHER_ZONE, FULL], id="the zone before what binds"),
        pytest.param((BINDING,), ["didn't match PersistentVolume's node affinity", ""], id="what binds alone"),
        pytest.param((LIMITS,), ["", FULL], id="the limit alone"),
        pytest.param((ZONE,), [OTHER_ZONE, ""], id="the zone alone"),
    ],
)
def test_of_several_that_object_one_is_said(on: tuple[str, ...], reasons: list[str]) -> None:
    """A volume on n2, of its zone; n2 takes none of its driver."""
    volume = pv("v", nodes=at("n2"), labels={LABEL: "z2"}, driver="d", handle="h")
    ssn = session(world(bound("c", "v"), volume, CSINode("n2", (("d", 0),)), using("a", "c")), CONF)
    filters = VolumeFilters(ssn, volume_ledger(ssn), on)
    (row,) = ssn.tables.tasks.alive.nonzero()[0].tolist()
    task = Task(ssn.tables, row)
    assert filters.refused(task) is None
    found = filters.filter_result(task, NodeRows(ssn.tables, np.arange(2)))
    assert found is not None
    said = [" ".join(unfit.reason for unfit in found.why[code]) for code in found.codes.tolist()]
    assert [text.removeprefix("node(s) ") for text in said] == reasons
