"""Adapters of programs that measure nodes. An invalid answer is an error; a node without a usable value is left out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

import msgspec

from pumice.model.node import Node
from pumice.model.quantity import QuantityError, milli_value, whole_value
from pumice.model.usage import NodeUsage
from pumice.runtime.usage.settings import ADAPTOR, ELASTICSEARCH, METRICS_SERVER, PROMETHEUS, SourceSettings

#: Percent. Programs may count threads, so the load of a machine may exceed 100; larger values are invalid.
PERCENT_MAX = 10_000.0
_T = TypeVar("_T")


class SourceError(Exception):
    """Why there is nothing new, as a sentence."""


class Ask(Protocol):
    """A question: a GET of a path, or a POST of a body as JSON. Raises: SourceError."""

    def __call__(self, path: str, body: Any = None) -> Awaitable[bytes]: ...


class UsageSource(Protocol):
    """The port: percent of CPU and memory by node, for known ones among ``nodes``. Raises: SourceError."""

    def __call__(self, ask: Ask, nodes: Sequence[Node]) -> Awaitable[Percents]: ...


#: Percent of CPU and of memory, by node.
Percents = Mapping[str, tuple[float, float]]


def source_of(settings: SourceSettings) -> UsageSource:
    """Return the adapter that the settings name."""
    known: dict[str, UsageSource] = {
        PROMETHEUS: prometheus,
        ELASTICSEARCH: lambda ask, nodes: elasticsearch(ask, nodes, settings),
        ADAPTOR: custom_metrics,
        METRICS_SERVER: metrics_server,
    }
    return known[settings.type]


def usages(percents: Percents, nodes: Iterable[Node], now: float) -> list[NodeUsage]:
    """Return the measurements of these nodes as values."""
    return [NodeUsage(node.name, *percents[node.name], now) for node in nodes if node.name in percents]


def _decoded(raw: bytes, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(f"the answer cannot be read: {str(error)[:200]}") from None


def _both(cpu: Mapping[str, float], memory: Mapping[str, float]) -> Percents:
    """Return nodes for which both values exist and are valid."""
    return {
        name: (busy, memory[name])
        for name, busy in cpu.items()
        if name in memory and _can_be(busy) and _can_be(memory[name])
    }


def _can_be(percent: float) -> bool:
    return isfinite(percent) and 0 <= percent <= PERCENT_MAX


# -- Prometheus, with the series of node_exporter

_CPU = '100 * (1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[10m])))'
_MEMORY = "100 * avg_over_time((1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)[10m:30s])"


class _Sample(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Vector(msgspec.Struct, rename="camel"):
    result_type: str
    result: list[_Sample]


class _PrometheusAnswer(msgspec.Struct):
    status: str
    data: _Vector


async def prometheus(ask: Ask, nodes: Sequence[Node]) -> Percents:
    """Ask two questions for all nodes. ``instance``: a node's name or address, with or without a port."""
    names = _by_address(nodes)
    found = []
    for query in (_CPU, _MEMORY):
        samples = await prometheus_vector(ask, f"/api/v1/query?query={quote(query, safe='')}")
        found.append(dict(_named(samples, names)))
    return _both(*found)


async def prometheus_vector(ask: Ask, path: str) -> list[tuple[dict[str, str], float]]:
    """Return labels and value of each series in the answer to a question. Raises: SourceError."""
    answer = _decoded(await ask(path), _PrometheusAnswer)
    if answer.status != "success" or answer.data.result_type != "vector":
        raise SourceError(f"answered {answer.status[:40]!r} with a {answer.data.result_type[:40]!r}")
    found = []
    for sample in answer.data.result:
        with suppress(ValueError):
            found.append((sample.metric, float(sample.value[1])))
    return found


