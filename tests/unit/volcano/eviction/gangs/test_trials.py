"""Trials of a gang in one place: what sums refute, and what a trial leaves."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.framework.cycle.session import Session
from pumice.testing.build import cluster, hypernode, node, session
from pumice.volcano.eviction.gangs.places import GangPlace, GangPlaces
from pumice.volcano.eviction.gangs.plans import waiting_tasks_of
from pumice.volcano.eviction.gangs.trials import STEPS_AN_EVICTION, GangTrials
from pumice.volcano.eviction.node_search import NodeSearch
from tests.unit.volcano.evicting import LEVELS, PREEMPT, gang

RACKS = [hypernode("left", 1, "ab"), hypernode("right", 1, "cd"), hypernode("all", 2, hypernodes=["left", "right"])]
NODES = [node(name, 1, creation=float(i)) for i, name in enumerate("abcd")]
OLD = [each for name in "abc" for each in gang(f"old-{name}", 1, 1, on=name)]


class Trial:
    """Gang ``new`` of so many pods on four nodes of a core, of which three are full."""

    def __init__(self, count: int, **more: Any) -> None:
        self.ssn: Session = session(
            cluster(LEVELS, RACKS, NODES, OLD, gang("new", count, count, level="high", **more)), PREEMPT
        )
        tables = self.ssn.tables
        job = list(tables.jobs.uids).index("ns/new")
        self.places = GangPlaces(self.ssn, job)
        nodes = NodeSearch(self.ssn, cached=True, by_score=True)
        self.trials = GangTrials(
            self.ssn, self.places, list(waiting_tasks_of(self.ssn, job)), nodes, "go", lambda _: True
        )
        self.running = (tables.tasks.alive & (tables.tasks.node >= 0)).nonzero()[0].tolist()

    def place(self, name: str) -> GangPlace:
        return self.places._at(list(self.ssn.tables.tree.names).index(name))

    def could_place(self, name: str, victims: int) -> bool:
        place = self.place(name)
        return self.trials.could_place(place, self.trials.room_without(self.running[:victims], place))


@pytest.mark.parametrize(("place", "victims", "expected"), [("all", 0, False), ("all", 1, True), ("right", 2, False)])
def test_sums_count_idle_room_and_what_victims_free_in_the_place(place: str, victims: int, expected: bool) -> None:
    assert Trial(2).could_place(place, victims) is expected


def test_pods_that_no_node_of_the_place_can_hold_are_refuted_although_the_sum_is_enough() -> None:
    assert not Trial(1, cpu=2).could_place("all", 3)


@pytest.mark.parametrize(("victims", "found"), [(0, False), (1, True)])
def test_a_trial_leaves_the_session_as_it_was_and_returns_what_to_repeat(victims: int, found: bool) -> None:
    trial = Trial(2)
    before = trial.ssn.world.digest()
    with trial.ssn.statement() as stmt:
        plan = trial.trials.plan(stmt, trial.place("all"), trial.running[:victims])
        assert (plan is not None) is found and trial.ssn.world.digest() == before
        if plan is not None:
            assert stmt.recover(plan.plan) is None and trial.ssn.world.digest() != before


def test_a_trial_takes_steps_for_its_tasks_and_more_for_its_victims() -> None:
    trial = Trial(2)
    assert trial.trials.steps(trial.running) == 2 + 3 * STEPS_AN_EVICTION


def test_the_most_that_a_trial_places_are_the_first_tasks_that_find_room() -> None:
    trial = Trial(3)
    place = trial.place("all")
    assert len(trial.trials.most_placed(place, trial.trials.room_without(trial.running[:1], place))) == 2
