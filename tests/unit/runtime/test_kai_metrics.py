"""KAI's metrics: their names, and what a cycle leaves in them."""

from __future__ import annotations

from pumice.model.decisions import Evict
from pumice.runtime.cycle_metrics import CycleTimer
from pumice.runtime.kai_metrics import KAI_FAMILIES, report_kai_cycle
from pumice.runtime.metrics import Metrics
from tests.unit.kai.cluster import cycle, job, node, queue, store


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
        'kai_queue_allocated_gpus{queue_name="top"} 2.0',
        'kai_queue_deserved_gpus{queue_name="q"} 4.0',
        'kai_queue_deserved_gpus{queue_name="top"} -1.0',
        'kai_queue_quota_cpu_cores{queue_name="q"} -1.0',
        'kai_queue_fair_share_gpu{queue_name="q"} 2.0',
        "kai_e2e_scheduling_latency_milliseconds 5000.0",
        "kai_open_session_latency_milliseconds 2000.0",
        'kai_action_scheduling_latency_milliseconds{action="allocate"} 1000.0',
    ):
        assert line in page or line.replace(".0", "") in page, (line, [each for each in page if "kai_" in each])
    labels = ("j", "ns", "j", "default", "reclaim")
    assert metrics.value("kai_pod_group_evicted_pods_total", *labels) == 2.0
    report_kai_cycle(metrics, cycle(store(node("n"), queue("q"))).outcome, timer, [], "default")
    assert metrics.series("kai_pod_group_evicted_pods_total") == []


def test_without_kais_language_its_names_are_not_there() -> None:
    assert "kai_" not in Metrics().text().decode()
