"""One pod at a time is on its way to the cards of a node, where the policy says so."""

from __future__ import annotations

import pytest

from pumice.model.decisions import DEVICES, Bind
from pumice.model.devices.shared_devices import DeviceGrant
from pumice.testing.build import Ran, cluster, podgroup, pods, run, session
from pumice.testing.devices import shared_gpus, vgpu
from tests.unit.volcano.devices.given import conf, why

NOW = 1_800_000_000.0
FRESH, OLD = "2027-01-15T07:55:00Z", "2027-01-15T07:54:59Z"  # now is 08:00
LOCKING = conf(VGPUEnable=True, NodeLockEnable=True)


def placed(*objects: object, under: str = LOCKING) -> Ran:
    return run(cluster(*objects), under, now=NOW)


def locks(ran: Ran) -> list[tuple[str, ...]]:
    grants = [each.context[DEVICES] for each in ran.decisions if isinstance(each, Bind)]
    return [grant.locks for grant in grants if isinstance(grant, DeviceGrant)]


def three_pods() -> tuple[object, ...]:
    return podgroup("g"), pods("g", 3, devices=vgpu(100))


def test_a_node_gets_one_pod_with_cards_a_cycle() -> None:
    ran = placed(shared_gpus("a"), shared_gpus("b"), *three_pods())
    assert sorted(ran.binds.values()) == ["a", "b"]
    assert locks(ran) == [("hamivgpu",)] * 2
    assert len(placed(shared_gpus("a"), *three_pods(), under=conf()).binds) == 3, "without the argument"


def test_pods_without_cards_wait_for_no_lock() -> None:
    ran = placed(shared_gpus("a", annotations={"hamivgpu": FRESH}), podgroup("g"), pods("g", 2))
    assert len(ran.binds) == 2 and not any(DEVICES in each.context for each in ran.decisions if isinstance(each, Bind))


@pytest.mark.parametrize(
    ("annotations", "free"),
    [
        pytest.param({"hamivgpu": FRESH}, False, id="five minutes ago"),
        pytest.param({"hamivgpu": OLD}, True, id="expired"),
        pytest.param({"hamivgpu": "tomorrow"}, False, id="what cannot be read allows least"),
        pytest.param({"gpu": FRESH}, True, id="of other devices"),
    ],
)
def test_a_lock_that_holds_keeps_pods_off(annotations: dict[str, str], free: bool) -> None:
    ran = placed(shared_gpus("a", annotations=annotations), podgroup("g"), pods("g", 1, devices=vgpu(100)))
    assert bool(ran.binds) is free
    assert free or "node has been locked within 5 minutes" in why(ran, "g-0")


def test_a_pod_that_was_sent_and_is_not_heard_of_holds_the_lock() -> None:
    store = cluster(shared_gpus("a"), *three_pods())
    (first,) = run(store, LOCKING, now=NOW).decisions
    assert isinstance(first, Bind)
    store.assume([first])
    assert not run(store, LOCKING, now=NOW).binds


def test_whom_a_card_is_only_promised_to_takes_no_lock_and_a_rollback_gives_it_back() -> None:
    ssn = session(cluster(shared_gpus("a", 2), *three_pods()), LOCKING, now=NOW)
    before = ssn.world.digest()
    held, rows = ssn.world.columns["deviceshare.locked"], ssn.tables.tasks.alive.nonzero()[0].tolist()
    with ssn.statement() as stmt:
        assert stmt.pipeline(rows[:1], [0]) is None and not held.array.any()
        assert stmt.allocate(rows[1:2], [0]) is None and held.array.any()
        assert stmt.allocate(rows[2:], [0]) is not None
    assert ssn.world.digest() == before
