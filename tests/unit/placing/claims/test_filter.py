"""Where the claims of a task can be used or be given what they ask for, and where it would have to wait."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.framework.cycle.session import Session
from pumice.framework.plugin.filter_result import FilterResult, Unfit
from pumice.model.blockers import SearchCut
from pumice.model.blockers.changes import OfferDevices
from pumice.model.devices.claims import (
    CLAIM_USERS_MAX,
    AllocatedDevice,
    Allocation,
    DeviceOption,
    DeviceRequest,
    ResourceClaim,
)
from pumice.model.pod import Pod
from pumice.placing.claims.allocator import STEPS_MAX
from pumice.placing.claims.filter import ELSEWHERE, USED_UP
from pumice.placing.claims.ledger import claim_ledger
from pumice.placing.claims.questions import Claiming
from pumice.reasons.blockers import Blockers
from pumice.reasons.sentences import sentence
from pumice.testing.build import pod, run
from pumice.testing.devices import claim, offered
from tests.unit.placing.claims.kit import CONF, asking, claiming, nodes, on, one, opened, task, world

Against = list[tuple[Unfit, ...]]


def filter_result(claims: Claiming, ssn: Session, name: str) -> FilterResult | None:
    """Return what the filter says of a task on both nodes."""
    its = claims.filter_of(task(ssn, name).cls)
    return None if its is None else its.filter_result(task(ssn, name), nodes(ssn))


def against(ssn: Session, name: str = "a") -> Against:
    """Return why n1 and n2 are refused."""
    found = filter_result(Claiming(claim_ledger(ssn)), ssn, name)
    assert found is not None
    return [found.why[code] for code in found.codes.tolist()]


def held(name: str, node_name: str, users: int = 0) -> ResourceClaim:
    """A claim that has the first device of a node."""
    allocation = Allocation((AllocatedDevice("r0", "gpu.com", node_name, "0"),), on(node_name))
    reserved = tuple(map(str, range(users)))
    return ResourceClaim("ns", name, claim(name, gpu_com=1).requests, allocation=allocation, reserved_for=reserved)


def no(count: int) -> tuple[Unfit, ...]:
    """The reason against a node that has not so many devices."""
    return (Unfit("cannot allocate all claims", changes=(OfferDevices("gpu.com", count),)),)


NO, OUT = no(1), (ELSEWHERE,)
SLICES = offered("n1", 1), offered("n2", 3)


@pytest.mark.parametrize(
    ("claims", "names", "found"),
    [
        pytest.param([claim("c", gpu_com=1)], ["c"], [(), ()], id="enough"),
        pytest.param([claim("c", gpu_com=2)], ["c"], [no(2), ()], id="enough on one"),
        pytest.param([claim("c", gpu_com=4)], ["c"], [no(4), no(4)], id="on none"),
        pytest.param([claim("c", gpu_com=1), claim("d", gpu_com=1)], ["c", "d"], [no(2), ()], id="two want one"),
        pytest.param([asking(one("a"), one("b"))], ["c"], [no(2), ()], id="two requests want one"),
        pytest.param([held("c", "n2")], ["c"], [OUT, ()], id="where it is"),
        pytest.param([held("c", "n1"), claim("d", gpu_com=1)], ["c", "d"], [NO, OUT], id="and where the other can be"),
        pytest.param([held("c", "n2", CLAIM_USERS_MAX - 1)], ["c"], [OUT, ()], id="one more user"),
        pytest.param([held("c", "n2", CLAIM_USERS_MAX)], ["c"], [(USED_UP,)] * 2, id="no more users"),
    ],
)
def test_where_claims_can_be_used(claims: list[ResourceClaim], names: list[str], found: Against) -> None:
    assert against(opened(world(SLICES, claims, claiming("a", *names)))) == found


def test_a_task_without_claims_is_not_looked_at() -> None:
    ssn = opened(world(SLICES, claim("c", gpu_com=1), claiming("b", "c"), pod("a", "a"), names="ab"))
    claims = Claiming(claim_ledger(ssn))
    assert (filter_result(claims, ssn, "a"), claims.waits(task(ssn, "a"), nodes(ssn))) == (None, None)


def leaving(*more: Pod) -> Session:
    """``x`` has the device of n1; ``a`` and ``b`` want one each."""
    claims = held("old", "n1"), claim("new", gpu_com=1), claim("other", gpu_com=1)
    pods = claiming("x", "old", on="n1"), claiming("a", "new"), claiming("b", "other"), *more
    return opened(world(offered("n1", 1), claims, pods, names="xab"))


def test_devices_of_those_who_leave_are_waited_for_and_promised_once() -> None:
    ssn = leaving()
    claims = Claiming(claim_ledger(ssn))
    assert against(ssn) == [NO, NO]
    with ssn.statement() as stmt:
        stmt.evict([task(ssn, "x").row], "make room")
        assert against(ssn) == [(), NO]
        assert filter_result(claims, ssn, "a") is not None
        waits = claims.waits(task(ssn, "a"), nodes(ssn))
        assert waits is not None
        assert waits.tolist() == [True, True]
        assert stmt.pipeline([task(ssn, "a").row], [0]) is None
        assert against(ssn, "b") == [NO, NO], "nobody else is promised it"
    assert claims.waits(task(ssn, "a"), nodes(ssn)) is None


def test_one_who_leaves_does_not_come_back_to_what_was_promised_away() -> None:
    """Not even where another device of the node is free."""
    claims = held("old", "n1"), claim("new", gpu_com=1)
    ssn = opened(world(offered("n1", 2), claims, claiming("x", "old", on="n1"), claiming("a", "new"), names="xa"))
    with ssn.statement() as stmt:
        stmt.evict([task(ssn, "x").row], "make room")
        assert against(ssn, "x")[0] == ()
        stmt.pipeline([task(ssn, "a").row], [0])
        assert against(ssn, "x")[0] == NO


def hard_claim(count: int) -> ResourceClaim:
    """A claim of more requests than devices that they take, and one that tells all devices apart."""
    which = 'device.attributes["gpu.com"].id {}'
    requests = [one(f"r{i}", which.format(f"< {count - 1}")) for i in range(count)]
    each = tuple(DeviceOption("gpu.com", selectors=(which.format(f"== {i}"),)) for i in range(count))
    return asking(*requests, DeviceRequest("each", each))


def test_a_search_that_was_cut_says_so_and_not_that_nothing_fits() -> None:
    devices = tuple({"id": i} for i in range(14))
    store = world(offered("n1", each=devices), offered("n2", each=devices), hard_claim(9), claiming("a", "c"))
    outcome = run(store, CONF).outcome
    (found,) = Blockers(outcome).of(0)
    assert isinstance(found, SearchCut)
    assert (found.nodes, found.steps) == (2, STEPS_MAX)
    assert sentence(found) == (
        "resourceclaim needs too long a search: it was cut off after 4,096 steps, and 2 nodes may fit"
    )


def test_selectors_beyond_the_steps_of_a_namespace_are_not_evaluated_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    devices = tuple({"serial": i} for i in range(4))
    which = 'device.attributes["gpu.com"].serial != {}'
    claims = [replace(asking(one("r", which.format(i + 9))), name=f"c{i}") for i in range(3)]
    pods = [claiming(name, f"c{i}") for i, name in enumerate("abc")]
    monkeypatch.setattr("pumice.placing.claims.searches.LOOKS_MAX", 20)
    ran = run(world(offered("n1", each=devices), *claims, *pods, names="abc"), CONF)
    (found,) = Blockers(ran.outcome).of(2)
    assert sorted(ran.binds) == ["ns/a", "ns/b"]
    assert isinstance(found, SearchCut)


def test_a_costly_selector_is_not_evaluated_where_too_few_steps_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simple one is in any case, if it is the first: a cluster may have any number of devices."""
    devices = tuple({"serial": i} for i in range(40))
    numbers = ", ".join(map(str, range(200)))
    simple = 'device.attributes["gpu.com"].serial == 7'
    costly = f'[{numbers}].exists(a, device.attributes["gpu.com"].serial == a)'
    for bound, wanted in ((20, {"ns/b"}), (1_000, {"ns/a", "ns/b"})):
        claims = [replace(asking(one("r", each)), name=f"c{i}") for i, each in enumerate((costly, simple))]
        pods = [claiming(name, f"c{i}") for i, name in enumerate("ab")]
        monkeypatch.setattr("pumice.placing.claims.searches.LOOKS_MAX", bound)
        assert run(world(offered("n1", each=devices), *claims, *pods, names="ab"), CONF).binds.keys() == wanted
