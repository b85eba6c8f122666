"""Which pod gets which volume: the smallest that is enough, each one once, taken back by a rollback."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.kube.api.encode_objects import object_of
from pumice.model.decisions import VOLUMES, Bind, VolumeGrant
from pumice.model.events import Gone, Seen
from pumice.model.manifest import Decoder
from pumice.model.pod import LabelSelector, Pod, Requirement
from pumice.model.volumes import CSINode, CSIStorageCapacity, PersistentVolume
from pumice.testing.build import node, run, session
from tests.unit.placing.volumes.kit import CONF, FAST, GI, LOCAL, ZONE, at, binds, pv, pvc, using, world, zone


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
