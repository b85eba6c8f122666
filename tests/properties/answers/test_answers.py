"""Reasons of waiting jobs, and ways out, on random worlds in each language."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from pumice.answers.explanation import Verdict, explain
from pumice.answers.lifts import Lift, lift
from pumice.answers.reason import reason_of
from pumice.answers.world import Draft, Trials, World, starts
from tests.properties.answers.answer_worlds import LANGUAGES, random_world

each_language = pytest.mark.parametrize("language", LANGUAGES)


def starts_without(world: World, job: str, lifts: tuple[Lift, ...]) -> bool:
    """Return True if the job starts once these obstacles are gone, in a store that has seen nothing else."""
    draft = Draft(world)
    for each in lifts:
        lift(draft, job, each)
    fresh = World(draft.objects(), draft.policy, world.now, world.scheduler_names)
    return starts(Trials(fresh, 0).base, fresh, job)


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


@each_language
@pytest.mark.parametrize("seed", range(4))
def test_a_job_starts_without_its_reason_and_not_without_a_part_of_it(language: str, seed: int) -> None:
    assert wrong_reasons(random_world(random.Random(seed), language)) == []


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
