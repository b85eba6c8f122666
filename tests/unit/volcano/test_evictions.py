"""preempt and reclaim on clusters in a few words: who goes, for whom, and what is told where nobody does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.api import ROWS, SIGNATURE, Bool, Candidates, Session, Task, TaskRows, plugin, points
from pumice.framework.memo import Memo
from pumice.model.events import Object, Seen
from pumice.model.pod import PodCondition
from pumice.model.queue import PriorityClass
from pumice.runtime.cycle_metrics import report_cycle
from pumice.runtime.metrics import Metrics
from pumice.runtime.why import why_jobs_wait
from pumice.testing.build import cluster, node, pod, podgroup, pods, policy, queue, run, session
from pumice.volcano.candidates import evictable

PREEMPT = """
actions: "preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
AWARE = (
    PREEMPT
    + """
configurations:
- {name: preempt, arguments: {enableTopologyAwarePreemption: true, minCandidateNodesPercentage: 100}}
"""
)
RECLAIM = """
actions: "reclaim"
tiers:
- plugins: [{name: gang}, {name: conformance}, {name: proportion}, {name: predicates}]
"""
LEVELS = [PriorityClass("low", 1), PriorityClass("high", 9)]


def gang(name: str, count: int, minimum: int = 0, of: str = "default", level: str = "low", **same: Any) -> list[Object]:
    """A PodGroup and its pods, admitted."""
    group = podgroup(name, minimum, of, priority_class=level, phase="Inqueue", creation=same.get("creation", 0.0))
    return [group, *pods(name, count, **{"priority": 9 if level == "high" else 1} | same)]


# -- preempt -----------------------------------------------------------------------------------------------------------


def test_the_last_pod_of_the_lower_job_goes() -> None:
    ran = run(cluster(LEVELS, node("n", 2), gang("low", 2, on="n"), gang("high", 1, 1, level="high")), PREEMPT)
    assert (ran.evicted, ran.pipelined) == (["ns/low-1"], {"ns/high-0": "n"})


def test_no_more_go_than_it_takes_and_idle_room_is_used_first() -> None:
    state = cluster(LEVELS, node("n", 4), gang("low", 3, on="n"), gang("high", 1, 1, level="high", cpu=2))
    assert run(state, PREEMPT).evicted == ["ns/low-2"]


def test_a_gang_that_cannot_be_whole_evicts_nobody() -> None:
    state = cluster(LEVELS, node("n", 2), gang("low", 2, on="n"), gang("high", 3, 3, level="high"))
    ran = run(state, PREEMPT)
    assert (ran.decisions, ran.pipelined) == ([], {})


def test_a_gang_keeps_its_minimum() -> None:
    state = cluster(LEVELS, node("n", 3), gang("low", 3, 2, on="n"), gang("high", 2, 1, level="high"))
    assert run(state, PREEMPT).evicted == ["ns/low-2"]


@pytest.mark.parametrize(
    "spared",
    [
        pytest.param({"annotations": {"volcano.sh/preemptable": "false"}}, id="its own word"),
        pytest.param({"priority_class_name": "system-node-critical"}, id="critical to the cluster"),
    ],
)
def test_who_is_never_a_victim(spared: dict[str, Any]) -> None:
    low = [podgroup("low", 0, priority_class="low"), pod("low-0", "low", on="n"), pod("low-1", "low", on="n", **spared)]
    ran = run(cluster(LEVELS, node("n", 2), low, gang("high", 1, 1, level="high")), PREEMPT)
    assert ran.evicted == ["ns/low-0"]


def test_pods_of_another_queue_stay() -> None:
    state = cluster(
        LEVELS, queue("a"), queue("b"), node("n", 1), gang("low", 1, of="a", on="n"), gang("high", 1, 1, "b", "high")
    )
    assert run(state, PREEMPT).decisions == []


def test_a_pod_that_asks_for_nothing_takes_the_place_of_none_that_asks_for_something() -> None:
    full = node("n", 2, pods=2)
    empty = gang("high", 1, 1, level="high", cpu=0, memory=0)
    assert run(cluster(LEVELS, full, gang("low", 2, on="n"), empty), PREEMPT).decisions == []
    others = gang("low", 2, on="n", cpu=0, memory=0)
    assert run(cluster(LEVELS, full, others, empty), PREEMPT).evicted == ["ns/low-1"]


