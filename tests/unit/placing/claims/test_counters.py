"""Devices that consume counters of their pool together: what is allocated at once, and which pods get none."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from msgspec.structs import replace

from pumice.model.devices.claims import AllocatedDevice, Allocation, CounterUse, Device, ResourceClaim, ResourceSlice
from pumice.placing.claims.allocator import allocate
from pumice.placing.claims.offers import offers_of
from pumice.testing.devices import claim
from tests.unit.placing.claims.kit import asking, binds, claiming, given, on, one, opened, world

PARTS = {"whole": 80.0, "half-0": 40.0, "half-1": 40.0, "small-0": 10.0}


def partitioned(node: str, memory: float = 80.0, parts: dict[str, float] = PARTS) -> ResourceSlice:
    """A GPU that is offered whole and in partitions, all of one memory."""
    devices = tuple(Device(name, consumes=(CounterUse("gpu-0", "memory", of),)) for name, of in parts.items())
    own = (CounterUse("gpu-0", "memory", memory),)
    return ResourceSlice(node, "gpu.com", node, node, devices=devices, counters=own)


def test_partitions_are_given_while_their_counter_has_enough_left() -> None:
    claims = [claim(name, gpu_com=1) for name in "cde"]
    pods = [claiming(name, of) for name, of in zip("xyz", "cde", strict=True)]
    slices = replace(partitioned("n1"), devices=partitioned("n1").devices[1:])
    found = given(world(slices, *claims, *pods, names="xyz"))
    # Two halves are the whole memory; nothing is left of it for the small one.
    assert found == {"ns/c": [("n1", "half-0")], "ns/d": [("n1", "half-1")]}


def test_a_device_that_is_held_takes_its_part_of_the_counter_from_others() -> None:
    holds = Allocation((AllocatedDevice("r0", "gpu.com", "n1", "small-0"),), on("n1"))
    old = replace(claim("old", gpu_com=1), allocation=holds)
    found = given(world(partitioned("n1"), old, claim("c", gpu_com=1), claiming("a", "c")))
    assert found == {"ns/c": [("n1", "half-0")]}, "70 of 80 are left, and the whole needs 80"


@pytest.mark.parametrize("defined", [("gpu-0", "cores"), ("gpu-1", "memory"), None])
def test_a_device_whose_counter_no_slice_defines_is_not_given(defined: tuple[str, str] | None) -> None:
    slices = replace(partitioned("n1"), counters=(CounterUse(*defined, 100.0),) if defined else ())
    assert not binds(world(slices, claim("c", gpu_com=1), claiming("a", "c")))


def test_counters_of_another_slice_of_the_pool_count_and_those_of_another_pool_do_not() -> None:
    devices = replace(partitioned("n1"), counters=(), slice_count=2)
    own = ResourceSlice("counters", "gpu.com", "n1", "n1", counters=partitioned("n1").counters, slice_count=2)
    asked = claim("c", gpu_com=1), claiming("a", "c")
    assert binds(world(devices, own, *asked)) == {"ns/a": "n1"}
    assert not binds(world(replace(devices, slice_count=1), replace(own, pool="n2", slice_count=1), *asked))


def test_two_claims_of_one_pod_share_what_is_left() -> None:
    parts = {"a": 50.0, "b": 50.0}
    claims = claim("c", gpu_com=1), claim("d", gpu_com=1), claiming("a", "c", "d")
    assert not binds(world(partitioned("n1", parts=parts), *claims))
    assert binds(world(partitioned("n2", 100.0, parts), partitioned("n1", parts=parts), *claims)) == {"ns/a": "n2"}


def test_all_devices_are_given_only_if_all_of_them_fit_at_once() -> None:
    every: ResourceClaim = asking(one(every=True))
    assert not binds(world(partitioned("n1"), every, claiming("a", "c")))
    assert binds(world(partitioned("n1", 170.0), every, claiming("a", "c"))) == {"ns/a": "n1"}


@pytest.mark.parametrize("seed", range(40))
def test_a_search_finds_devices_where_trying_all_sets_does(seed: int) -> None:
    dice = Random(seed)
    amounts = [float(dice.randint(1, 6)) for _ in range(6)]
    total, count = float(dice.randint(4, 16)), dice.randint(1, 4)
    parts = {str(i): amount for i, amount in enumerate(amounts)}
    offers = offers_of(opened(world(partitioned("n1", total, parts))))
    free = [row for row in range(6) if dice.random() < 0.8]
    left = total - sum(amount for row, amount in enumerate(amounts) if row not in free)
    possible = [each for each in combinations(free, count) if sum(amounts[row] for row in each) <= left]
    masks = offers.matching(one().options[0])
    assert not isinstance(masks, str)
    is_free = masks.copy()
    is_free[[row for row in range(6) if row not in free]] = False
    found = allocate(offers, asking(one(count=count)), free, range(6), left=offers.counters.left(is_free))
    assert (found and tuple(row for row, _, _ in found)) == (possible[0] if possible else None)
