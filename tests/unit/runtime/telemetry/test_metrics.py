"""The page that Prometheus reads: exact names and types, and series that go when their object goes."""

from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.parser import text_string_to_metric_families

from pumice.cycle import run_cycle
from pumice.runtime.loop import ListPlanner
from pumice.runtime.telemetry.cycle_metrics import CycleTimer, report_bound, report_cycle
from pumice.runtime.telemetry.metrics import FAMILIES, Metrics, exponential
from pumice.testing import build

#: Source: spec 05 §17.
TYPES = {
    "e2e_scheduling_latency_milliseconds": "histogram",
    "open_session_duration_milliseconds": "histogram",
    "e2e_job_scheduling_latency_milliseconds": "histogram",
    "e2e_job_scheduling_duration": "gauge",
    "e2e_job_scheduling_start_time": "gauge",
    "e2e_job_scheduling_last_time": "gauge",
    "plugin_scheduling_latency_milliseconds": "histogram",
    "action_scheduling_latency_milliseconds": "histogram",
    "task_scheduling_latency_milliseconds": "histogram",
    "scheduling_stage_duration_milliseconds": "histogram",
    "schedule_attempts_total": "counter",
    "pod_preemption_victims": "gauge",
    "total_preemption_attempts": "counter",
    "eviction_transactions_total": "counter",
    "unschedule_task_count": "gauge",
    "unschedule_job_count": "gauge",
    "job_share": "gauge",
    "job_retry_counts": "counter",
    **{
        f"queue_{kind}_{what}": "gauge"
        for kind in ("allocated", "request", "deserved", "capacity", "real_capacity", "inqueue")
        for what in ("milli_cpu", "memory_bytes", "scalar_resources")
    },
    "queue_share": "gauge",
    "queue_weight": "gauge",
    "queue_overused": "gauge",
    **{
        f"queue_pod_group_{phase}_count": "gauge" for phase in ("pending", "running", "unknown", "inqueue", "completed")
    },
    "namespace_share": "gauge",
    "namespace_weight": "gauge",
    "namespace_weighted_share": "gauge",
    "goroutines": "gauge",
}


def lines(metrics: Metrics, *parts: str) -> list[str]:
    """Lines of the page that hold one of these texts."""
    return [line for line in metrics.text().decode().splitlines() if any(part in line for part in parts)]


def test_the_table_is_volcanos() -> None:
    assert {family.name: family.type for family in FAMILIES.values()} == TYPES


def test_names_and_types_stay_exact() -> None:
    metrics = Metrics()
    for family in FAMILIES.values():
        labels = ["x"] * len(family.labels)
        if family.type == "histogram":
            metrics.observe(family.name, 3.0, *labels)
        else:
            metrics.put(family.name, 3.0, *labels)
    page = metrics.text().decode()
    declared = dict(line.split()[2:] for line in page.splitlines() if line.startswith("# TYPE"))
    assert declared == {f"volcano_{name}": kind for name, kind in TYPES.items()}
    assert "_created" not in page


def test_a_new_page_has_only_what_needs_no_label() -> None:
    page = Metrics().text().decode().splitlines()
    assert [line for line in page if not line.startswith("#") and "_bucket" not in line] == [
        "volcano_e2e_scheduling_latency_milliseconds_sum 0.0",
        "volcano_e2e_scheduling_latency_milliseconds_count 0.0",
        "volcano_open_session_duration_milliseconds_sum 0.0",
        "volcano_open_session_duration_milliseconds_count 0.0",
        "volcano_e2e_job_scheduling_latency_milliseconds_sum 0.0",
        "volcano_e2e_job_scheduling_latency_milliseconds_count 0.0",
        "volcano_pod_preemption_victims 0.0",
        "volcano_total_preemption_attempts 0.0",
        "volcano_unschedule_job_count 0.0",
    ]


