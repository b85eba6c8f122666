"""What a Topology Manager gives of NUMA zones, by policy."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.algorithms.zones import (
    BEST_EFFORT,
    NONE,
    RESTRICTED,
    SINGLE,
    Machines,
    ZoneRequest,
    aligned,
    taken_on_one,
)


def machines(policy: int, allocatable: list[list[float]], count: int | None = None) -> Machines:
    whole = np.array([allocatable], dtype=float)
    return Machines(
        np.array([policy]),
        np.array([False]),
        np.array([len(allocatable) if count is None else count]),
        whole.any(axis=1),
        (-np.sort(-whole, axis=1)).cumsum(axis=1),
    )


def asked(*together: list[float], alone: tuple[list[float], ...] = ()) -> ZoneRequest:
    return ZoneRequest(
        [np.array(each, dtype=float) for each in together], [np.array(each, dtype=float) for each in alone]
    )


#: Four CPUs and two devices in each of two zones.
TWO = [[4.0, 2.0], [4.0, 2.0]]


@pytest.mark.parametrize(
    ("policy", "free", "ask", "taken"),
    [
        pytest.param(SINGLE, TWO, asked([3, 0]), [[3, 0], [0, 0]], id="the lowest zone"),
        pytest.param(SINGLE, [[2, 2], [4, 2]], asked([3, 1]), [[0, 0], [3, 1]], id="the first that holds all"),
        pytest.param(SINGLE, TWO, asked([5, 0]), None, id="more than any zone has"),
        pytest.param(SINGLE, TWO, asked([3, 0], [3, 0]), [[3, 0], [3, 0]], id="containers one after another"),
        pytest.param(SINGLE, TWO, asked([3, 0], [3, 0], [2, 0]), None, id="nothing left for the third"),
        pytest.param(SINGLE, TWO, asked([3, 0], alone=([4, 0],)), [[3, 0], [0, 0]], id="an init container by itself"),
        pytest.param(SINGLE, TWO, asked([3, 0], alone=([5, 0],)), None, id="an init container that fits nowhere"),
        pytest.param(RESTRICTED, TWO, asked([6, 0]), [[4, 0], [2, 0]], id="two zones, the lowest first"),
        pytest.param(RESTRICTED, TWO, asked([6, 3]), [[4, 2], [2, 1]], id="resources that need as many zones"),
        pytest.param(RESTRICTED, TWO, asked([6, 1]), None, id="resources that need different numbers of zones"),
        pytest.param(RESTRICTED, [[2, 0], [2, 0]], asked([3, 0]), None, id="wider than when all was free"),
        pytest.param(RESTRICTED, TWO, asked([9, 0]), None, id="more than all zones have"),
        pytest.param(RESTRICTED, TWO, asked([0, 0]), [[0, 0], [0, 0]], id="nothing is asked for"),
        pytest.param(BEST_EFFORT, [[1, 0], [3, 0]], asked([3, 0]), [[0, 0], [3, 0]], id="the zone that covers most"),
        pytest.param(BEST_EFFORT, [[1, 0], [3, 0]], asked([4, 0]), [[1, 0], [3, 0]], id="as many as it takes"),
    ],
)
def test_which_zones_a_request_takes(
    policy: int, free: list[list[float]], ask: ZoneRequest, taken: list[list[float]] | None
) -> None:
    found = aligned(ask, machines(policy, TWO), np.array([free], dtype=float))
    assert found.fits.tolist() == [taken is not None]
    assert found.taken[0].tolist() == (taken or [[0, 0], [0, 0]])


def test_zones_that_a_node_does_not_have_are_not_taken() -> None:
    found = aligned(
        asked([0, 0], [1, 0]), machines(RESTRICTED, [[1, 0], [0, 0]], count=1), np.array([[[0.0, 0], [9, 0]]])
    )
    assert found.fits.tolist() == [False]


@given(
    free=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=4, max_size=4),
    need=st.tuples(st.integers(0, 12), st.integers(0, 6)),
)
def test_restricted_takes_the_lowest_set_that_plain_search_finds(
    free: list[tuple[int, int]], need: tuple[int, int]
) -> None:
    most = [[4.0, 2.0]] * 4
    widths = {-(-amount // size) for amount, size in zip(need, (4, 2), strict=True) if amount}
    wanted = None
    if len(widths) <= 1:
        for chosen in combinations(range(4), max(widths, default=0)):
            if all(sum(free[z][k] for z in chosen) >= need[k] for k in (0, 1)):
                wanted = chosen
                break
    found = aligned(asked(list(need)), machines(RESTRICTED, most), np.array([free], dtype=float))
    assert found.fits[0] == (wanted is not None)
    if wanted is not None:
        assert found.taken[0].sum(axis=0).tolist() == list(need)
        assert set(np.flatnonzero(found.taken[0].any(axis=1))) <= set(wanted)


_AMOUNT = st.tuples(st.integers(0, 9), st.integers(0, 3))


@given(
    policy=st.sampled_from((NONE, BEST_EFFORT, RESTRICTED, SINGLE)),
    zones=st.integers(1, 4),
    allocatable=st.lists(_AMOUNT, min_size=4, max_size=4),
    # Less than nothing is free where an agent and the records of pods disagree.
    taken=st.lists(st.tuples(st.integers(0, 10), st.integers(0, 4)), min_size=4, max_size=4),
    together=st.lists(_AMOUNT, max_size=3),
    alone=st.lists(_AMOUNT, max_size=2),
)
def test_one_node_takes_what_it_takes_among_many(
    policy: int,
    zones: int,
    allocatable: list[tuple[int, int]],
    taken: list[tuple[int, int]],
    together: list[tuple[int, int]],
    alone: list[tuple[int, int]],
) -> None:
    machine = machines(
        policy, [list(map(float, each)) if z < zones else [0.0, 0.0] for z, each in enumerate(allocatable)]
    )
    machine = machine._replace(zones=np.array([zones]))
    free = np.array(allocatable, dtype=float) - np.array(taken)
    free[zones:] = 0.0
    request = asked(*map(list, together), alone=tuple(map(list, alone)))
    of_many = aligned(request, machine, free[None])
    of_one = taken_on_one(request, machine, 0, free.tolist())
    assert (of_one is not None) == of_many.fits[0]
    assert of_one is None or of_one == of_many.taken[0].tolist()
