"""reclaim, preempt, consolidation and stalegangeviction."""

import pytest

from pumice.kai.engine.counters import Tally, tallies
from pumice.kai.table import DEFAULT_PLUGINS
from pumice.model.blockers import NoRoom
from tests.unit.kai.cluster import NOW, PLUGINS, cycle, job, node, policy, queue, store


def test_reclaim_takes_the_youngest_of_a_queue_above_its_share() -> None:
    running = [job(f"r{i}", "p", ["a"], age=10 - i) for i in range(4)]
    ran = cycle(store(node("a", 4), queue("p", 2), queue("q", 2), *running, job("new", "q", [""])))
    assert (ran.evicted, ran.states["new-0"]) == (["r3-0"], "Pipelined@a")


def test_reclaim_takes_nothing_from_a_queue_within_its_share() -> None:
    running = [job(f"r{i}", "p", ["a"], age=10 - i) for i in range(4)]
    assert cycle(store(node("a", 4), queue("p", 4), queue("q", 0), *running, job("new", "q", [""]))).decisions == []


def test_a_gang_below_its_minimum_goes_whole() -> None:
    ran = cycle(store(node("a", 4), queue("p", 0), queue("q", 4), job("gang", "p", ["a"] * 4), job("new", "q", [""])))
    assert sorted(ran.evicted) == [f"gang-{i}" for i in range(4)]


def test_an_elastic_job_gives_one_task_at_a_time() -> None:
    elastic = job("elastic", "p", ["a"] * 4, minimum=1)
    ran = cycle(store(node("a", 4), queue("p", 0), queue("q", 4), elastic, job("new", "q", [""] * 2)))
    assert sorted(ran.evicted) == ["elastic-2", "elastic-3"]


def test_preempt_takes_lower_priority_of_the_same_queue() -> None:
    low = [job(f"low{i}", "q", ["a"], age=i) for i in range(2)]
    ran = cycle(store(node("a", 2), queue("q", 2), *low, job("high", "q", [""], priority=75)))
    assert (ran.evicted, ran.states["high-0"]) == (["low0-0"], "Pipelined@a")
    assert cycle(store(node("a", 2), queue("q", 2), *low, job("same", "q", [""]))).decisions == []


def test_who_is_not_preemptible_is_nobodys_victim() -> None:
    fast = job("fast", "q", ["a"] * 2, priority=100)
    assert cycle(store(node("a", 2), queue("q", 2), fast, job("higher", "q", [""], priority=125))).decisions == []


def test_consolidation_moves_and_loses_nobody() -> None:
    running = [job(f"r{i}", "q", [f"n{i}"], age=10 - i) for i in range(2)]
    found = store(node("n0", 2), node("n1", 2), queue("q"), *running, job("wide", "q", [""], gpus=2))
    ran = cycle(found)
    moved = ran.evicted[0]
    assert len(ran.evicted) == 1
    assert ran.states[moved].startswith("Pipelined@")
    assert ran.states["wide-0"] != ran.states[moved]
    assert cycle(found, policy(consolidation={"maxConsolidationPreemptees": 0})).decisions == []


def test_consolidation_leaves_all_where_they_are_when_one_has_no_place() -> None:
    running = [job(f"r{i}", "q", [f"n{i}"] * 2, gpus=1, age=10 - i) for i in range(2)]
    found = store(node("n0", 3), node("n1", 3), queue("q"), *running, job("wide", "q", [""], gpus=3))
    assert cycle(found).decisions == []


def test_a_refused_eviction_leaves_a_moved_task_where_it_was() -> None:
    running = [job(f"r{i}", "q", [f"n{i}"], age=10 - i) for i in range(2)]
    found = store(node("n0", 2), node("n1", 2), queue("q"), *running, job("wide", "q", [""], gpus=2))
    moved = cycle(found).evicted[0]
    ran = cycle(found, refuses={moved})
    assert ran.evicted == []
    assert ran.states[moved] == f"Running@n{moved[1]}"


@pytest.mark.parametrize(
    ("grace", "since", "evicted"),
    [(0.0, None, True), (60.0, None, False), (60.0, NOW - 61, True), (60.0, NOW - 59, False), (-1.0, 0.0, False)],
)
def test_a_gang_below_its_minimum_is_evicted_after_a_while(grace: float, since: float | None, *, evicted: bool) -> None:
    found = store(node("a"), queue("q"), job("gang", "q", ["a", "a"], minimum=3, stale_since=since))
    ran = cycle(found, policy(stalegangeviction={"defaultStalenessGracePeriod": grace}))
    assert bool(ran.evicted) == evicted


@pytest.mark.parametrize(
    ("own", "since", "evicted"),
    [(0.0, None, True), (-1.0, 0.0, False), (120.0, NOW - 61, False), (30.0, NOW - 31, True)],
)
def test_a_gang_states_its_own_grace(own: float, since: float | None, *, evicted: bool) -> None:
    gang = job("gang", "q", ["a", "a"], minimum=3, stale_since=since, staleness_grace=own)
    assert bool(cycle(store(node("a"), queue("q"), gang)).evicted) == evicted


@pytest.mark.parametrize(
    ("delay", "age", "evicted_ago", "evicts"),
    [
        pytest.param(60.0, 61.0, None, True, id="over"),
        pytest.param(60.0, 59.0, None, False, id="since its creation"),
        pytest.param(60.0, 600.0, 59.0, False, id="since its last eviction"),
        pytest.param(0.0, 0.0, 0.0, True, id="none"),
    ],
)
def test_nothing_is_evicted_for_a_job_within_its_delay(
    delay: float, age: float, evicted_ago: float | None, *, evicts: bool
) -> None:
    last = None if evicted_ago is None else NOW - evicted_ago
    high = job("high", "q", [""], priority=75, age=age, preemption_delay=delay, last_eviction=last)
    ran = cycle(store(node("a", 1), queue("q", 1), job("low", "q", ["a"]), high))
    assert ran.evicted == (["low-0"] if evicts else [])
    reports = [each.message for update in ran.outcome.groups for each in update.status.scheduling]
    window = "Workload is within its preemption delay window (1m0s) and may not trigger evictions before"
    assert any(window in text for text in reports) is not evicts


