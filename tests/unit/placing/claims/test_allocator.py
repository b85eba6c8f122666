"""Which devices of a node a claim is given: the first that will do, in bounded work, and what can never be given."""

from __future__ import annotations

import pytest

from pumice.model.decisions import CLAIMS, ClaimGrant
from pumice.model.devices.claims import (
    CLAIM_DEVICES_MAX,
    AllocatedDevice,
    Allocation,
    DeviceOption,
    DeviceRequest,
    ResourceClaim,
    SameAttribute,
)
from pumice.placing.claims.allocator import STEPS_MAX, allocate, can_never
from pumice.placing.claims.offers import offers_of
from pumice.testing.build import run
from pumice.testing.devices import claim, offered
from tests.unit.placing.claims.kit import CONF, asking, binds, claiming, on, one, opened, world

NUMA = ({"numa": 0, "model": "x"}, {"numa": 1, "model": "x"}, {"numa": 1, "model": "y"})
SAME = (SameAttribute("gpu.com/numa"),)
MODEL = 'device.attributes["gpu.com"].model == "{}"'


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


@pytest.mark.parametrize(
    ("asked", "free", "rows"),
    [
        pytest.param(one(), [2, 1], [2], id="the first that is free"),
        pytest.param(one(count=2), [1], None, id="not enough are free"),
        pytest.param(one(every=True), [0, 2], None, id="all of a node are not all of those that are free"),
        pytest.param(one("r", MODEL.format("y"), every=True), [0, 2], [2], id="all of a kind"),
        pytest.param(one("r", MODEL.format("z"), every=True), [0, 1, 2], None, id="all of none"),
        pytest.param(one(count=0), [], [], id="none is asked for"),
    ],
)
def test_only_what_is_free_is_given(asked: DeviceRequest, free: list[int], rows: list[int] | None) -> None:
    offers = offers_of(opened(world(offered("n1", each=NUMA))))
    found = allocate(offers, asking(asked), free, [0, 1, 2])
    assert (found if found is None else [row for row, _, _ in found]) == rows


@pytest.mark.parametrize(
    ("same", "rows"),
    [
        pytest.param(SameAttribute("gpu.com/numa", ("a", "b")), [(1, 0, 0), (2, 1, 0)], id="of those that are named"),
        pytest.param(SameAttribute("gpu.com/numa", ("a", "other")), [(0, 0, 0), (1, 1, 0)], id="not of the others"),
        pytest.param(SameAttribute("numa", ("a", "b")), [(1, 0, 0), (2, 1, 0)], id="the domain is the driver's"),
    ],
)
def test_devices_agree_in_an_attribute_where_the_claim_wants_it(
    same: SameAttribute, rows: list[tuple[int, int, int]]
) -> None:
    offers = offers_of(opened(world(offered("n1", each=NUMA))))
    assert allocate(offers, asking(one("a"), one("b"), same=(same,)), [0, 1, 2], [0, 1, 2]) == rows


def test_no_claim_is_given_more_than_the_api_allows() -> None:
    """Two requests for all devices of a kind, each small enough."""
    kinds = tuple({"kind": "a" if i < CLAIM_DEVICES_MAX else "b"} for i in range(CLAIM_DEVICES_MAX + 1))
    offers = offers_of(opened(world(offered("n1", each=kinds))))
    every = [one(kind, f'device.attributes["gpu.com"].kind == "{kind}"', every=True) for kind in "ab"]
    rows = list(range(len(kinds)))
    assert allocate(offers, asking(*every), rows, rows) is None
    found = allocate(offers, asking(every[0]), rows, rows)
    assert found is not None
    assert len(found) == CLAIM_DEVICES_MAX


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        pytest.param(claim("c", gpu_com=CLAIM_DEVICES_MAX), "", id="the most that may be"),
        pytest.param(claim("c", gpu_com=CLAIM_DEVICES_MAX + 1), "33 devices asked for, at most 32", id="one more"),
        pytest.param(claim("c", gpu_com=31, no_com=2), "33 devices asked for", id="more in two requests"),
        pytest.param(
            asking(DeviceRequest("r", (DeviceOption("gpu.com", 99, "many"), DeviceOption("gpu.com", 1, "one")))),
            "",
            id="an alternative that is small enough",
        ),
        pytest.param(asking(one(every=True, count=99)), "", id="all, however many are named beside"),
        pytest.param(claim("c", no_com=1), "request r0: device class no.com does not exist", id="no such class"),
        pytest.param(
            asking(DeviceRequest("r", (DeviceOption("no.com"), DeviceOption("gpu.com")))),
            "",
            id="one class there is",
        ),
        pytest.param(ResourceClaim("ns", "c", unknown="adminAccess"), "adminAccess is not supported", id="not known"),
    ],
)
def test_why_no_node_can_ever_give_it(asked: ResourceClaim, why: str) -> None:
    found = can_never(offers_of(opened(world(offered("n1", 1)))), asked)
    assert found.startswith(why) if why else found == ""


def test_a_search_is_ended_after_so_many_steps() -> None:
    """Pairs that agree in nothing: as many ways as there are pairs, and the third request would need them all."""
    each = tuple({"numa": i} for i in range(60))
    offers = offers_of(opened(world(offered("n1", each=each))))
    asked = asking(one("a"), one("b"), one("c"), one("d", count=2), same=(SameAttribute("numa", ("c", "d")),))
    assert STEPS_MAX < 60 * 59 * 58
    assert allocate(offers, asked, list(range(60)), list(range(60))) is None


def test_of_alternatives_the_one_is_named_that_was_given() -> None:
    asked = asking(DeviceRequest("r", (DeviceOption("gpu.com", 9, "nine"), DeviceOption("gpu.com", 1, "one"))))
    (bind,) = run(world(offered("n1", 1), asked, claiming("a", "c")), CONF).decisions
    (grant,) = bind.context[CLAIMS]
    assert grant == ClaimGrant("ns/c", Allocation((AllocatedDevice("r/one", "gpu.com", "n1", "0"),), on("n1")))


def test_a_search_without_end_is_ended() -> None:
    each = tuple({"numa": i % 29} for i in range(100))
    asked = asking(*(one(f"r{i}", count=4) for i in range(8)), same=(SameAttribute("gpu.com/numa", ("r0", "r7")),))
    assert binds(world(offered("n2", each=each), asked, claiming("a", "c"))) == {}
