"""preempt on clusters in a few words: which tasks leave, and for which."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.runtime.telemetry.cycle_metrics import report_cycle
from pumice.runtime.telemetry.metrics import Metrics
from pumice.testing.build import cluster, node, pod, podgroup, queue, run
from tests.unit.volcano.evicting import LEVELS, PREEMPT, gang


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
