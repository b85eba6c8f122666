"""Searches for devices of claims that a tenant made hard: the devices of a slow plain search, in counted steps."""

from __future__ import annotations

from itertools import combinations
from random import Random

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.model.devices.claims import DeviceOption, DeviceRequest, ResourceClaim, SameAttribute
from pumice.placing.claims.allocator import STEPS_MAX, Given, Steps, allocate
from pumice.placing.claims.offers import Offers, offers_of
from pumice.placing.claims.searches import SESSION_STEPS_MAX, Searches
from pumice.testing.devices import offered
from tests.unit.placing.claims.kit import opened, world

ATTRIBUTES = ("numa", "bus", "model")


def slow(offers: Offers, claim: ResourceClaim, free: list[int], every: list[int]) -> Given | None:
    """Every way in order, without a bound and without a shortcut."""

    def agree(taken: Given) -> bool:
        for same in claim.same:
            rows = [row for row, i, _ in taken if not same.requests or claim.requests[i].name in same.requests]
            values = {offers.value_of(same.attribute, row) for row in rows}
            if rows and (len(values) > 1 or None in values):
                return False
        return True

    def fill(i: int, taken: Given) -> Given | None:
        if i == len(claim.requests):
            return taken
        for o, option in enumerate(claim.requests[i].options):
            mask = offers.matching(option)
            assert not isinstance(mask, str)
            used = {row for row, _, _ in taken}
            fit = [row for row in free if mask[row] and row not in used]
            here = [row for row in every if mask[row]]
            if option.every and (not here or len(here) != len(fit)):
                continue
            for rows in combinations(fit, len(fit) if option.every else option.count):
                more = [*taken, *((row, i, o) for row in rows)]
                found = fill(i + 1, more) if agree(more) else None
                if found is not None:
                    return found
        return None

    return fill(0, [])


def claim_of(dice: Random, most: int) -> ResourceClaim:
    """A claim whose requests compete for devices, and must agree in attributes."""

    def option() -> DeviceOption:
        selectors = (f'device.attributes["gpu.com"].numa == {dice.randrange(3)}',) if dice.random() < 0.3 else ()
        return DeviceOption("gpu.com", dice.choice((0, 1, 1, 1, 2, 3)), every=dice.random() < 0.1, selectors=selectors)

    requests = tuple(
        DeviceRequest(f"r{i}", tuple(option() for _ in range(dice.choice((1, 1, 2))))) for i in range(most)
    )
    same = tuple(
        SameAttribute(f"gpu.com/{name}", tuple(each.name for each in requests if dice.random() < 0.7))
        for name in dice.sample(ATTRIBUTES, dice.randrange(3))
    )
    return ResourceClaim("ns", "c", requests, same)


def offers_for(dice: Random, most: int, nodes: tuple[str, ...] = ("n1",)) -> Offers:
    def device() -> dict[str, int]:
        return {name: dice.randrange(3) for name in ATTRIBUTES if dice.random() < 0.9}

    slices = [offered(name, each=tuple(device() for _ in range(most))) for name in nodes]
    return offers_of(opened(world(*slices)))


@pytest.mark.parametrize("seed", [*range(25), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(25, 500))])
def test_search_finds_the_devices_of_a_slow_search(seed: int) -> None:
    dice = Random(seed)
    offers = offers_for(dice, 5)
    every = list(range(5))
    for _ in range(8):
        claim = claim_of(dice, dice.choice((1, 2, 3)))
        free = [row for row in every if dice.random() < 0.8]
        assert allocate(offers, claim, free, every) == slow(offers, claim, free, every)


@pytest.mark.parametrize("seed", range(25))
def test_hard_claims_take_a_bounded_number_of_steps_and_say_when_they_are_cut(seed: int) -> None:
    dice = Random(seed)
    offers, nodes = offers_for(dice, 14, ("n1", "n2")), np.array([0, 1], dtype=np.int32)
    claim = claim_of(dice, dice.choice((6, 7, 8, 9)))
    searches = Searches(offers, [claim])
    found = searches.on_nodes([claim], nodes, np.ones(len(offers), dtype=bool), 2)
    assert found.steps <= SESSION_STEPS_MAX + STEPS_MAX
    steps = Steps()
    given = allocate(offers, claim, list(range(14)), list(range(14)), steps)
    assert bool(found.room[0]) == (given is not None)
    assert (found.cut is not None and bool(found.cut[0])) == steps.cut


def test_equal_nodes_are_searched_once_and_the_bound_is_shared_by_the_questions_of_a_namespace() -> None:
    devices = ({"numa": 0}, {"numa": 1}, {"numa": 1})
    offers = offers_of(opened(world(offered("n1", each=devices), offered("n2", each=devices))))
    two = DeviceRequest("r", (DeviceOption("gpu.com", 2),))
    claim = ResourceClaim("ns", "c", (two,), (SameAttribute("gpu.com/numa"),))
    free = np.ones(len(offers), dtype=bool)
    one, both = (
        Searches(offers, [claim]).on_nodes([claim], np.arange(count, dtype=np.int32), free, 2) for count in (1, 2)
    )
    assert (one.steps, both.room.tolist(), both.cut) == (both.steps, [True, True], None)
    others = [ResourceClaim("ns", f"c{i}", (two,), (SameAttribute(f"gpu.com/{i}"),)) for i in range(9)]
    assert Searches(offers, [claim, *others]).bound([claim]) == SESSION_STEPS_MAX // 10


@pytest.mark.parametrize("seed", range(40))
def test_equal_plain_claims_get_one_after_the_other_what_a_search_finds_for_each(seed: int) -> None:
    dice = Random(seed)
    offers = offers_for(dice, 8)
    (request,) = claim_of(dice, 1).requests
    options = tuple(replace(each, every=False) for each in request.options)
    wanted = ResourceClaim("ns", "c", (replace(request, options=options),))
    every = [row for row in offers.placed[0].tolist() if row >= 0]
    free = np.array([dice.random() < 0.8 for _ in range(len(offers))])
    plain = Searches(offers, [wanted]).plain_on_node([wanted], 0, free)
    assert plain is not None
    for _ in range(10):
        found, expected = plain.next(), slow(offers, wanted, [row for row in every if free[row]], every)
        assert found == (None if expected is None else [expected])
        if expected is None:
            break
        free[[row for row, _, _ in expected]] = False
