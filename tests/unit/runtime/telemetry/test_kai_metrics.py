"""KAI's metrics: their names, and what a cycle leaves in them."""

from __future__ import annotations

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
        'kai_queue_allocated_gpus{queue_name="top",queue_metadata_name="top",queue_display_name="top"} 2.0',
        'kai_queue_deserved_gpus{queue_name="q",queue_metadata_name="q",queue_display_name="q"} 4.0',
        'kai_queue_deserved_gpus{queue_name="top",queue_metadata_name="top",queue_display_name="top"} -1.0',
        'kai_queue_quota_cpu_cores{queue_name="q",queue_metadata_name="q",queue_display_name="q"} -1.0',
        'kai_queue_fair_share_gpu{queue_name="q",queue_metadata_name="q",queue_display_name="q"} 2.0',
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
    assert metrics.value("kai_queue_info", "q", "q", "q") == 1.0
    assert metrics.value("kai_plugin_scheduling_latency_milliseconds", "gpupack", "OnSessionOpen") == 250.0
    assert "kai_task_scheduling_latency_milliseconds_count 1" in metrics.text().decode()


def test_what_queues_had_lately_is_on_the_page_where_it_is_measured() -> None:
    found, metrics = (
        store(node("n"), queue("q"), queue("new"), QueueHistory("q", 0.5, 0.25, 0.125)),
        Metrics(KAI_FAMILIES),
    )
    report_kai_cycle(metrics, cycle(found).outcome, CycleTimer(lambda: 0.0), [], "default")
    used = [metrics.value(f"kai_queue_{what}_usage", "q", "q", "q") for what in ("cpu", "memory", "gpu")]
    assert (used, metrics.value("kai_queue_gpu_usage", "new", "new", "new")) == ([0.5, 0.25, 0.125], 0.0)


def test_the_name_for_people_of_a_queue_is_a_label_of_its_own() -> None:
    raw = {"metadata": {"name": "q"}, "spec": {"displayName": "Team Q", "resources": {}}}
    named, metrics = read_kai_queue(raw), Metrics(KAI_FAMILIES)
    report_kai_cycle(metrics, cycle(store(node("n"), named)).outcome, CycleTimer(lambda: 0.0), [], "default")
    names = 'queue_name="q",queue_metadata_name="q",queue_display_name="Team Q"'
    assert f"kai_queue_info{{{names}}} 1" in metrics.text().decode()


def test_how_long_binds_and_questions_took_is_in_buckets_that_double() -> None:
    metrics = Metrics(KAI_FAMILIES)
    report_bind_written(metrics, 0.007)
    report_usage_asked(metrics, 3.0)
    page = metrics.text().decode()
    assert 'kai_task_bind_latency_milliseconds_bucket{le="5.0"} 0' in page
    assert 'kai_task_bind_latency_milliseconds_bucket{le="10.0"} 1' in page
    assert 'kai_usage_query_latency_milliseconds_bucket{le="2560.0"} 0' in page
    assert "kai_usage_query_latency_milliseconds_count 1" in page


def test_without_kais_language_its_names_are_not_there() -> None:
    assert "kai_" not in Metrics().text().decode()
