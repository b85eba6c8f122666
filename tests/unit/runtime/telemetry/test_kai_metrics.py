"""KAI's metrics: their names, and what a cycle leaves in them."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.model.decisions import Evict
from pumice.model.manifest.kai import read_kai_queue
from pumice.model.usage import QueueHistory
from pumice.runtime.telemetry.cycle_metrics import CycleTimer
from pumice.runtime.telemetry.kai_metrics import KAI_FAMILIES, report_bind_written, report_kai_cycle, report_usage_asked
from pumice.runtime.telemetry.metrics import Metrics
from tests.unit.kai.cluster import cycle, job, node, policy, queue, store


def test_what_queues_have_and_who_was_evicted_is_on_the_page() -> None:
    ticks = iter(range(100))
    timer, metrics = CycleTimer(lambda: float(next(ticks))), Metrics(KAI_FAMILIES)
    for phase in ("open", "opened", "allocate", "close", "closed"):
        timer(phase)
    ran = cycle(store(node("n"), queue("top"), queue("q", quota=4, parent="top"), job("j", "q", ["n", "n"])))
    evicted = Evict("ns/j-0", "j-0", "n", "ns/j", "reclaim")
    report_kai_cycle(metrics, ran.outcome, timer, [evicted, evicted], "default")
    page = metrics.text().decode().splitlines()
    for line in (
        'kai_queue_allocated_gpus{queue_name="top",queue_metadata_name="top",queue_display_name=""} 2.0',
        'kai_queue_deserved_gpus{queue_name="q",queue_metadata_name="q",queue_display_name=""} 4.0',
        'kai_queue_deserved_gpus{queue_name="top",queue_metadata_name="top",queue_display_name=""} -1.0',
        'kai_queue_quota_cpu_cores{queue_name="q",queue_metadata_name="q",queue_display_name=""} -1.0',
        'kai_queue_fair_share_gpu{queue_name="q",queue_metadata_name="q",queue_display_name=""} 2.0',
        "kai_e2e_scheduling_latency_milliseconds 5000.0",
        "kai_open_session_latency_milliseconds 2000.0",
        'kai_action_scheduling_latency_milliseconds{action="allocate"} 1000.0',
    ):
        assert line in page or line.replace(".0", "") in page, (line, [each for each in page if "kai_" in each])
    labels = ("j", "ns", "j", "default", "reclaim")
    assert metrics.value("kai_pod_group_evicted_pods_total", *labels) == 2.0
    report_kai_cycle(metrics, cycle(store(node("n"), queue("q"))).outcome, timer, [], "default")
    assert metrics.series("kai_pod_group_evicted_pods_total") == []


def test_what_actions_did_is_counted_by_their_name() -> None:
    """One of two jobs finds a place; preempt has the other's choice of two victims, of which one is not enough."""
    small = job("small", "q", ["n"]), job("other", "q", ["n"])
    waits = job("big", "q", [""], gpus=2, priority=75), job("fits", "q", [""], gpus=0)
    ran = cycle(store(node("n", 2), queue("q"), *small, *waits), policy(["allocate", "preempt"]))
    assert sorted(each.pod for each in ran.decisions) == ["ns/fits-0", "ns/other-0", "ns/small-0"]
    metrics, timer = Metrics(KAI_FAMILIES), CycleTimer(iter([1.0, 1.25, 2.0]).__next__)
    timer("open gpupack")
    timer("opened")
    report_kai_cycle(metrics, ran.outcome, timer, ran.decisions, "default")
    for name, allocated, preempted in (
        ("podgroups_acted_on_by_action", 2.0, 1.0),
        ("podgroups_scheduled_by_action", 1.0, 1.0),
        ("scenarios_simulation_by_action", None, 1.0),
        ("scenarios_filtered_by_action", None, 1.0),
    ):
        found = [metrics.value(f"kai_{name}", action) for action in ("allocate", "preempt")]
        assert found == [allocated, preempted], name
    assert metrics.value("kai_total_preemption_attempts") == 1.0
    assert metrics.value("kai_queue_info", "q", "q", "") == 1.0
    assert metrics.value("kai_plugin_scheduling_latency_milliseconds", "gpupack", "OnSessionOpen") == 250.0
    assert "kai_task_scheduling_latency_milliseconds_count 1" in metrics.text().decode()


def test_what_queues_had_lately_is_on_the_page_where_it_is_measured() -> None:
    found, metrics = (
        store(node("n"), queue("q"), queue("new"), QueueHistory("q", 0.5, 0.25, 0.125)),
        Metrics(KAI_FAMILIES),
    )
    report_kai_cycle(metrics, cycle(found).outcome, CycleTimer(lambda: 0.0), [], "default")
    used = [metrics.value(f"kai_queue_{what}_usage", "q", "q", "") for what in ("cpu", "memory", "gpu")]
    assert (used, metrics.value("kai_queue_gpu_usage", "new", "new", "")) == ([0.5, 0.25, 0.125], 0.0)