def test_a_job_that_loses_pods_has_its_delay_from_then_on() -> None:
    low = job("low", "q", ["a"], age=600.0, preemption_delay=60.0)
    lowest = job("lowest", "q", ["b"], priority=25, age=600.0)
    high = job("high", "q", [""], priority=75, gpus=2)
    ran = cycle(store(node("a", 2), node("b", 1), queue("q"), low, lowest, high))
    assert ran.evicted == ["low-0"]
    (update,) = [update for update in ran.outcome.groups if update.job == "ns/low"]
    assert update.times is not None and update.times.last_eviction == NOW


@pytest.mark.parametrize(
    ("started", "method", "evicted"),
    [(10.0, "lca", False), (31.0, "lca", True), (10.0, "queue", False), (21.0, "queue", True), (None, "lca", True)],
)
def test_a_job_runs_for_a_while_before_others_take_its_place(
    started: float | None, method: str, *, evicted: bool
) -> None:
    """Just below what both queues are in it is 30 s, at the victim's own queue 20 s."""
    queues = (
        queue("left", 0, reclaim_min_runtime=30.0),
        queue("right", 2),
        queue("p", 0, "left", reclaim_min_runtime=20.0),
        queue("q", 2, "right"),
    )
    running = job("runs", "p", ["a"], last_start=None if started is None else NOW - started)
    runtime = {"name": "minruntime", "arguments": {"reclaimResolveMethod": method}}
    ran = cycle(store(node("a", 1), *queues, running, job("new", "q", [""])), policy(plugins=[*PLUGINS, runtime]))
    assert bool(ran.evicted) == evicted


def test_a_job_keeps_its_minimum_for_a_while() -> None:
    running = job("runs", "q", ["a"] * 2, minimum=1, last_start=NOW - 5)
    high = [job(f"high{i}", "q", [""], priority=75, age=-i) for i in range(2)]
    runtime = {"name": "minruntime", "arguments": {"defaultPreemptMinRuntime": "10s"}}
    ran = cycle(store(node("a", 2), queue("q", 2), running, *high), policy(plugins=[*PLUGINS, runtime]))
    assert ran.evicted == ["runs-1"]


def test_hopeless_jobs_have_their_reason_by_kind() -> None:
    hold = job("hold", "p", ["a"], gpus=8, priority=100)
    want = [job(f"w{i}", "q", [""], age=i) for i in range(20)]
    ran = cycle(store(node("a"), queue("p", 8), queue("q", 0), hold, *want))
    assert ran.decisions == []
    reports = [entry for entry in ran.outcome.entries if entry.action == "allocate" and entry.finding == NoRoom()]
    assert {entry.subject for entry in reports} == {f"ns/w{i}" for i in range(20)}


@pytest.mark.parametrize(
    ("depth", "evicted"),
    [
        pytest.param({"allocate": 1}, [], id="allocate asks one job, and cannot place it"),
        pytest.param({}, [], id="allocate places it"),
    ],
)
def test_no_pod_is_moved_for_a_job_that_has_room_but_was_not_tried(depth: dict[str, int], evicted: list[str]) -> None:
    running = [job(f"r{i}", "q", [f"n{i}"], age=10 - i) for i in range(2)]
    hopeless = job("hopeless", "q", [""], gpus=8, age=9, priority=75)
    found = store(node("n0", 2), node("n1", 2), queue("q"), *running, hopeless, job("late", "q", [""], age=1))
    ran = cycle(found, policy(("allocate", "consolidation"), sections={"queueDepthPerAction": depth}))
    assert ran.evicted == evicted
    assert ran.states["late-0"].partition("@")[0] in ("Pipelined", "Allocated", "Binding", "Bound")


def test_a_simulated_placement_leaves_a_node_available_to_the_next_task() -> None:
    """The first task of the gang takes the idle GPU of a, and the second one that leaves a: a still has its idle GPU in
    the simulation, and less is free there than on b."""
    runs = [job(f"fast-{at}", "p", [at] * count, priority=100) for at, count in (("a", 2), ("b", 2), ("c", 3))]
    found = store(
        *(node(name, 4) for name in ("a", "b", "c")),
        queue("p", 7),
        queue("q", 4),
        *runs,
        job("victims", "p", ["a", "c"]),
        job("new", "q", [""] * 4),
    )
    ran = cycle(found, policy(["reclaim"]))
    assert [ran.states[f"new-{i}"] for i in range(4)] == [f"Pipelined@{at}" for at in "aabb"]


def test_equal_jobs_are_tried_once_under_the_default_policy() -> None:
    """A plugin of the default policy that KAI's table forgets to list would have each of them tried."""
    waiting = [job(f"w{i}", "q", [""]) for i in range(20)]
    running = [job(f"r{i}", "p", ["a"], age=10 - i) for i in range(4)]
    found = store(node("a", 4), queue("p", 4), queue("q", 0), *running, *waiting)
    ran = cycle(found, policy(plugins=DEFAULT_PLUGINS))
    tried = tallies(ran.outcome.trace.counts, Tally.TRIED)
    assert ran.decisions == [] and tried and set(tried.values()) == {1}