def test_a_more_important_task_takes_the_place_of_another_of_its_job() -> None:
    members = [pod("g-0", "g", on="n", priority=1), pod("g-1", "g", priority=5)]
    conf = PREEMPT.replace("{name: gang}", "{name: gang, enablePreemptable: false}")
    ran = run(cluster(LEVELS, node("n", 1), podgroup("g", 2, phase="Inqueue"), members), conf)
    assert (ran.evicted, ran.pipelined) == (["ns/g-0"], {"ns/g-1": "n"})


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        pytest.param({"preemption_policy": "Never"}, "its preemptionPolicy is Never", id="never"),
        pytest.param({"nominated_node": "gone"}, "it is nominated to node gone, which is not there", id="no such node"),
        pytest.param({"nominated_node": "n"}, "", id="nobody has looked at nodes for it"),
        pytest.param({"nominated_node": "other"}, "others leave node other for it", id="somebody is on the way out"),
    ],
)
def test_who_may_preempt(changed: dict[str, Any], why: str) -> None:
    condition = PodCondition("DisruptionTarget", "True", "PreemptionByScheduler")
    leaving = pod("leaving", "low", on="other", deletion=1.0, conditions=(condition,), priority=1)
    state = cluster(
        LEVELS,
        node("n", 1),
        node("other", 1),
        gang("low", 1, on="n"),
        leaving,
        gang("high", 1, 1, level="high", **changed),
    )
    ran = run(state, PREEMPT)
    assert [e.detail for e in ran.outcome.entries if e.what == "cannot preempt"] == ([why] if why else [])
    assert bool(ran.evicted) is not bool(why)


def test_the_node_whose_victims_matter_least() -> None:
    """By score the first node is the best; there the victim is more important."""
    state = cluster(
        [*LEVELS, PriorityClass("middle", 5)],
        node("n0", 1),
        node("n1", 1),
        [podgroup("middle", 0, priority_class="middle"), pod("middle-0", "middle", on="n0", priority=5)],
        gang("low", 1, on="n1"),
        gang("high", 1, 1, level="high"),
    )
    assert run(state, PREEMPT).evicted == ["ns/middle-0"]
    assert run(state, AWARE).evicted == ["ns/low-0"]


def test_victims_that_need_not_go_are_spared_the_most_important_first() -> None:
    """The small pod would go first and is not enough; once the large one has to go, it may stay."""
    members = [pod("low-0", "low", on="n", cpu=3, priority=1), pod("low-1", "low", on="n", priority=1)]
    state = cluster(
        LEVELS, node("n", 4), podgroup("low", 0, priority_class="low"), members, gang("high", 1, 1, level="high", cpu=3)
    )
    assert run(state, PREEMPT).evicted == ["ns/low-1", "ns/low-0"]
    assert run(state, AWARE).evicted == ["ns/low-0"]


# -- reclaim -----------------------------------------------------------------------------------------------------------


def two_queues(**more: Any) -> list[Object]:
    return [queue("rich", 1, **more), queue("poor", 1), node("n", 4), *gang("has", 4, 0, "rich", on="n")]


def test_a_queue_takes_back_up_to_its_share() -> None:
    ran = run(cluster(LEVELS, two_queues(), gang("wants", 4, 1, "poor")), RECLAIM)
    assert (ran.evicted, ran.pipelined) == (["ns/has-3"], {"ns/wants-0": "n"})


def test_nothing_is_taken_from_a_queue_that_does_not_allow_it() -> None:
    assert run(cluster(LEVELS, two_queues(reclaimable=False), gang("wants", 1, 1, "poor")), RECLAIM).decisions == []


def test_a_queue_that_would_have_more_than_it_deserves_reclaims_nothing() -> None:
    ran = run(cluster(LEVELS, two_queues(), gang("wants", 3, 3, "poor")), RECLAIM)
    assert ran.decisions == []
    (entry,) = [e for e in ran.outcome.entries if e.what == "cannot reclaim"]
    assert entry.detail == "2 of 3 pods could be promised a node; then queue poor may not take more from others"


# -- what is told ------------------------------------------------------------------------------------------------------


def test_why_says_who_might_go_and_what_each_plugin_keeps() -> None:
    state = cluster(LEVELS, node("n", 2), gang("low", 2, 2, on="n"), gang("g", 1, 1, creation=1.0))
    why = why_jobs_wait(run(state, PREEMPT).outcome)["ns/g"]
    assert why.text.endswith(
        "cannot preempt: 0 of 2 running pods of queue default on 1 nodes may go for it; priority spares 2 of no lower"
        " priority; gang spares 2 that their gangs need for their minimum"
    )


def test_metrics_count_attempts_and_committed_evictions() -> None:
    metrics = Metrics()
    state = cluster(LEVELS, node("n", 2), gang("low", 2, on="n"), gang("high", 1, 1, level="high"))
    report_cycle(metrics, run(state, PREEMPT).outcome)
    text = metrics.text().decode()
    for line in (
        "total_preemption_attempts 1",
        "pod_preemption_victims 2",
        'eviction_transactions_total{action="preempt"} 1',
    ):
        assert f"volcano_{line}" in text


