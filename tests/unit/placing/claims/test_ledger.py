"""Claims of devices: who is given which, what is promised, and what is refused in bounded work."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.model.devices.claims import (
    AllocatedDevice,
    Allocation,
    ResourceClaim,
)
from pumice.model.events import Gone, Seen
from pumice.model.pod import Pod
from pumice.placing.claims.ledger import ClaimLedger, claim_ledger
from pumice.state.store import Store
from pumice.testing.build import podgroup, run, session
from pumice.testing.devices import claim, claim_template, offered
from tests.unit.placing.claims.kit import CONF, binds, claiming, given, on, world


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