def test_counter_text() -> None:
    metrics = Metrics()
    metrics.add("total_preemption_attempts")
    metrics.add("total_preemption_attempts", 2)
    metrics.add("eviction_transactions_total", 1, "preempt")
    assert lines(metrics, "total_preemption", "eviction_tr") == [
        "# HELP volcano_total_preemption_attempts Attempted preemptions",
        "# TYPE volcano_total_preemption_attempts counter",
        "volcano_total_preemption_attempts 3.0",
        "# HELP volcano_eviction_transactions_total Committed statements that evict",
        "# TYPE volcano_eviction_transactions_total counter",
        'volcano_eviction_transactions_total{action="preempt"} 1.0',
    ]


def test_buckets_are_exponential_ranges() -> None:
    assert exponential(1, 8, 4) == pytest.approx((1, 2, 4, 8))
    counts = {"e2e_scheduling": 20, "plugin": 15, "action": 20, "task": 30, "scheduling_stage": 20}
    for start, count in counts.items():
        family = next(f for f in FAMILIES.values() if f.name.startswith(start))
        assert family.buckets is not None and len(exponential(*family.buckets)) == count


def test_histogram_text() -> None:
    metrics = Metrics()
    for value in (0.05, 0.1, 7.0, 1e9):
        metrics.observe("plugin_scheduling_latency_milliseconds", value, "drf", "OnSessionOpen")
    own = lines(metrics, "plugin_")
    head = 'volcano_plugin_scheduling_latency_milliseconds_bucket{plugin="drf",OnSession="OnSessionOpen",le='
    assert own[2].startswith(head + '"0.1"') and own[2].endswith(" 2.0")
    assert own[-4].endswith(" 3.0") and own[-3] == head + '"+Inf"} 4.0'
    assert own[-1].endswith('_count{plugin="drf",OnSession="OnSessionOpen"} 4.0')
    assert len(own) == 2 + 15 + 1 + 2


def test_names_cannot_add_lines() -> None:
    metrics = Metrics()
    evil = 'a"} 1\nvolcano_queue_share{queue_name="b\\\ud800'
    metrics.put("queue_share", 1.0, evil)
    families = {family.name: family for family in text_string_to_metric_families(metrics.text().decode())}
    (sample,) = families["volcano_queue_share"].samples
    assert sample.labels == {"queue_name": evil.replace("\ud800", "?")}


def test_other_collectors_keep_their_names() -> None:
    registry = CollectorRegistry()
    Counter("process_things", "Things", registry=registry).inc()
    page = Metrics().text(registry.collect()).decode()
    assert "# TYPE process_things_total counter\nprocess_things_total 1.0\n" in page
    assert "_created" not in page


# -- fed from cycles


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def cycle(metrics: Metrics, *objects: object, now: float = 100.0) -> None:
    ran = build.run(build.cluster(*objects), now=now, publishes=True)
    report_cycle(metrics, ran.outcome)


def test_timer_reports_each_phase(metrics: Metrics) -> None:
    ticks: Iterator[float] = iter([1.0, 1.0005, 1.0015, 1.002, 1.012, 1.1, 1.1005, 1.101])
    timer = CycleTimer(lambda: next(ticks))
    for phase in ("open", "open gang", "opened", "enqueue", "allocate", "close gang", "closed"):
        timer(phase)
    timer.report(metrics)
    sums = [line for line in lines(metrics, "_sum") if not line.endswith(" 0.0")]
    named = {line.split()[0]: round(float(line.split()[1]), 6) for line in sums}
    assert named == {
        "volcano_e2e_scheduling_latency_milliseconds_sum": 101.0,
        "volcano_open_session_duration_milliseconds_sum": 2.0,
        'volcano_plugin_scheduling_latency_milliseconds_sum{plugin="gang",OnSession="OnSessionOpen"}': 1.0,
        'volcano_plugin_scheduling_latency_milliseconds_sum{plugin="gang",OnSession="OnSessionClose"}': 0.5,
        'volcano_action_scheduling_latency_milliseconds_sum{action="enqueue"}': 10.0,
        'volcano_action_scheduling_latency_milliseconds_sum{action="allocate"}': 88.0,
    }


