"""Reasons of waiting jobs, and ways out, on random worlds in each language."""

from __future__ import annotations

import random

import pytest

from pumice.answers.codes import Code
from pumice.answers.explanation import Verdict, explain
from pumice.answers.reason import reason_of
from pumice.answers.world import Trials
from tests.properties.answers.answer_worlds import LANGUAGES, SMALL, WALK, WALK_LARGE, random_world
from tests.properties.answers.checks import FreshStores, cheaper_way, smaller_sets, wrong_of, wrong_reasons, wrong_ways

each_language = pytest.mark.parametrize("language", LANGUAGES)


@each_language
@pytest.mark.parametrize("seed", range(4))
def test_the_first_way_out_starts_the_job_and_half_of_it_does_not(language: str, seed: int) -> None:
    assert wrong_ways(random_world(random.Random(seed), language)) == []


@pytest.mark.parametrize(
    ("language", "seed", "job"),
    [
        ("kai", 50022, "ns/j1"),
        ("volcano", 50023, "ns/j3"),
        ("volcano", 100000, "ns/j0"),  # of one obstacle, a step that is not among the first
        ("kai", 100000, "ns/j2"),  # with the other step as it was found
        ("volcano", 100024, "ns/j3"),  # one more node, and not two
    ],
)
def test_no_cheaper_steps_start_the_job(language: str, seed: int, job: str) -> None:
    world = random_world(random.Random(seed), language)
    assert cheaper_way(FreshStores(world), explain(world, job)) == ""


@pytest.mark.parametrize(
    ("seed", "job"),
    [
        (600374, "ns/j1"),  # a dearer step, beside which fewer of the other do
        (601368, "ns/j2"),  # one node made larger by less, where more lets others in before the job
        (601581, "ns/j0"),  # another node as dear, beside which fewer devices do
        (601872, "ns/j0"),  # two other steps, of which neither does beside those that were found
    ],
)
def test_no_exchange_of_steps_is_cheaper(seed: int, job: str) -> None:
    world = random_world(random.Random(seed), "kai", size=WALK)
    assert cheaper_way(FreshStores(world), explain(world, job)) == ""


def test_a_little_of_one_step_is_found_where_all_of_it_lets_others_in_before_the_job() -> None:
    world = random_world(random.Random(601950), "kai", size=WALK_LARGE)
    found = explain(world, "ns/j4")
    assert len(found.parts) == 2 and found.ways[0].text == ("queue q0-a: cpu limit +2 cores",)
    assert cheaper_way(FreshStores(world), found) == ""


def test_a_step_that_is_not_made_leaves_its_cost_to_the_others() -> None:
    world = random_world(random.Random(610980), "kai", size=WALK_LARGE)
    found = explain(world, "ns/j1")
    assert found.ways[0].text == ("queue q0: gpu limit +1 GPU", "let the pods tolerate all taints")
    assert cheaper_way(FreshStores(world), found) == ""


def test_amounts_are_changed_where_less_than_an_obstacle_taken_away_altogether_is_enough() -> None:
    world = random_world(random.Random(200018), "volcano", size=SMALL)
    found = explain(world, "ns/j1")
    assert found.ways[0].text == (
        "2 GPUs and 8 cores more on node n0",
        "3 more devices like d0 of gpu.example.com on node n0",
    )
    assert cheaper_way(FreshStores(world), found) == ""


def test_a_job_whose_pods_are_created_once_it_is_admitted_has_ways_out() -> None:
    world = random_world(random.Random(69), "volcano")
    found = explain(world, "ns/j4")
    assert found.pods == 0 and [part.code for part in found.parts] == [Code.ADMISSION, Code.ROOM]
    assert found.parts[1].sentence == "the cluster has 4 cores, it asks for 8"
    assert found.ways and wrong_of(FreshStores(world), "ns/j4", found.ways[0]) == []


def test_a_shortage_of_which_the_cycle_recorded_nothing_has_amounts() -> None:
    found = explain(random_world(random.Random(80009), "kai"), "ns/j0", ways=False)
    assert found.parts[-1].blocker is None
    assert found.parts[-1].sentence == "after this cycle 32 cores are free, at most 16 on one node; it asks for 32"