def test_the_name_for_people_of_a_queue_is_a_label_of_its_own() -> None:
    raw = {"metadata": {"name": "q"}, "spec": {"displayName": "Team Q", "resources": {}}}
    named, metrics = read_kai_queue(raw), Metrics(KAI_FAMILIES)
    report_kai_cycle(metrics, cycle(store(node("n"), named)).outcome, CycleTimer(lambda: 0.0), [], "default")
    page = metrics.text().decode()
    rest = 'queue_metadata_name="q",queue_display_name="Team Q"'
    assert f'kai_queue_info{{queue_name="q",{rest}}} 1' in page, "KAI's queue controller"
    assert f'kai_queue_fair_share_gpu{{queue_name="Team Q",{rest}}}' in page, "KAI's scheduler"


def test_how_long_binds_and_questions_took_is_in_buckets_that_double() -> None:
    metrics = Metrics(KAI_FAMILIES)
    report_bind_written(metrics, 0.007)
    report_usage_asked(metrics, 3.0)
    page = metrics.text().decode()
    assert 'kai_task_bind_latency_milliseconds_bucket{le="5"} 0' in page
    assert 'kai_task_bind_latency_milliseconds_bucket{le="10"} 1' in page
    assert 'kai_usage_query_latency_milliseconds_bucket{le="2560"} 0' in page
    assert "kai_usage_query_latency_milliseconds_count 1" in page


_QUEUE = "queue_name queue_metadata_name queue_display_name"
_TO_2560 = "5 10 20 40 80 160 320 640 1280 2560"
_TO_32 = "0.001 0.002 0.004 0.008 0.016 0.032 0.064 0.128 0.256 0.512 1.024 2.048 4.096 8.192 16.384 32.768"


@pytest.mark.parametrize(
    ("name", "kind", "labels", "buckets"),
    [
        # pkg/scheduler/metrics
        ("e2e_scheduling_latency_milliseconds", "gauge", "", ""),
        ("open_session_latency_milliseconds", "gauge", "", ""),
        ("close_session_latency_milliseconds", "gauge", "", ""),
        ("plugin_scheduling_latency_milliseconds", "gauge", "plugin OnSession", ""),
        ("action_scheduling_latency_milliseconds", "gauge", "action", ""),
        ("task_scheduling_latency_milliseconds", "histogram", "", _TO_2560),
        ("task_bind_latency_milliseconds", "histogram", "", _TO_2560),
        ("podgroups_scheduled_by_action", "counter", "action", ""),
        ("podgroups_acted_on_by_action", "counter", "action", ""),
        ("scenarios_simulation_by_action", "counter", "action", ""),
        ("scenarios_filtered_by_action", "counter", "action", ""),
        ("total_preemption_attempts", "counter", "", ""),
        ("queue_fair_share_cpu_cores", "gauge", _QUEUE, ""),
        ("queue_fair_share_memory_gb", "gauge", _QUEUE, ""),
        ("queue_fair_share_gpu", "gauge", _QUEUE, ""),
        ("queue_cpu_usage", "gauge", _QUEUE, ""),
        ("queue_memory_usage", "gauge", _QUEUE, ""),
        ("queue_gpu_usage", "gauge", _QUEUE, ""),
        ("usage_query_latency_milliseconds", "histogram", "", _TO_2560),
        ("pod_group_evicted_pods_total", "counter", "podgroup namespace uid nodepool action", ""),
        ("scenario_search_jobs_total", "counter", "action result reduced_budget", ""),
        ("scenario_search_action_budget_configured_seconds", "gauge", "action", ""),
        ("scenario_search_job_budget_configured_seconds", "gauge", "", ""),
        ("scenario_search_generator_budget_configured_seconds", "gauge", "generator", ""),
        ("scenario_search_action_budget_exhausted_total", "counter", "action", ""),
        ("scenario_search_duration_seconds", "histogram", "action generator result", _TO_32),
        ("scenario_search_scenarios_total", "counter", "action generator state", ""),
        # pkg/queuecontroller/metrics
        ("queue_info", "gauge", _QUEUE, ""),
        ("queue_deserved_gpus", "gauge", _QUEUE, ""),
        ("queue_quota_cpu_cores", "gauge", _QUEUE, ""),
        ("queue_quota_memory_bytes", "gauge", _QUEUE, ""),
        ("queue_allocated_gpus", "gauge", _QUEUE, ""),
        ("queue_allocated_cpu_cores", "gauge", _QUEUE, ""),
        ("queue_allocated_memory_bytes", "gauge", _QUEUE, ""),
    ],
)
def test_a_metric_has_kais_name_type_labels_and_buckets(name: str, kind: str, labels: str, buckets: str) -> None:
    metrics, of = Metrics(KAI_FAMILIES), tuple(labels.split())
    key = f"kai_{name}"
    (metrics.observe if buckets else metrics.put)(key, 1.0, *of)
    (found,) = (each for each in metrics.collect() if each.name == key)
    assert (found.type, list(found.samples[0].labels)) == (kind, [*of, *(["le"] if buckets else [])])
    assert [each.labels["le"] for each in found.samples if "le" in each.labels] == (
        [*buckets.split(), "+Inf"] if buckets else []
    )


