"""Several jobs keep the starts that they got: slots by counts of places, and the messages about them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from bench.reserved_starts import World, check_moves, check_told
from pumice.framework.plugin.errors import PolicyError
from pumice.model.blockers import AHEAD, MovedBy, StartReserved
from pumice.ours.reservations.room_over_time import Demand, RoomOverTime, places
from pumice.ours.reservations.slots import MOMENTS_MAX, STEPS_MAX, Slot, Slots
from pumice.testing.build import run
from tests.unit.ours.test_reserve import HOUR, four, job, policy, started

NODES = np.ones(4, dtype=bool)


def demand(pods: int, cores: int = 4, kind: int = 0) -> Demand:
    return Demand(pods, np.array([float(cores)]), NODES, kind)


def slots(*ends: float, cores: int = 4) -> Slots:
    """Four nodes of so many cores. On the first of them pods of 4 cores end at these times."""
    free = np.full((4, 1), float(cores))
    free[: len(ends)] -= 4.0
    count = len(ends)
    return Slots(RoomOverTime(free, np.arange(count), np.full((count, 1), 4.0), np.array(ends)), 0.0)


def starts(found: Any, **arguments: Any) -> dict[str, float | None]:
    ran = run(found, policy(**arguments), now=HOUR)
    assert not ran.outcome.faults, ran.outcome.faults
    return {
        each.subject.removeprefix("ns/"): each.finding.start
        for each in ran.outcome.entries
        if isinstance(each.finding, StartReserved)
    }


def test_each_of_several_jobs_has_a_start_of_its_own() -> None:
    found = four(job("whole", 4, "2h"), job("next", 4, "1h", 60.0), job("third", 4, "1h", 90.0))
    assert starts(found, reservations=2) == {"whole": 10 * HOUR, "next": 12 * HOUR}
    assert starts(found, reservations=64) == {"whole": 10 * HOUR, "next": 12 * HOUR, "third": 13 * HOUR}


def test_a_job_that_fits_beside_a_slot_has_its_start_there() -> None:
    found = four(job("whole", 3, "2h"), [], job("runs2", 1, "10h", on="n1"), job("beside", 1, "20h", 60.0))
    # Two nodes are free until 10 h, when the gang needs three of four.
    assert started(found, reservations=64) == ["beside"]
    assert starts(four(job("whole", 4, "2h"), job("late", 1, "20h", 60.0)), reservations=64)["late"] == 12 * HOUR


def test_the_second_job_is_not_moved_by_a_job_that_spares_the_first() -> None:
    """A job that ends after the first slot, on a place that this leaves over, would delay the second."""
    jobs = job("first", 3, "1h"), job("second", 4, "1h", 60.0), job("long", 1, "30h", 90.0)
    found = four(*jobs, job("runs2", 1, "10h", on="n1"))
    assert started(found) == ["long"]
    assert started(found, reservations=2) == []


def test_a_job_that_would_end_in_time_goes_before_all() -> None:
    found = four(job("whole", 4, "2h"), job("next", 4, "1h", 60.0), job("short", 3, "8h", 90.0))
    assert started(found, reservations=64) == ["short"]


def test_pods_beyond_the_minimum_take_no_places_of_a_job_that_starts_as_well() -> None:
    group, *members = job("elastic", 4, "9d")
    found = four([replace(group, min_member=1), *members], job("pair", 2, "1h", 60.0))
    ran = run(found, policy(reservations=8), now=HOUR)
    assert sorted(ran.binds) == ["ns/elastic-0", "ns/pair-0", "ns/pair-1"]


def test_pods_beyond_the_minimum_leave_the_reserved_job_its_places() -> None:
    group, *members = job("elastic", 4, "9d")
    found = four([replace(group, min_member=1), *members], job("trio", 3, "1h", 60.0))
    for reservations in (1, 8):
        assert sorted(run(found, policy(reservations=reservations), now=HOUR).binds) == ["ns/elastic-0"]


def test_a_start_that_was_said_is_kept_when_an_older_job_may_start_earlier() -> None:
    """The first job may start an hour sooner than was said, and takes no place from the second for that."""
    room, asked = slots(1.0, 5.0, 9.0), {0: demand(3), 1: demand(2)}
    for number, start in ((0, 9.0), (1, 5.0)):
        slot = Slot(number, (asked[number],), start, start + 4.0)
        assert room.can_add(slot), number
        room.add(slot)
    before = room.remove(0)
    assert before is not None and room.earliest(0, [asked[0]], 4.0) == before


def test_unlike_pods_count_by_what_they_take_at_most() -> None:
    """A pod of 4 cores takes up to two places of 2 cores, and one of 2 cores one of 4."""
    room = slots(cores=4)
    whole, small = demand(2, 4, kind=0), demand(5, 2, kind=1)
    room.add(Slot(0, (whole,), 0.0, 10.0))
    assert room.earliest(1, [small], 1.0) == Slot(1, (small,), 10.0, 11.0)
    # Of four places for pods of 4 cores, two pods of 2 cores take two at most, and three would take one too many.
    assert room.earliest(1, [demand(2, 2, kind=1)], 1.0) == Slot(1, (demand(2, 2, kind=1),), 0.0, 1.0)
    assert room.earliest(1, [demand(3, 2, kind=1)], 1.0) == Slot(1, (demand(3, 2, kind=1),), 10.0, 11.0)


def test_unlike_pods_that_fit_only_as_they_are_packed_are_alone() -> None:
    gang = demand(4, 3, kind=0), demand(4, 1, kind=1)
    room = slots(cores=4)
    found = room.earliest(0, gang, 5.0)
    assert found == Slot(0, gang, 0.0, 5.0)
    room.add(found)
    assert room.spare(found) == [0, 0]
    assert room.earliest(1, [demand(1, 1, kind=1)], 1.0) == Slot(1, (demand(1, 1, kind=1),), 5.0, 6.0)


@pytest.mark.parametrize("seed", range(12))
def test_one_slot_is_where_a_single_reservation_is(seed: int) -> None:
    dice = np.random.default_rng(seed)
    free, ends = dice.integers(0, 4, size=(5, 2)).astype(float), dice.integers(1, 9, size=12).astype(float)
    room = RoomOverTime(free, dice.integers(0, 5, size=12), dice.integers(0, 4, size=(12, 2)).astype(float), ends)
    asked = Demand(int(dice.integers(1, 6)), np.array([2.0, 1.0]), dice.random(5) < 0.8)
    found, start = Slots(room, 0.0).earliest(0, [asked], 1.0), room.earliest([asked], 0.0)
    assert (np.inf if found is None else found.start) == start
    moments = np.array([0.0, *np.unique(ends)])
    wanted = [int(places(room.at(at), asked).sum()) for at in moments.tolist()]
    assert room.places_at(asked, moments).tolist() == wanted


@pytest.mark.parametrize("seed", range(30))
def test_slots_leave_each_other_their_places_at_every_moment(seed: int) -> None:
    dice = np.random.default_rng(seed)
    room, kept = slots(*dice.integers(1, 9, size=3).astype(float).tolist(), cores=8), list[Slot]()
    for number in range(8):
        asked = demand(int(dice.integers(1, 6)), kind=0)
        found = room.earliest(number, [asked], float(dice.integers(1, 6)))
        if found is not None:
            room.add(found)
            kept.append(found)
    assert len(kept) > 5
    for moment in np.arange(0.0, 60.0, 0.5).tolist():
        asks = sum(slot.demands[0].pods for slot in kept if slot.start <= moment < slot.until)
        assert asks <= 8


def test_a_plan_is_bounded_in_moments_and_steps() -> None:
    count = 10 * MOMENTS_MAX
    room = RoomOverTime(np.zeros((4, 1)), np.arange(count) % 4, np.full((count, 1), 0.01), np.arange(1.0, count + 1.0))
    found = Slots(room, 0.0)
    # What ends between two moments counts from the later, so a start is never too early.
    slot = found.earliest(0, [demand(1, 1)], 1.0)
    exact = room.earliest([demand(1, 1)], 0.0)
    assert slot is not None and exact <= slot.start <= exact + count / MOMENTS_MAX + 1
    tries = itertools.count()
    while found.earliest(1, [demand(4, 4), demand(1, 1, kind=1)], 1.0) is None and next(tries) < STEPS_MAX:
        pass
    assert found.earliest(2, [demand(1, 1)], 1.0) is None, "the steps are spent"


def test_a_start_moves_for_another_that_has_moved() -> None:
    """The first job moves because one runs longer than it said, and the second for the first."""
    store = four(job("whole", 4, "2h"), job("next", 4, "1h", 60.0))
    first = run(store, policy(reservations=2), now=HOUR)
    ran = run(
        replace(store.snapshot(11 * HOUR), notes=first.outcome.writes.notes), policy(reservations=2), now=11 * HOUR
    )
    said = {each.subject: each.finding for each in ran.outcome.entries if isinstance(each.finding, StartReserved)}
    end = 10 * HOUR + 64 * 60
    assert said["ns/next"] == StartReserved(
        end + 2 * HOUR, ("ns/runs",), 12 * HOUR, 12 * HOUR, (MovedBy(AHEAD, "ns/whole"),)
    )


@pytest.mark.parametrize("reservations", [2, 64])
@pytest.mark.parametrize("seed", range(8))
def test_no_gang_starts_later_than_was_said(seed: int, reservations: int) -> None:
    check_told(World(seed, reservations=reservations))
    check_moves(World(seed, lies=3.0, reservations=reservations))


def test_a_wrong_number_is_named() -> None:
    with pytest.raises(PolicyError, match="argument reservations: found 65, wanted 1 to 64"):
        policy(reservations=65)
