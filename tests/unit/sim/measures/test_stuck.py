"""Jobs that can never run are named, and so is the room that they hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from pumice.model.pod import Pod, PodSpec
from pumice.model.resources import Resource
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.policy.conf import policy_of
from pumice.sim.measures import stuck as limits
from pumice.sim.run import Run, simulate
from pumice.sim.settings import SimSettings
from pumice.sim.workloads.work import SimJob, SimTask
from pumice.sim.world import Ending
from pumice.volcano.table import DEFAULT_CONF, volcano_registry
from tests.unit.report.kit import inputs, job, node, queue, summary_of

#: A pod of five cores on nodes of four is admitted, and its promise leaves too little for any other.
BLOCKED = (node("n1"), node("n2"), queue("a"), job("five", cpu=5), *(job(f"gang-{i}", 5, at=10) for i in range(3)))
GANGS = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n'
NO_GANGS = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: predicates\n'


def run(folder: Path, manifests: Sequence[str], until: float | None = None, conf: str = DEFAULT_CONF) -> Run:
    return simulate(inputs(folder, manifests).scene, policy_of(conf, volcano_registry()), SimSettings(until=until))


def test_a_job_that_can_never_run_and_what_it_was_promised(tmp_path: Path) -> None:
    ran = run(tmp_path, BLOCKED)
    assert ran.result.ending == Ending.STUCK
    (stuck,) = ran.stuck
    assert (stuck.job, stuck.queue, stuck.pods) == ("default/five", "a", 1)
    assert stuck.impossible == "asks for 5 cores a pod; the largest node has 4"
    assert (stuck.promised, stuck.holds) == ({"cpu": 5000.0}, {})
    assert len(ran.waiting) == 4


def test_the_problem_says_all_of_it(tmp_path: Path) -> None:
    (problem,) = summary_of(inputs(tmp_path, BLOCKED)).problems
    assert str(problem) == (
        "warning: job default/five: can never run: alone on the empty cluster, asks for 5 cores a pod; the largest "
        "node has 4; was admitted and reserves 5 cores without using it"
    )


def test_nobody_is_tried_alone_where_nobody_asks(tmp_path: Path) -> None:
    ran = simulate(
        inputs(tmp_path, BLOCKED).scene, policy_of(DEFAULT_CONF, volcano_registry()), SimSettings(try_alone=False)
    )
    assert [(each.job, each.impossible, each.promised) for each in ran.stuck] == [
        ("default/five", None, {"cpu": 5000.0})
    ]


def test_it_is_found_before_the_end_too(tmp_path: Path) -> None:
    ran = run(tmp_path, [*BLOCKED, job("later", at=1000)], until=50.0)
    assert ran.result.ending == Ending.UNTIL
    assert [each.job for each in ran.stuck] == ["default/five"]


@pytest.mark.parametrize(
    ("manifests", "why"),
    [
        pytest.param([job("big", 9)], "the cluster has 8 cores, it asks for 9", id="too-large"),
        pytest.param([job("lost", queue="b")], "queue b does not exist", id="no-queue"),
    ],
)
def test_other_reasons(tmp_path: Path, manifests: list[str], why: str) -> None:
    (stuck,) = run(tmp_path, [*BLOCKED[:3], *manifests]).stuck
    assert (stuck.impossible, stuck.promised, stuck.holds) == (why, {}, {})


def test_who_waits_for_room_is_not_stuck(tmp_path: Path) -> None:
    ran = run(tmp_path, [*BLOCKED[:3], job("first", 8, seconds=100), job("next", 8, at=5, seconds=100)], until=50.0)
    assert (ran.stuck, ran.result.pending) == ((), ("default/next",))


def test_halves_of_gangs_that_wait_for_each_other_hold_nodes_for_nothing(tmp_path: Path) -> None:
    """Without the plugin gang, two gangs of three take two of four cores each."""
    gangs = [job("one", 3, cpu=2), job("two", 3, cpu=2)]
    ran = run(tmp_path, [node("n1"), node("n2"), queue("a"), *gangs], conf=NO_GANGS)
    assert ran.result.ending == Ending.DONE  # the first is whole, the second takes what is left and then the rest
    ran = run(tmp_path, [node("n1"), node("n2", cpu=2), queue("a"), job("only", 4, cpu=2)], conf=NO_GANGS)
    (stuck,) = ran.stuck
    assert stuck.impossible is not None
    assert (stuck.promised, stuck.holds) == ({"cpu": 2000.0}, {"cpu": 6000.0})


def test_of_one_kind_one_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    find = limits.StuckJobs.find

    def counting(self: limits.StuckJobs, alone: limits.TryAlone, *, nothing_moves: bool) -> tuple[limits.Stuck, ...]:
        return find(self, lambda key: tried.append(key) or alone(key), nothing_moves=nothing_moves)

    monkeypatch.setattr(limits.StuckJobs, "find", counting)
    fives = [job(f"five-{i}", cpu=5, at=i) for i in range(20)]
    ran = run(tmp_path, [node("n1"), queue("a"), *fives, *(job(f"ok-{i}", 1 + i) for i in range(4))], until=3.0)
    assert len(ran.stuck) == 4  # those that have come
    assert [key for key in tried if "five" in key] == ["default/five-0"]


class OwnSpecs(SimJob, frozen=True):
    """Work whose specs live no longer than its pods, as those of a Volcano Job do."""

    cpu: float = 1000.0

    def outline(self, now: float) -> tuple[PodGroup, list[tuple[PodSpec, int]]]:
        return self.group(now), [(PodSpec(Resource(self.cpu)), 1)]

    def pods_at(self, now: float) -> list[Pod]:
        return [replace(pod, spec=PodSpec(Resource(self.cpu))) for pod in super().pods_at(now)]


def test_what_ran_is_not_known_by_where_it_lay_in_memory(tmp_path: Path) -> None:
    """A spec that is gone leaves its place to another: a job of five cores counted as one that has run."""
    scene = inputs(tmp_path, [node("n1"), queue("a"), job("first")]).scene

    def work(name: str, at: float, cpu: float) -> OwnSpecs:
        task = SimTask("w", 1, PodSpec(Resource(cpu)))
        return OwnSpecs("default", name, "a", (task,), 1, 5.0, at, cpu=cpu)

    small = [work(f"small-{i}", 10.0 * i, 1000.0) for i in range(10)]
    never = [work(f"never-{i}", 200.0, 5000.0) for i in range(10)]
    scene = replace(scene, works=(*scene.works, *small, *never))
    ran = simulate(scene, policy_of(NO_GANGS, volcano_registry()), SimSettings())
    assert [each.job for each in ran.stuck] == [work.key for work in never]
    assert all(each.impossible for each in ran.stuck)


def test_trials_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TRIED_OBJECTS_MAX", 7)
    jobs = [job(f"never-{i}", i, cpu=5) for i in range(1, 6)]
    ran = run(tmp_path, [node("n1"), node("n2"), queue("a"), *jobs])
    # the first two cost two nodes and their pods each: nothing is left for the others
    assert [each.job for each in ran.stuck if each.impossible is not None] == ["default/never-1", "default/never-2"]


@pytest.mark.parametrize(("small", "runs"), [(1000.0, True), (2000.0, False)])
def test_a_gang_that_only_a_search_places_is_told_the_switch(tmp_path: Path, small: float, runs: bool) -> None:
    """It fits only with its small pods on the small node. Pod by pod the first of them takes the large one."""
    scene = inputs(tmp_path, [node("n1", 8), node("n2", 2), queue("a")]).scene
    tasks = (SimTask("a", 2, PodSpec(Resource(small))), SimTask("b", 2, PodSpec(Resource(4000.0))))
    scene = replace(scene, works=(SimJob("default", "unlike", "a", tasks, 4, 5.0),))
    (stuck,) = simulate(scene, policy_of(GANGS, volcano_registry()), SimSettings()).stuck
    assert stuck.impossible is not None
    assert stuck.impossible.endswith("it would run with secondTries of allocate") is runs