def test_the_time_of_each_plugin_is_reported(metrics: Metrics) -> None:
    ticks = iter(range(1, 1000))
    timer = CycleTimer(lambda: next(ticks) / 1000.0)
    objects = [build.node("n", cpu=2), build.queue(), build.podgroup("g", minimum=1), build.pod("p", "g", cpu=1)]
    run_cycle(build.cluster(*objects).snapshot(), build.policy(), 0.0, ListPlanner(), timer)
    timer.report(metrics)
    for plugin, session in (("drf", "OnSessionOpen"), ("gang", "OnSessionOpen"), ("gang", "OnSessionClose")):
        labels = f'plugin="{plugin}",OnSession="{session}"'
        assert f"volcano_plugin_scheduling_latency_milliseconds_count{{{labels}}} 1.0" in lines(metrics, "_count")


def test_gangs_that_lack_pods(metrics: Metrics) -> None:
    big = [build.podgroup("big", minimum=3), build.pods("big", 3, cpu=2)]
    small = [build.podgroup("small", minimum=1), build.pods("small", 1, cpu=1)]
    cycle(metrics, build.node("n", cpu=2), build.queue(), *big, *small)
    assert metrics.value("unschedule_task_count", "big") == 3
    assert metrics.value("unschedule_task_count", "small") == 0
    assert metrics.value("unschedule_job_count") == 1
    assert metrics.value("job_retry_counts", "big") == 1
    assert metrics.value("job_retry_counts", "small") is None
    assert metrics.value("job_share", "ns", "small") == 0.5


def test_times_of_a_job(metrics: Metrics) -> None:
    group = build.podgroup("g", minimum=1)
    objects = (build.node("n", cpu=2), build.queue(), group, build.pods("g", 1))
    cycle(metrics, *objects, now=group.creation + 20)
    labels = ("g", "default", "ns")
    assert metrics.value("e2e_job_scheduling_start_time", *labels) == group.creation
    assert metrics.value("e2e_job_scheduling_last_time", *labels) is None, "decided is not bound: it may be refused"
    report_bound(metrics, group, group.creation + 30)
    cycle(metrics, *objects, now=group.creation + 40)
    assert metrics.value("e2e_job_scheduling_duration", *labels) == 30_000
    assert metrics.value("e2e_job_scheduling_last_time", *labels) == group.creation + 30
    assert lines(metrics, "e2e_job_scheduling_latency_milliseconds_count")[0].endswith(" 1.0")


def test_queues(metrics: Metrics) -> None:
    limited = build.queue("q", weight=3, capability=build.resource(cpu=8))
    jobs = [build.podgroup("g", minimum=1, queue="q"), build.pods("g", 1, cpu=1, memory="1Gi")]
    cycle(metrics, build.node("n", cpu=4, memory="4Gi"), build.queue(), limited, *jobs)
    assert metrics.value("queue_weight", "q") == 3
    assert metrics.value("queue_allocated_milli_cpu", "q") == 1000
    assert metrics.value("queue_request_memory_bytes", "q") == 2**30
    assert metrics.value("queue_capacity_milli_cpu", "q") == 8000
    assert metrics.value("queue_real_capacity_milli_cpu", "q") == 4000
    assert metrics.value("queue_allocated_milli_cpu", "default") == 0
    assert metrics.value("queue_overused", "q") == 1


def test_what_is_deleted_has_no_series(metrics: Metrics) -> None:
    node, queue = build.node("n", cpu=1), build.queue("gone")
    jobs = [build.podgroup("away", minimum=2, queue="gone"), build.pods("away", 2, cpu=1)]
    cycle(metrics, node, build.queue(), queue, *jobs)
    assert lines(metrics, '"gone"') and lines(metrics, '"away"')
    cycle(metrics, node, build.queue())
    assert lines(metrics, '"gone"', '"away"') == []
