"""Volumes: where those that are there can be used, where others can be bound or made, and who waits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pumice.kube.objects_out import object_of
from pumice.model.decisions import VOLUMES, Bind, VolumeGrant
from pumice.model.events import Gone, Seen
from pumice.model.manifest import Decoder
from pumice.model.pod import LabelSelector, NodeSelectorTerm, Pod, Requirement
from pumice.model.volumes import CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.state.store import Store
from pumice.testing.build import cluster, node, pod, podgroup, run, session

CONF = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]"
GI = 2.0**30
ZONE = "topology.kubernetes.io/zone"
FAST = StorageClass("fast", "csi.example.com", waits=True)
LOCAL = StorageClass("local", waits=True)


def at(*names: str) -> tuple[NodeSelectorTerm, ...]:
    return (NodeSelectorTerm(fields=(Requirement("metadata.name", "In", names),)),)


def zone(name: str) -> tuple[NodeSelectorTerm, ...]:
    return (NodeSelectorTerm((Requirement(ZONE, "In", (name,)),)),)


def using(name: str, *claims: str, **more: Any) -> Pod:
    return pod(name, name, claim_names=claims, **more)


def pvc(name: str, of: str = "fast", size: float = GI, **more: Any) -> PersistentVolumeClaim:
    return PersistentVolumeClaim("ns", name, f"u-{name}", of, size=size, modes=("ReadWriteOnce",), **more)


def bound(name: str, volume: str) -> PersistentVolumeClaim:
    return pvc(name, volume=volume, bound=True)


def pv(name: str, of: str = "local", size: float = GI, **more: Any) -> PersistentVolume:
    return PersistentVolume(name, of, size=size, modes=("ReadWriteOnce",), **more)


def world(*objects: Any, names: str = "a") -> Store:
    groups = [podgroup(name, 1, phase="Inqueue", creation=float(i)) for i, name in enumerate(names)]
    there = node("n1", labels={ZONE: "z1"}), node("n2", labels={ZONE: "z2"})
    return cluster(there, FAST, LOCAL, *objects, groups)


def binds(store: Store) -> dict[str, str]:
    return dict(run(store, CONF).binds)


def why(store: Store) -> str:
    ran = run(store, CONF)
    assert not ran.binds
    return str(list(ran.outcome.notices()))


@pytest.mark.parametrize(
    ("volume", "where"),
    [
        pytest.param(pv("v"), "n1", id="everywhere"),
        pytest.param(pv("v", nodes=at("n2")), "n2", id="on one node"),
        pytest.param(pv("v", labels={ZONE: "z2"}), "n2", id="in one zone"),
        pytest.param(pv("v", labels={ZONE: "z0__z2"}), "n2", id="in one of two zones"),
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
        pytest.param([bound("c", "v"), pv("v", labels={ZONE: "z9"})], "no available volume zone", id="other zone"),
        pytest.param([pvc("c", "local")], "find available persistent volumes to bind", id="nothing to bind"),
    ],
)
def test_a_pod_without_its_volumes_waits_and_says_why(objects: list[Any], reason: str) -> None:
    assert reason.replace('\\"', '"') in why(world(*objects, using("a", "c"))).replace('\\"', '"')


@pytest.mark.parametrize(
    ("volumes", "given"),
    [
        pytest.param([pv("big", size=9 * GI), pv("fits", size=2 * GI)], "fits", id="the smallest that is enough"),
        pytest.param([pv("small", size=1.0)], None, id="too small"),
        pytest.param([pv("other", "fast")], None, id="of another class"),
        pytest.param([pv("taken", claim="ns/x")], None, id="somebody else's"),
        pytest.param([pv("gone", available=False)], None, id="released"),
        pytest.param([pv("mine", claim="ns/c"), pv("free")], "mine", id="kept for this claim"),
        pytest.param([pv("old", claim="ns/c", claim_uid="another")], None, id="kept for one of that name before"),
    ],
)
def test_a_claim_that_waits_is_given_a_volume(volumes: list[PersistentVolume], given: str | None) -> None:
    ran = run(world(pvc("c", "local"), volumes, using("a", "c")), CONF)
    found = [grant for bind in ran.decisions if isinstance(bind, Bind) for grant in bind.context[VOLUMES]]  # type: ignore[attr-defined]
    assert found == ([] if given is None else [VolumeGrant("ns/c", "u-c", given, "n1")])


def test_a_volume_is_made_for_the_node() -> None:
    (bind,) = run(world(pvc("c"), using("a", "c")), CONF).decisions
    assert isinstance(bind, Bind)
    assert bind.context[VOLUMES] == (VolumeGrant("ns/c", "u-c", "", "n1"),)


@pytest.mark.parametrize(
    ("objects", "where"),
    [
        pytest.param([replace(FAST, nodes=zone("z2"))], {"ns/a": "n2"}, id="where its class allows"),
        pytest.param([pvc("c", node="n2")], {"ns/a": "n2"}, id="where one is being made"),
        pytest.param(
            [
                CSIStorageCapacity("ns", "s1", "fast", LabelSelector((Requirement(ZONE, "In", ("z1",)),)), GI / 2),
                CSIStorageCapacity("ns", "s2", "fast", LabelSelector((Requirement(ZONE, "In", ("z2",)),)), GI),
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


def test_no_volume_is_given_twice() -> None:
    claims = [pvc(name, "local") for name in "xy"]
    store = world(claims, pv("v", nodes=at("n2")), using("a", "x"), using("b", "y"), names="ab")
    assert binds(store) == {"ns/a": "n2"}
    ran = run(store, CONF)
    store.assume(ran.decisions)
    assert binds(store) == {}, "nor in the next cycle, before anybody has written it"
    store.apply(Gone(Pod, "ns/a"))
    assert binds(store) == {"ns/b": "n2"}


def test_a_pod_with_two_claims_needs_two_volumes() -> None:
    claims = [pvc(name, "local") for name in "xy"]
    assert binds(world(claims, pv("v"), using("a", "x", "y"))) == {}
    assert binds(world(claims, pv("v"), pv("w"), using("a", "x", "y"))) == {"ns/a": "n1"}


def test_pods_that_share_a_claim_go_to_one_node() -> None:
    store = world(pvc("c"), node("n0", cpu=1), using("a", "c"), using("b", "c"), names="ab")
    store.apply(Seen(replace(FAST, nodes=zone("z2"))))
    assert set(binds(store).values()) == {"n2"}


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
    assert run(world(bound("c", "v"), pv("v", labels={ZONE: "z9"}), using("a", "c")), conf).binds


def test_a_rollback_takes_volumes_back() -> None:
    ssn = session(world(pvc("c", "local"), pv("v"), using("a", "c")), CONF)
    before = ssn.world.digest()
    (row,) = ssn.tables.tasks.alive.nonzero()[0].tolist()
    with ssn.statement() as stmt:
        assert stmt.allocate([row], [0]) is None
        assert ssn.world.columns["volumes.given"].array.tolist() == [0]
    assert ssn.world.digest() == before


@pytest.mark.parametrize(
    "value",
    [
        pvc("c", volume="v", bound=True),
        pvc("c", node="n1", selector=LabelSelector((Requirement("a", "In", ("b",)),)), deleting=False),
        pv("v", claim="ns/c", claim_uid="u", nodes=at("n1"), labels={ZONE: "z"}, driver="d", handle="h"),
        pv("v", available=False),
        FAST,
        replace(LOCAL, nodes=zone("z1")),
        CSINode("n1", (("a", 1), ("b", 2))),
        CSIStorageCapacity("ns", "s", "fast", LabelSelector((Requirement("a", "Exists"),)), GI, 1.0),
    ],
)
def test_what_is_written_down_is_read_as_it_was(value: Any) -> None:
    assert Decoder().decode(object_of(value)) == value
