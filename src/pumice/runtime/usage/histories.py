"""The use of the cluster by queues over a window, from Prometheus.

Source: KAI's usage database (time-aware fairness): its series, and its rule that older samples count less.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from urllib.parse import quote

from pumice.model.queue import Queue
from pumice.model.usage import QueueHistory
from pumice.runtime.usage.history_settings import RESOLUTION_S, HistorySettings
from pumice.runtime.usage.sources import Ask, prometheus_vector

#: By field of QueueHistory: the series of what queues hold, and the resource of nodes to which it is compared.
_SERIES = {
    "cpu": ("kai_queue_allocated_cpu_cores", "cpu"),
    "memory": ("kai_queue_allocated_memory_bytes", "memory"),
    "gpu": ("kai_queue_allocated_gpus", "nvidia_com_gpu"),
}


async def queue_histories(
    settings: HistorySettings, ask: Ask, queues: Sequence[Queue], now: float
) -> list[QueueHistory]:
    """Return histories, with two questions per resource for all queues. A queue without samples held nothing. Raises:
    SourceError."""
    shares = {}
    for name, (held, resource) in _SERIES.items():
        had = await _summed(settings, ask, f"sum by (queue_name) ({held})", now)
        capacity = f'sum(kube_node_status_capacity{{resource="{resource}"}})'
        there = sum((await _summed(settings, ask, capacity, now)).values())
        shares[name] = {queue: amount / there for queue, amount in had.items()} if there > 0 else {}
    cpu, memory, gpu = shares.values()
    names = (each.name for each in queues)
    return [QueueHistory(name, cpu.get(name, 0.0), memory.get(name, 0.0), gpu.get(name, 0.0), now) for name in names]


async def _summed(settings: HistorySettings, ask: Ask, series: str, now: float) -> dict[str, float]:
    """Return a series over the window, with older samples counting less, by queue (empty if it has none)."""
    weight = f" * (0.5 ^ (({now:.0f} - time()) / {settings.half_life_s:.0f}))" if settings.half_life_s else ""
    window = f"{settings.span_s(now):.0f}s:{RESOLUTION_S:.0f}s"
    query = f"sum_over_time(({series}{weight})[{window}])"
    samples = await prometheus_vector(ask, f"/api/v1/query?time={now:.0f}&query={quote(query, safe='')}")
    found: dict[str, float] = {}
    for labels, value in samples:
        if isfinite(value) and value >= 0:
            found[labels.get("queue_name", "")] = value
    return found
