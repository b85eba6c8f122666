"""Devices that several claims share: what they consume of its capacities, and how many of them fit."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.model.devices.capacity import consumption, most_shares, shares_without_request
from pumice.model.devices.claims import (
    AllocatedDevice,
    Allocation,
    Amounts,
    CapacityPolicy,
    Device,
    DeviceAttribute,
    DeviceOption,
    DeviceRequest,
    ResourceSlice,
    SameAttribute,
)
from pumice.placing.claims.allocator import allocate
from pumice.placing.claims.offers import offers_of
from pumice.testing.devices import claim
from tests.unit.placing.claims.kit import asking, binds, claiming, given, on, opened, world

STEPS = CapacityPolicy(default=10.0, minimum=10.0, maximum=60.0, step=5.0)
VALUES = CapacityPolicy(default=10.0, values=(10.0, 20.0, 40.0))


def gpu(name: str = "gpu", memory: float = 80.0, policy: CapacityPolicy | None = STEPS, index: int = 0) -> Device:
    return Device(
        name,
        (DeviceAttribute("gpu.com/index", "int", str(index)),),
        (("gpu.com/memory", memory),),
        multiple=True,
        policies=(("gpu.com/memory", policy),) if policy is not None else (),
    )


def offering(*devices: Device, node: str = "n1") -> ResourceSlice:
    return ResourceSlice(node, "gpu.com", node, node, devices=devices)


def memory(amount: float | None, count: int = 1, name: str = "r") -> DeviceRequest:
    asked = () if amount is None else (("gpu.com/memory", amount),)
    return DeviceRequest(name, (DeviceOption("gpu.com", count, capacity=asked),))


@pytest.mark.parametrize(
    ("policy", "asked", "consumed"),
    [
        pytest.param(None, 7.0, 7.0, id="as asked"),
        pytest.param(None, None, 80.0, id="all if nothing is asked"),
        pytest.param(STEPS, None, 10.0, id="the default"),
        pytest.param(STEPS, 3.0, 10.0, id="at least the minimum"),
        pytest.param(STEPS, 12.5, 15.0, id="up to the next step"),
        pytest.param(STEPS, 61.0, None, id="beyond the maximum"),
        pytest.param(VALUES, 11.0, 20.0, id="up to the next value"),
        pytest.param(VALUES, 41.0, None, id="beyond all values"),
        pytest.param(None, 81.0, None, id="more than there is"),
    ],
)
def test_a_request_consumes_what_the_policy_makes_of_it(
    policy: CapacityPolicy | None, asked: float | None, consumed: float | None
) -> None:
    wanted: Amounts = () if asked is None else (("gpu.com/memory", asked),)
    found = consumption(gpu(policy=policy), wanted)
    assert found == (None if consumed is None else (("gpu.com/memory", consumed),))


def test_a_capacity_that_the_device_does_not_have_cannot_be_had() -> None:
    assert consumption(gpu(), (("gpu.com/cores", 1.0),)) is None


def test_the_number_of_shares_follows_from_the_least_that_a_request_consumes() -> None:
    assert (most_shares(gpu()), most_shares(gpu(policy=None)), most_shares(Device("a"))) == (8, 64, 1)
    assert (shares_without_request(gpu()), shares_without_request(gpu(policy=None))) == (8, 1)


def test_claims_share_a_device_while_its_capacity_lasts() -> None:
    claims = [replace(claim(name), requests=(memory(30.0),)) for name in "cde"]
    pods = [claiming(name, of) for name, of in zip("xyz", "cde", strict=True)]
    found = given(world(offering(gpu()), *claims, *pods, names="xyz"))
    assert found == {"ns/c": [("n1", "gpu")], "ns/d": [("n1", "gpu")]}, "20 of 80 are left"


def test_what_a_claim_has_of_a_device_is_taken_from_others() -> None:
    def held(amounts: Amounts | None) -> list[object]:
        has = Allocation((AllocatedDevice("r", "gpu.com", "n1", "gpu", amounts),), on("n1"))
        old = replace(claim("old"), requests=(memory(50.0),), allocation=has)
        return [offering(gpu()), old, replace(claim("c"), requests=(memory(40.0),)), claiming("a", "c")]

    assert binds(world(*held((("gpu.com/memory", 40.0),)))) == {"ns/a": "n1"}
    assert not binds(world(*held((("gpu.com/memory", 50.0),))))
    assert not binds(world(*held(None))), "a share that does not say what it consumes counts as all of the device"


def test_the_allocation_says_what_is_consumed() -> None:
    store = world(offering(gpu()), replace(claim("c"), requests=(memory(12.0),)), claiming("a", "c"))
    from pumice.model.decisions import CLAIMS
    from pumice.testing.build import run
    from tests.unit.placing.claims.kit import CONF

    (bind,) = run(store, CONF).decisions
    (device,) = bind.context[CLAIMS][0].allocation.devices
    assert device.consumed == (("gpu.com/memory", 15.0),)


def test_a_device_that_is_not_shared_must_have_what_is_asked() -> None:
    plain = [replace(gpu(name, amount, None), multiple=False) for name, amount in (("small", 40.0), ("large", 80.0))]
    found = given(world(offering(*plain), replace(claim("c"), requests=(memory(50.0),)), claiming("a", "c")))
    assert found == {"ns/c": [("n1", "large")]}


def test_one_claim_has_two_shares_of_a_device_unless_their_attribute_must_differ() -> None:
    def binding(*constraints: SameAttribute) -> bool:
        asked = asking(memory(20.0, name="a"), memory(20.0, name="b"), same=constraints)
        return bool(binds(world(offering(gpu()), asked, claiming("a", "c"))))

    assert binding()
    assert binding(SameAttribute("gpu.com/index"))
    assert not binding(SameAttribute("gpu.com/index", distinct=True))


def test_attributes_that_must_differ_are_of_different_devices() -> None:
    asked = asking(memory(20.0, 2), same=(SameAttribute("gpu.com/index", distinct=True),))
    found = given(world(offering(gpu("a"), gpu("b"), gpu("c", index=1)), asked, claiming("a", "c")))
    assert found == {"ns/c": [("n1", "a"), ("n1", "c")]}


@pytest.mark.parametrize("seed", range(60))
def test_a_search_finds_shares_where_trying_all_devices_does(seed: int) -> None:
    dice = Random(seed)
    policies = (None, STEPS, VALUES)
    devices = [gpu(f"d{i}", float(dice.randint(20, 60)), dice.choice(policies), i % 2) for i in range(3)]
    requests = [memory(dice.choice((None, 8.0, 15.0, 25.0)), dice.randint(1, 2), f"r{i}") for i in range(2)]
    constraints = (SameAttribute("gpu.com/index", distinct=dice.random() < 0.5),) if dice.random() < 0.7 else ()
    asked = asking(*requests, same=constraints)
    offers = offers_of(opened(world(offering(*devices))))
    taken = np.zeros((len(offers), 1))
    free = np.ones(len(offers), dtype=bool)
    used = [0.0] * len(devices)
    for i, device in enumerate(devices):
        # A share that another claim holds.
        if dice.random() < 0.5:
            row = offers.row_of["gpu.com", "n1", device.name]
            used[i] = float(dice.randint(1, 20))
            taken[row, 0], free[row] = used[i], False
    left = offers.consumption.left(free, taken)
    rows = list(range(len(offers)))
    found = allocate(offers, asked, [row for row in rows if free[row]], rows, left=left)

    def holds(chosen: tuple[int, ...]) -> bool:
        each = [request for request in requests for _ in range(request.options[0].count)]
        amounts = list(used)
        for device, request in zip(chosen, each, strict=True):
            consumed = consumption(devices[device], request.options[0].capacity)
            if consumed is None:
                return False
            amounts[device] += consumed[0][1]
        values = [device % 2 for device in chosen]
        differ = all(len(set(values)) == (len(values) if same.distinct else 1) for same in constraints)
        return differ and all(amount <= devices[i].capacity[0][1] for i, amount in enumerate(amounts))

    count = sum(request.options[0].count for request in requests)
    assert (found is not None) == any(holds(chosen) for chosen in product(range(3), repeat=count))
    if found is not None:
        assert holds(tuple(int(offers.ids[row][2][1:]) for row, _, _ in found))