# -- asked no more than it takes ---------------------------------------------------------------------------------------


class Counting:
    """Policies with a plugin that spares everybody, and how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def policy(self, *, alike: bool) -> Any:
        asked = self.asked

        def nobody(ssn: Session, preemptor: Task, candidates: Candidates) -> Bool:
            asked.append((preemptor.key, len(candidates)))
            return np.zeros(len(candidates), dtype=bool)

        hook = points.preemptable(reads=(ROWS, SIGNATURE))(nobody) if alike else points.preemptable(nobody)
        conf = """
        actions: preempt
        tiers:
        - plugins: [{name: priority, enablePreemptable: false}, {name: gang, enablePreemptable: false}, {name: nobody}]
        """
        return policy(conf, plugins=[plugin("nobody")(hook)])


def crowd(count: int) -> list[Object]:
    jobs = [each for i in range(count) for each in gang(f"g{i}", 2, 2, creation=float(i + 1))]
    return [node("n0", 2), node("n1", 2), *gang("low", 2, on="n0"), *gang("more", 2, on="n1"), *jobs]


def test_one_of_many_that_are_alike_is_tried_and_the_next_cycle_none() -> None:
    counting, memo = Counting(), Memo()
    under, store = counting.policy(alike=True), cluster(LEVELS, crowd(20))
    first = run(store, under, memo=memo)
    assert {key for key, _ in counting.asked} == {"ns/g0-0"}
    told = [e.subject for e in first.outcome.entries if e.what == "cannot preempt"]
    assert len(told) == 20
    counting.asked.clear()
    again = run(store, under, memo=memo)
    assert counting.asked == []
    assert list(again.outcome.entries) == list(first.outcome.entries)
    store.apply(Seen(pod("low-0", "low", on="n0", priority=1, labels={"new": "yes"})))
    run(store, under, memo=memo)
    assert counting.asked


def test_a_hook_that_may_tell_preemptors_apart_is_asked_about_each() -> None:
    counting = Counting()
    run(cluster(LEVELS, crowd(3)), counting.policy(alike=False))
    assert {key for key, _ in counting.asked} >= {"ns/g0-0", "ns/g1-0", "ns/g2-0"}


def test_hooks_about_one_node_are_asked_node_by_node() -> None:
    seen: list[int] = []

    @plugin("one-node")
    @points.preemptable
    def one_node(ssn: Session, preemptor: Task, candidates: TaskRows) -> Bool:
        seen.append(len(np.unique(ssn.tables.tasks.node[candidates.rows])))
        return np.zeros(len(candidates), dtype=bool)

    conf = "actions: preempt\ntiers: [{plugins: [{name: gang, enablePreemptable: false}, {name: one-node}]}]"
    run(cluster(LEVELS, crowd(1)), policy(conf, plugins=[one_node]))
    assert set(seen) == {1}


# -- candidates --------------------------------------------------------------------------------------------------------


def test_room_is_reckoned_anew_after_an_eviction_and_after_its_undoing() -> None:
    ssn = session(
        cluster(LEVELS, node("n", 2), gang("low", 2, on="n"), gang("high", 1, 1, level="high", cpu=2)), PREEMPT
    )
    row_of = {p.name: row for row, p in enumerate(ssn.tables.tasks.pods) if p is not None}
    supply = evictable(ssn).of_queue(0)
    cls = int(ssn.tables.tasks.cls[row_of["high-0"]])
    assert supply.could_hold(cls).tolist() == [True]
    with ssn.statement() as stmt:
        stmt.evict([row_of["low-1"]], "test")
        assert (supply.could_hold(cls).tolist(), len(supply.on(np.array([0])))) == ([True], 1)
        stmt.evict([row_of["low-0"]], "test")
        assert (supply.somebody().tolist(), len(supply.on(np.array([0])))) == ([False], 0)
    assert (supply.somebody().tolist(), len(supply.on(np.array([0])))) == ([True], 2)


def test_candidates_are_offered_in_the_order_in_which_they_would_go() -> None:
    objects = [*LEVELS, node("n", 8), *gang("high", 2, level="high", on="n"), *gang("low", 2, on="n")]
    ssn = session(cluster(objects), PREEMPT)
    offered = [ssn.tables.tasks.pods[row].name for row in evictable(ssn).rows.tolist()]
    assert offered == ["low-1", "low-0", "high-1", "high-0"]