def test_a_limit_is_raised_by_what_is_missing_where_more_lets_others_in_before_the_job() -> None:
    world = random_world(random.Random(50025), "volcano")
    found = explain(world, "ns/j5")
    assert found.ways[0].text == ("queue q0: capability +6 cores", "uncordon node n3")
    assert cheaper_way(FreshStores(world), found) == ""


def test_one_obstacle_takes_the_place_of_two_in_a_reason_of_four() -> None:
    world = random_world(random.Random(60000), "volcano")
    found = explain(world, "ns/j3", ways=False)
    assert [part.code for part in found.parts] == [Code.TAINT, Code.AFFINITY, Code.ROOM]
    assert smaller_sets(FreshStores(world), found) == (True, True)


def test_two_obstacles_take_the_place_of_three_in_a_reason_of_four() -> None:
    world = random_world(random.Random(200036), "kai", size=SMALL)
    found = explain(world, "ns/j2", ways=False)
    assert [(part.code, part.name) for part in found.parts] == [
        (Code.DEVICE, ""),
        (Code.ROOM, "memory"),
        (Code.ROOM, "pods"),
    ]
    assert smaller_sets(FreshStores(world), found) == (True, True)


def test_one_resource_that_some_nodes_lack_takes_the_place_of_two_that_others_lack() -> None:
    world = random_world(random.Random(701188), "volcano", size=WALK)
    found = explain(world, "ns/j1", ways=False)
    assert [(part.code, part.name) for part in found.parts] == [(Code.ROOM, "nvidia.com/gpu")]


@pytest.mark.parametrize(
    ("seed", "job", "codes"),
    [
        (601173, "ns/j1", [Code.PORT]),
        (601667, "ns/j0", [Code.DEVICE]),
        (602688, "ns/j1", [Code.QUEUE_LIMIT, Code.SELECTOR]),
    ],
)
def test_an_obstacle_of_the_job_alone_does_where_more_room_lets_others_in(
    seed: int, job: str, codes: list[Code]
) -> None:
    world = random_world(random.Random(seed), "kai", size=WALK)
    assert [part.code for part in explain(world, job, ways=False).parts] == codes


@pytest.mark.parametrize(
    ("language", "seed", "job", "expected"),
    [
        ("volcano", 731010, "ns/j1", (Code.ROOM, "cpu")),
        ("kai", 620145, "ns/j1", (Code.AFFINITY, "")),
    ],
)
def test_one_obstacle_is_found_that_does_alone_and_not_beside_others(
    language: str, seed: int, job: str, expected: tuple[Code, str]
) -> None:
    world = random_world(random.Random(seed), language, size=WALK if seed % 10 else WALK_LARGE)
    found = explain(world, job, ways=False)
    assert [(part.code, part.name) for part in found.parts] == [expected] and found.is_smallest


def test_a_reason_is_called_smallest_only_if_every_smaller_set_was_run() -> None:
    world = random_world(random.Random(602688), "kai", size=WALK)
    none, few, enough = (reason_of(Trials(world, most), "ns/j1") for most in (3, 12, 40))
    assert len(none.lifts) == 3 and not none.is_minimal and not none.is_smallest
    assert len(few.lifts) == 3 and few.is_minimal and not few.is_smallest
    assert len(enough.lifts) == 2 and enough.is_minimal and enough.is_smallest


@pytest.mark.parametrize(
    ("language", "seed", "job", "text"),
    [
        ("kai", 625600, "ns/j3", ("remove taints and cordons from 2 nodes: n0, n1",)),
        (
            "volcano",
            730120,
            "ns/j0",
            (
                "2 more nodes like n0 (1 GPU, 8 cores, 32 GiB of memory)",
                "let the pods tolerate all taints",
                "drop the required topology",
            ),
        ),
    ],
)
def test_a_count_between_one_and_the_most_is_found_where_neither_does(
    language: str, seed: int, job: str, text: tuple[str, ...]
) -> None:
    world = random_world(random.Random(seed), language, size=WALK_LARGE)
    assert explain(world, job).ways[0].text == text


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
        if (each := smaller_sets(FreshStores(world), explain(world, job, ways=False))) is not None
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


def test_reasons_hold_where_a_trial_gave_a_node_the_first_gpus_of_the_cluster() -> None:
    """Requests of GPUs counted in queues only after that."""
    assert wrong_reasons(random_world(random.Random(60010), "kai")) == []


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
