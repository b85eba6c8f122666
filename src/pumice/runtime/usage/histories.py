"""What queues had of the cluster over a window, as Prometheus knows it: the section ``usageDBConfig`` of a policy.

Source: KAI's usage database (time-aware fairness): its keys, its series, and its rule that older samples count less.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any
from urllib.parse import quote

from pumice.model.manifest.fields import epoch_of
from pumice.model.quantity import DurationError, parse_duration
from pumice.model.queue import Queue
from pumice.model.usage import QueueHistory
from pumice.runtime.usage.settings import PROMETHEUS, SourceSettings, source_problems
from pumice.runtime.usage.sources import Ask, prometheus_vector

_DAY_S, _RESOLUTION_S = 86_400.0, 60.0
_WINDOW_S, _INTERVAL_S = 7 * _DAY_S, 60.0
_WINDOW_MAX_S = 400 * _DAY_S  # each minute of it is a sample that the database looks at
_SPAN = re.compile(r"(\d{1,4})([dw])")
#: The section of a policy file.
HISTORY = "usageDBConfig"
_CLIENT, _ADDRESS, _PARAMS = "clientType", "connectionString", "usageParams"
SLIDING, TUMBLING = "sliding", "tumbling"
_SPANS = ("windowSize", "halfLifePeriod", "fetchInterval")
_START = "tumblingWindowStartTime"
#: By field of QueueHistory: the series of what queues hold, and the resource that nodes have as much of.
_SERIES = {
    "cpu": ("kai_queue_allocated_cpu_cores", "cpu"),
    "memory": ("kai_queue_allocated_memory_bytes", "memory"),
    "gpu": ("kai_queue_allocated_gpus", "nvidia_com_gpu"),
}


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """``source``: whom to ask, nobody where its type is empty. ``tumbling_from``: when the first of windows began that
    follow each other, seconds since the epoch; None: the window ends now. ``half_life_s``: after which a sample counts
    half; None: all count alike."""

    source: SourceSettings = field(default_factory=SourceSettings)
    window_s: float = _WINDOW_S
    half_life_s: float | None = None
    tumbling_from: float | None = None

    @classmethod
    def read(cls, section: Mapping[str, Any]) -> HistorySettings:
        """From the section; whom it cannot name it asks nobody."""
        if not section.get(_CLIENT) or any(True for _ in history_problems(section)):
            return cls()
        params = section.get(_PARAMS) or {}
        window, half_life, interval = (_seconds(params.get(key)) for key in _SPANS)
        source = SourceSettings(PROMETHEUS, section[_ADDRESS], max(interval or _INTERVAL_S, 1.0))
        tumbles = params.get("windowType") == TUMBLING
        return cls(source, window or _WINDOW_S, half_life, epoch_of(params[_START]) if tumbles else None)

    def span_s(self, now: float) -> float:
        """How far back from ``now`` the window reaches."""
        if self.tumbling_from is None:
            return self.window_s
        return max((now - self.tumbling_from) % self.window_s, _RESOLUTION_S)


def history_problems(section: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each part that cannot be used."""
    kind, params = section.get(_CLIENT, ""), section.get(_PARAMS) or {}
    if kind != PROMETHEUS:
        if section:
            yield f"{_CLIENT}: found {kind!r:.80}, wanted {PROMETHEUS}"
        return
    for problem in source_problems({"type": PROMETHEUS, "address": section.get(_ADDRESS, "")}):
        yield problem.replace("metrics: address", _ADDRESS)
    if not isinstance(params, Mapping):
        yield f"{_PARAMS}: found {type(params).__name__}, wanted a mapping"
        return
    yield from _window_problems(params)


def _window_problems(params: Mapping[str, Any]) -> Iterator[str]:
    for key in _SPANS:
        try:
            _seconds(params.get(key))
        except DurationError as error:
            yield f"{_PARAMS}: {key}: {error}"
    kind = params.get("windowType", SLIDING)
    if kind not in (SLIDING, TUMBLING):
        yield f"{_PARAMS}: windowType: found {kind!r:.80}, wanted {SLIDING} or {TUMBLING}"
    if kind == TUMBLING and epoch_of(str(params.get(_START, ""))[:64]) is None:
        yield f"{_PARAMS}: {_START}: found {params.get(_START)!r:.80}, wanted a text such as 2026-01-01T00:00:00Z"


def _seconds(text: Any) -> float | None:
    """Of ``90m``, ``7d`` or ``1w``; None for what is not said, or nothing. Raises: DurationError."""
    if text in (None, "", "0", 0):
        return None
    days = _SPAN.fullmatch(str(text))
    found = int(days[1]) * _DAY_S * (7 if days[2] == "w" else 1) if days else parse_duration(str(text))
    if not 0 <= found <= _WINDOW_MAX_S:
        raise DurationError(f"found {text!r:.80}, wanted 0 to {_WINDOW_MAX_S / _DAY_S:g}d")
    return found or None


async def queue_histories(
    settings: HistorySettings, ask: Ask, queues: Sequence[Queue], now: float
) -> list[QueueHistory]:
    """Two questions a resource for all queues. Who has no sample had nothing. Raises: SourceError."""
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
    """A series over the window, older samples counting less, by queue (empty where it has none)."""
    weight = f" * (0.5 ^ (({now:.0f} - time()) / {settings.half_life_s:.0f}))" if settings.half_life_s else ""
    window = f"{settings.span_s(now):.0f}s:{_RESOLUTION_S:.0f}s"
    query = f"sum_over_time(({series}{weight})[{window}])"
    samples = await prometheus_vector(ask, f"/api/v1/query?time={now:.0f}&query={quote(query, safe='')}")
    found: dict[str, float] = {}
    for labels, value in samples:
        if isfinite(value) and value >= 0:
            found[labels.get("queue_name", "")] = value
    return found