def _named(samples: Iterable[tuple[Mapping[str, str], float]], names: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    for labels, value in samples:
        instance = labels.get("instance", "")
        name = names.get(instance) or names.get(instance.rpartition(":")[0])
        if name is not None:
            yield name, value


def _by_address(nodes: Iterable[Node]) -> dict[str, str]:
    """Return nodes by their name and by their hostname."""
    found: dict[str, str] = {}
    for node in nodes:
        found.setdefault(node.labels.get("kubernetes.io/hostname", node.name), node.name)
    return found | {node.name: node.name for node in nodes}


# -- Elasticsearch, with the documents of Metricbeat


class _Average(msgspec.Struct):
    value: float | None = None


class _Bucket(msgspec.Struct):
    key: str
    cpu: _Average
    memory: _Average


class _Buckets(msgspec.Struct):
    buckets: list[_Bucket]


class _ByNode(msgspec.Struct):
    by_node: _Buckets


class _ElasticAnswer(msgspec.Struct):
    aggregations: _ByNode


async def elasticsearch(ask: Ask, nodes: Sequence[Node], settings: SourceSettings) -> Percents:
    """Ask one question for all nodes."""
    body = {
        "size": 0,
        "query": {"range": {"@timestamp": {"gte": "now-10m", "lt": "now"}}},
        "aggs": {
            "by_node": {
                "terms": {"field": settings.host_field, "size": max(2 * len(nodes), 10)},
                "aggs": {
                    "cpu": {"avg": {"field": "host.cpu.usage"}},
                    "memory": {"avg": {"field": "system.memory.actual.used.pct"}},
                },
            }
        },
    }
    answer = _decoded(await ask(f"/{quote(settings.index, safe='*,-')}/_search", body), _ElasticAnswer)
    names, cpu, memory = _by_address(nodes), {}, {}
    for bucket in answer.aggregations.by_node.buckets:
        name = names.get(bucket.key)
        if name is not None and bucket.cpu.value is not None and bucket.memory.value is not None:
            cpu[name], memory[name] = 100.0 * bucket.cpu.value, 100.0 * bucket.memory.value
    return _both(cpu, memory)


# -- metrics of the API server: what an adaptor has of Prometheus, and what metrics-server has


class _Described(msgspec.Struct):
    name: str


class _MetricValue(msgspec.Struct, rename="camel"):
    described_object: _Described
    value: str


class _MetricValues(msgspec.Struct):
    items: list[_MetricValue]


async def custom_metrics(ask: Ask, nodes: Sequence[Node]) -> Percents:
    """Ask two questions for all nodes, about shares from 0 to 1."""
    found = []
    for metric in ("node_cpu_usage_avg", "node_memory_usage_avg"):
        answer = _decoded(await ask(f"/apis/custom.metrics.k8s.io/v1beta1/nodes/*/{metric}"), _MetricValues)
        milli = ((item.described_object.name, _amount(item.value, milli_value)) for item in answer.items)
        found.append({name: amount / 10.0 for name, amount in milli if amount is not None})
    return _both(*found)


class _Meta(msgspec.Struct):
    name: str


class _NodeMetrics(msgspec.Struct):
    metadata: _Meta
    usage: dict[str, str]


class _NodeMetricsList(msgspec.Struct):
    items: list[_NodeMetrics]


async def metrics_server(ask: Ask, nodes: Sequence[Node]) -> Percents:
    """Ask one question for all nodes. The values are means of the server's own window, which is shorter than ten
    minutes."""
    answer = _decoded(await ask("/apis/metrics.k8s.io/v1beta1/nodes"), _NodeMetricsList)
    by_name, cpu, memory = {node.name: node for node in nodes}, {}, {}
    for item in answer.items:
        node = by_name.get(item.metadata.name)
        busy, held = _amount(item.usage.get("cpu"), milli_value), _amount(item.usage.get("memory"), whole_value)
        if node is None or busy is None or held is None:
            continue
        if node.capacity.milli_cpu > 0 and node.capacity.memory > 0:
            cpu[node.name] = 100.0 * busy / node.capacity.milli_cpu
            memory[node.name] = 100.0 * held / node.capacity.memory
    return _both(cpu, memory)


def _amount(text: str | None, read: Callable[[str], int]) -> float | None:
    try:
        return None if text is None else float(read(text))
    except QuantityError:
        return None