def test_no_metric_is_missing_in_the_table_of_kais() -> None:
    (mark,) = (m for m in test_a_metric_has_kais_name_type_labels_and_buckets.pytestmark if m.name == "parametrize")
    assert {f"kai_{row[0]}" for row in mark.args[1]} == KAI_FAMILIES.keys()


_SEARCH = "kai_scenario_search_"


def _searched(action: str, *objects: Any, steps: int = 1000) -> Metrics:
    """Return the metrics after an action on a cluster."""
    metrics, under = Metrics(KAI_FAMILIES), policy([action], **{action: {"maxSearchSteps": steps}})
    report_kai_cycle(metrics, cycle(store(*objects), under).outcome, CycleTimer(lambda: 0.0), [], "default")
    return metrics


def _sets(metrics: Metrics) -> dict[tuple[str, str], float]:
    """Return by generator and state how many sets of victims there were."""
    name = f"{_SEARCH}scenarios_total"
    return {(each[1], each[2]): metrics.value(name, *each) or 0.0 for each in metrics.series(name)}


def test_a_search_counts_its_job_and_its_sets_of_victims() -> None:
    """Of two victims one is not enough, which is known without a simulation."""
    objects = node("n", 2), queue("q"), job("a", "q", ["n"]), job("b", "q", ["n"])
    metrics = _searched("preempt", *objects, job("new", "q", [""], gpus=2, priority=75))
    assert metrics.value(f"{_SEARCH}jobs_total", "preempt", "solved", "false") == 1.0
    assert _sets(metrics) == {("NodeLocalGreedy", "emitted"): 1.0, ("NodeLocalGreedy", "simulated"): 1.0}
    page = metrics.text().decode()
    labels = 'action="preempt",generator="NodeLocalGreedy",result="solved"'
    assert f"{_SEARCH}duration_seconds_count{{{labels}}} 1" in page
    (total,) = (line.split()[-1] for line in page.splitlines() if line.startswith(f"{_SEARCH}duration_seconds_sum"))
    assert float(total) > 0 == round(1e6 * float(total)) % 25, "steps of 25 µs"


_HALF_FULL = node("n", 3), node("m", 3), queue("q"), job("a", "q", ["n"], gpus=2), job("b", "q", ["m"], gpus=2)


def test_sets_of_which_a_victim_has_no_place_are_rejected_and_tried_once() -> None:
    """Each of two jobs leaves room for a third, and neither has another place."""
    metrics = _searched("consolidation", *_HALF_FULL, job("new", "q", [""], gpus=2, priority=75))
    found = {(generator[0], state): count for (generator, state), count in _sets(metrics).items()}
    assert found == {
        **{("N", state): 2.0 for state in ("emitted", "simulated", "validator_rejected")},
        **{("M", "emitted"): 3.0, ("M", "duplicate"): 2.0, ("M", "simulated"): 1.0, ("M", "validator_rejected"): 1.0},
    }
    assert metrics.value(f"{_SEARCH}jobs_total", "consolidation", "generators_exhausted", "false") == 1.0
    name, action = f"{_SEARCH}duration_seconds_count", 'action="consolidation"'
    ends = f'{name}{{{action},generator="MultiNodeGang",result="generators_exhausted"}} 1'
    assert ends in metrics.text().decode()


def test_limits_are_those_of_actions_and_are_exhausted_once_in_a_run() -> None:
    waiting = [job(f"new{i}", "q", [""], gpus=2, priority=50 + i) for i in range(3)]
    metrics = _searched("consolidation", *_HALF_FULL, *waiting, steps=1)
    results = {each[1]: metrics.value(f"{_SEARCH}jobs_total", *each) for each in metrics.series(f"{_SEARCH}jobs_total")}
    assert results == {"deadline_exhausted": 1.0, "not_attempted": 2.0}
    assert metrics.value(f"{_SEARCH}action_budget_exhausted_total", "consolidation") == 1.0
    assert metrics.value(f"{_SEARCH}action_budget_configured_seconds", "consolidation") == 25e-6
    assert metrics.value(f"{_SEARCH}job_budget_configured_seconds") == 0.0
    of_generators = f"{_SEARCH}generator_budget_configured_seconds"
    assert [each for (each,) in metrics.series(of_generators)] == ["default", "NodeLocalGreedy", "MultiNodeGang"]


def test_without_kais_language_its_names_are_not_there() -> None:
    assert "kai_" not in Metrics().text().decode()
