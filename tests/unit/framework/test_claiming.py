"""Claims of devices: who is given which, what is promised, and what is refused in bounded work."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.framework.claiming.ledger import ClaimLedger, claim_ledger
from pumice.model.claims import (
    AllocatedDevice,
    Allocation,
    DeviceClass,
    DeviceOption,
    DeviceRequest,
    ResourceClaim,
    SameAttribute,
)
from pumice.model.decisions import CLAIMS, ClaimGrant
from pumice.model.events import Gone, Seen
from pumice.model.pod import NodeSelectorTerm, Pod, Requirement
from pumice.state.store import Store
from pumice.testing.build import cluster, node, pod, podgroup, run, session
from pumice.testing.devices import claim, claim_template, offered

CONF = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]"
GPU = DeviceClass("gpu.com")


def on(name: str) -> tuple[NodeSelectorTerm, ...]:
    return (NodeSelectorTerm(fields=(Requirement("metadata.name", "In", (name,)),)),)


def claiming(name: str, *claims: str, **more: Any) -> Pod:
    return pod(name, name, resource_claims=claims, **more)


def world(*objects: Any, names: str = "a") -> Store:
    groups = [podgroup(name, 1, phase="Inqueue", creation=float(i)) for i, name in enumerate(names)]
    return cluster(node("n1"), node("n2"), GPU, *objects, groups)


def binds(store: Store) -> dict[str, str]:
    return dict(run(store, CONF).binds)


def given(store: Store) -> dict[str, Any]:
    """What each claim was given, by name."""
    found = {}
    for bind in run(store, CONF).decisions:
        for grant in bind.context[CLAIMS]:
            found[grant.claim] = grant.allocation and [(e.pool, e.device) for e in grant.allocation.devices]
    return found


def test_a_claim_goes_where_its_devices_are() -> None:
    store = world(offered("n1", 1), offered("n2", 3), claim("c", gpu_com=2), claiming("a", "c"))
    assert binds(store) == {"ns/a": "n2"}
    assert given(store) == {"ns/c": [("n2", "0"), ("n2", "1")]}


def test_no_device_is_given_twice() -> None:
    each = [claiming(name, f"c{name}") for name in "abc"]
    store = world(
        offered("n1", 1), offered("n2", 1), [claim(f"c{name}", gpu_com=1) for name in "abc"], each, names="abc"
    )
    assert binds(store) == {"ns/a": "n1", "ns/b": "n2"}


def test_pods_that_share_a_claim_share_its_devices() -> None:
    each = [claiming(name, "c") for name in "ab"]
    store = world(offered("n1"), offered("n2", 1), claim("c", gpu_com=1), each, names="ab")
    assert binds(store) == {"ns/a": "n2", "ns/b": "n2"}


def test_each_pod_of_a_template_has_devices_of_its_own() -> None:
    each = [claiming(name, "template/t") for name in "abc"]
    store = world(offered("n1", 2), claim_template("t", gpu_com=1), each, names="abc")
    assert given(store) == {"ns/a/0": [("n1", "0")], "ns/b/0": [("n1", "1")]}


def test_what_was_given_counts_until_the_pod_is_gone() -> None:
    each = [claiming(name, "template/t") for name in "ab"]
    store = world(offered("n1", 1), claim_template("t", gpu_com=1), each, names="ab")
    first = run(store, CONF)
    store.assume(first.decisions)
    assert binds(store) == {}
    store.apply(Gone(Pod, "ns/a"))
    assert binds(store) == {"ns/b": "n1"}


def test_an_allocated_claim_stays_where_it_is() -> None:
    allocation = Allocation((AllocatedDevice("r0", "gpu.com", "n2", "1"),), on("n2"))
    known = ResourceClaim("ns", "c", claim("c", gpu_com=1).requests, allocation=allocation)
    store = world(offered("n1", 2), offered("n2", 2), known, claiming("a", "c"))
    assert binds(store) == {"ns/a": "n2"}
    assert given(store) == {"ns/c": None}, "it says already what it was given"


def test_what_a_claim_says_itself_counts_for_more_than_what_was_assumed() -> None:
    store = world(
        offered("n1", 2), claim("c", gpu_com=1), claim("d", gpu_com=2), claiming("a", "c"), claiming("b", "d")
    )
    store.apply(Seen(podgroup("b", 1, phase="Inqueue")))
    store.assume([each for each in run(store, CONF).decisions if each.pod == "ns/a"])
    elsewhere = Allocation((AllocatedDevice("r0", "gpu.com", "net", "9"),))
    store.apply(Seen(ResourceClaim("ns", "c", claim("c", gpu_com=1).requests, allocation=elsewhere)))
    assert binds(store) == {"ns/b": "n1"}


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        pytest.param(claim("c", gpu_com=10**9), "1000000000 devices asked for, at most 32", id="10^9 devices"),
        pytest.param(claim("c", nobody_com=1), "device class nobody.com does not exist", id="no such class"),
        pytest.param(claim("c", "device.driver ==", gpu_com=1), "Syntax error", id="a selector that is none"),
        pytest.param(claim("c", "[1].all(i, [1].all(j, true))", gpu_com=1), "loop within a loop", id="costly"),
        pytest.param(claim("c", "true " * 1000, gpu_com=1), "a selector of 5000 characters", id="long"),
        pytest.param(claim("other", gpu_com=1), "resourceclaim ns/c not found", id="no such claim"),
        pytest.param(
            ResourceClaim("ns", "c", claim("c", gpu_com=1).requests, unknown="adminAccess"),
            "adminAccess is not supported",
            id="what is not looked at",
        ),
    ],
)
def test_what_can_never_be_given_is_refused_with_a_word(asked: ResourceClaim, why: str) -> None:
    outcome = run(world(offered("n1", 2), asked, claiming("a", "c")), CONF)
    assert not outcome.binds
    assert why in str(list(outcome.outcome.notices()))


@pytest.mark.parametrize(
    ("selector", "where"),
    [
        pytest.param('device.attributes["gpu.com"].model == "big"', "n2", id="an attribute"),
        pytest.param('device.capacity["gpu.com"].memory.isGreaterThan(quantity("1Gi"))', None, id="one it has not"),
        pytest.param('has(device.attributes["other"].model)', None, id="a domain it has not"),
        pytest.param("1 / 0 == 1", None, id="no answer"),
        pytest.param("device.driver", None, id="another answer"),
    ],
)
def test_selectors_choose_devices(selector: str, where: str | None) -> None:
    slices = offered("n1", each=({"model": "small"},)), offered("n2", each=({"model": "big"},))
    store = world(slices, claim("c", selector, gpu_com=1), claiming("a", "c"))
    assert binds(store) == ({} if where is None else {"ns/a": where})


def asking(*requests: DeviceRequest, same: tuple[SameAttribute, ...] = ()) -> ResourceClaim:
    return ResourceClaim("ns", "c", requests, same)


def one(name: str = "r", *selectors: str, **more: Any) -> DeviceRequest:
    return DeviceRequest(name, (DeviceOption("gpu.com", selectors=selectors, **more),))


NUMA = ({"numa": 0, "model": "x"}, {"numa": 1, "model": "x"}, {"numa": 1, "model": "y"})
SAME = (SameAttribute("gpu.com/numa"),)


@pytest.mark.parametrize(
    ("asked", "devices"),
    [
        pytest.param(asking(one(count=2), same=SAME), ["1", "2"], id="of one value"),
        pytest.param(asking(one(count=3), same=SAME), None, id="more than have one value"),
        pytest.param(asking(one(count=2), same=(SameAttribute("gpu.com/none"),)), None, id="of none"),
        pytest.param(
            asking(one("any"), one("x", 'device.attributes["gpu.com"].model == "x"', count=2)),
            ["2", "0", "1"],
            id="a request that would have taken what another needs",
        ),
        pytest.param(asking(one(every=True)), ["0", "1", "2"], id="all"),
        pytest.param(
            asking(DeviceRequest("r", (DeviceOption("gpu.com", 9, "nine"), DeviceOption("gpu.com", 1, "one")))),
            ["0"],
            id="the first of several that there is",
        ),
    ],
)
def test_devices_of_a_node_are_searched(asked: ResourceClaim, devices: list[str] | None) -> None:
    store = world(offered("n2", each=NUMA), asked, claiming("a", "c"))
    grants = [grant for bind in run(store, CONF).decisions for grant in bind.context[CLAIMS]]
    found = [sorted(e.device for e in g.allocation.devices) for g in grants if g.allocation is not None]
    assert found == ([] if devices is None else [sorted(devices)])


def test_of_alternatives_the_one_is_named_that_was_given() -> None:
    asked = asking(DeviceRequest("r", (DeviceOption("gpu.com", 9, "nine"), DeviceOption("gpu.com", 1, "one"))))
    (bind,) = run(world(offered("n1", 1), asked, claiming("a", "c")), CONF).decisions
    (grant,) = bind.context[CLAIMS]
    assert grant == ClaimGrant("ns/c", Allocation((AllocatedDevice("r/one", "gpu.com", "n1", "0"),), on("n1")))


def test_a_search_without_end_is_ended() -> None:
    each = tuple({"numa": i % 29} for i in range(100))
    asked = asking(*(one(f"r{i}", count=4) for i in range(8)), same=(SameAttribute("gpu.com/numa", ("r0", "r7")),))
    assert binds(world(offered("n2", each=each), asked, claiming("a", "c"))) == {}


def test_devices_in_the_network_are_for_the_nodes_that_reach_them() -> None:
    store = world(offered("", 1, nodes=on("n2")), claim("c", gpu_com=1), claiming("a", "c"))
    assert binds(store) == {"ns/a": "n2"}


@pytest.mark.parametrize(
    ("slices", "where"),
    [
        pytest.param([offered("n1", 1, slice_count=2)], {}, id="a pool that is not whole"),
        pytest.param(
            [offered("n1", 2), offered("n1", 0, driver="gpu.com", generation=2)], {}, id="only the last generation"
        ),
        pytest.param([offered("gone", 2)], {}, id="on a node that is not there"),
    ],
)
def test_slices_that_do_not_count(slices: list[Any], where: dict[str, str]) -> None:
    named = [each if i == 0 else each.__class__(**{**_fields(each), "name": f"s{i}"}) for i, each in enumerate(slices)]
    assert binds(world(named, claim("c", gpu_com=1), claiming("a", "c"))) == where


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def test_a_claim_has_so_many_users_and_no_more() -> None:
    full = ResourceClaim("ns", "c", claim("c", gpu_com=1).requests, reserved_for=tuple(map(str, range(256))))
    assert binds(world(offered("n1", 1), full, claiming("a", "c"))) == {}


def ledger_of(store: Store) -> tuple[Any, ClaimLedger]:
    ssn = session(store, CONF)
    return ssn, claim_ledger(ssn)


def test_a_rollback_takes_devices_back() -> None:
    ssn, ledger = ledger_of(world(offered("n1", 2), claim("c", gpu_com=1), claiming("a", "c")))
    (row,) = ssn.tables.tasks.alive.nonzero()[0].tolist()
    with ssn.statement() as stmt:
        stmt.allocate([row], [0])
        assert ledger.held.array[:, 0].tolist() == [0, -1]
    assert ledger.held.array[:, 0].tolist() == [-1, -1]


def test_devices_of_one_who_leaves_are_promised_and_not_given() -> None:
    allocation = Allocation((AllocatedDevice("r0", "gpu.com", "n1", "0"),), on("n1"))
    old = ResourceClaim("ns", "old", claim("old", gpu_com=1).requests, allocation=allocation)
    pods = claiming("a", "old", on="n1"), claiming("b", "new")
    ssn, ledger = ledger_of(world(offered("n1", 1), old, claim("new", gpu_com=1), pods, names="ab"))
    rows = {each.name: row for row, each in enumerate(ssn.tables.tasks.pods) if each is not None}
    with ssn.statement() as stmt:
        assert stmt.allocate([rows["b"]], [0]) is not None, "somebody has it"
        stmt.evict([rows["a"]], "for b")
        assert stmt.allocate([rows["b"]], [0]) is not None, "somebody still has it"
        assert stmt.pipeline([rows["b"]], [0]) is None
        assert not ledger.free().soon.any()
