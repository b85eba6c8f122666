"""Reasons of waiting jobs, and ways out, on random worlds in each language."""

from __future__ import annotations

import random
import shlex
from itertools import combinations

import pytest
from msgspec.structs import replace

from pumice.answers.codes import Code
from pumice.answers.edits import add_nodes, assign, drain, remove
from pumice.answers.explanation import Verdict, explain
from pumice.answers.lifts import Lift, lift, relevant
from pumice.answers.reason import reason_of
from pumice.answers.ways import draft_of
from pumice.answers.world import Draft, Trials, World, starts
from tests.properties.answers.answer_worlds import LANGUAGES, random_world

#: Obstacles of which all sets are run.
_CANDIDATES_MAX = 9
each_language = pytest.mark.parametrize("language", LANGUAGES)


def starts_without(world: World, job: str, lifts: tuple[Lift, ...]) -> bool:
    """Return True if the job starts once these obstacles are gone, in a store that has seen nothing else."""
    draft = Draft(world)
    for each in lifts:
        lift(draft, job, each)
    return starts_in(world, job, draft)


def wrong_reasons(world: World) -> list[str]:
    """Return what is wrong with the reasons of the jobs of a world that wait."""
    found, trials = [], Trials(world, 0)
    for job in world.groups:
        answer = explain(world, job, ways=False, trials=trials)
        if answer.verdict is Verdict.STARTS:
            continue
        if not answer.parts or answer.verdict is Verdict.UNKNOWN:
            found.append(f"{job}: no answer")
        if not answer.is_checked or not answer.trials:
            continue
        trials.most = trials.run_count + 80
        lifts = reason_of(trials, job).lifts
        parts = [part for size in range(len(lifts)) for part in combinations(lifts, size)]
        if not starts_without(world, job, lifts):
            found.append(f"{job}: does not start without {lifts}")
        found += [f"{job}: starts without {part} alone" for part in parts if starts_without(world, job, part)]
    return found


def smaller_sets(world: World, job: str) -> tuple[bool, bool] | None:
    """Return whether the reason of a job is a smallest set of all obstacles that it could have, and whether it has more
    than one part. None where there is no reason, or too many sets for a test.

    That others come first is an obstacle only in reasons that name it: without the other jobs that wait hardly anything
    is in the way, so reasons name it last."""
    trials = Trials(world, 80)
    lifts = reason_of(trials, job).lifts
    candidates = [each for each in relevant(world, job) if each.code is not Code.ORDER or each in lifts]
    if not lifts or len(candidates) > _CANDIDATES_MAX:
        return None
    smaller = [part for size in range(1, len(lifts)) for part in combinations(candidates, size)]
    return not any(starts_without(world, job, part) for part in smaller), len(lifts) > 1


def wrong_ways(world: World) -> list[str]:
    """Return what is wrong with the first ways out of the jobs of a world: they must place the job, and half of their
    amounts must not, in a store that has seen nothing else; so must the changes that a user is told to try."""
    found = []
    for job in world.groups:
        for way in explain(world, job).ways[:1]:
            halves = [replace(each, count=each.count // 2) for each in way.chosen]
            if not starts_in(world, job, draft_of(world, way.chosen)):
                found.append(f"{job}: does not start by {way.text}")
            if starts_in(world, job, draft_of(world, [each for each in halves if each.count])):
                found.append(f"{job}: starts by half of {way.text}")
            if all(each.step.changes(each.count) for each in way.chosen) and not starts_in(
                world, job, changed(world, way.changes)
            ):
                found.append(f"{job}: does not start by {way.changes}")
    return found


def changed(world: World, changes: tuple[str, ...]) -> Draft:
    """Return a world with changes as ``pumice whatif`` makes them, in its order."""
    draft = Draft(world)
    for name, change in (("add-nodes", add_nodes), ("set", assign), ("drain", drain), ("remove", remove)):
        for text in changes:
            if text.startswith(f"--{name} "):
                change(draft, shlex.split(text)[1])
    return draft


def starts_in(world: World, job: str, draft: Draft) -> bool:
    """Return True if the job starts in a draft, in a store that has seen nothing else."""
    fresh = World(draft.objects(), draft.policy, world.now, world.scheduler_names)
    return starts(Trials(fresh, 0).base, fresh, job)


@each_language
@pytest.mark.parametrize("seed", range(4))
def test_the_first_way_out_starts_the_job_and_half_of_it_does_not(language: str, seed: int) -> None:
    assert wrong_ways(random_world(random.Random(seed), language)) == []


@pytest.mark.long
@each_language
@pytest.mark.parametrize("part", range(20))
def test_first_ways_out_hold_in_many_worlds(language: str, part: int) -> None:
    seeds = range(50 * part, 50 * part + 50)
    assert {seed: wrong for seed in seeds if (wrong := wrong_ways(random_world(random.Random(seed), language)))} == {}


@pytest.mark.long
@each_language
def test_nearly_every_reason_is_a_smallest_set(language: str) -> None:
    """Where all sets of obstacles can be run."""
    found = [
        each
        for seed in range(300)
        for world in [random_world(random.Random(seed), language)]
        for job in world.groups
        if not starts(Trials(world, 0).base, world, job) and (each := smaller_sets(world, job)) is not None
    ]
    assert len(found) >= 100 and any(is_larger for _, is_larger in found)
    assert sum(is_smallest for is_smallest, _ in found) >= 0.99 * len(found)


@each_language
@pytest.mark.parametrize("seed", range(4))
def test_a_job_starts_without_its_reason_and_not_without_a_part_of_it(language: str, seed: int) -> None:
    assert wrong_reasons(random_world(random.Random(seed), language)) == []


def test_a_queue_that_deserves_almost_all_has_a_reason() -> None:
    """Of GPUs of which its job asks for all, a part was kept for a queue that asks for none."""
    assert wrong_reasons(random_world(random.Random(50027), "volcano")) == []


@pytest.mark.long
@each_language
@pytest.mark.parametrize("part", range(100))
def test_reasons_are_sound_in_many_worlds(language: str, part: int) -> None:
    seeds = range(100 + 100 * part, 200 + 100 * part)
    assert {
        seed: wrong for seed in seeds if (wrong := wrong_reasons(random_world(random.Random(seed), language)))
    } == {}


@each_language
def test_most_waiting_jobs_get_a_way_out_and_each_is_small(language: str) -> None:
    waiting, with_ways = 0, 0
    for seed in (1, 5):
        world = random_world(random.Random(seed), language)
        for job in list(world.groups)[-2:]:
            found = explain(world, job)
            if found.verdict in (Verdict.NOT_NOW, Verdict.NEVER, Verdict.HELD):
                waiting, with_ways = waiting + 1, with_ways + bool(found.ways)
            assert all(way.cost.rank >= found.ways[0].cost.rank for way in found.ways)
    assert waiting and with_ways >= 0.8 * waiting
