"""Volcano's metrics, with the same names, types, labels and buckets, so that dashboards and alerts continue to work.

A client library adds ``_total`` and ``_created`` to counters, and Volcano's names follow neither rule. So values are
kept here, returned as raw metric families, and written by ``text``.

Source: Volcano's metrics.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from msgspec import Struct
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString as _untyped_go_float

PREFIX = "volcano_"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[str, ...]

_go_float: Callable[[float], str] = _untyped_go_float


class Family(Struct, frozen=True):
    """A metric. ``name`` is without the prefix. ``buckets`` (first, last, count) are exponential."""

    name: str
    type: str
    help: str
    labels: Labels = ()
    buckets: tuple[float, float, int] | None = None
    prefix: str = PREFIX


_JOB = ("job_name", "queue", "job_namespace")
_E2E, _JOBS, _PLUGIN = (1, 5000, 20), (100, 120_000, 30), (0.1, 100, 15)
_ACTION, _TASK, _STAGE = (1, 2000, 20), (50, 60_000, 30), (0.1, 500, 20)


def _queue_families() -> Iterator[Family]:
    kinds = {
        "allocated": "Resources that the jobs of the queue hold",
        "request": "Resources that the jobs of the queue hold and wait for",
        "deserved": "Resources that the queue deserves",
        "capacity": "The limit in the queue's spec",
        "real_capacity": "Limit of the queue given by the cluster and the guarantees of other queues",
        "inqueue": "Resources that admitted jobs of the queue wait for",
    }
    for kind, about in kinds.items():
        yield Family(f"queue_{kind}_milli_cpu", "gauge", f"{about}: cpu, in thousandths", ("queue_name",))
        yield Family(f"queue_{kind}_memory_bytes", "gauge", f"{about}: memory", ("queue_name",))
        labels = ("queue_name", "resource")
        yield Family(f"queue_{kind}_scalar_resources", "gauge", f"{about}: other resources", labels)


FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family("e2e_scheduling_latency_milliseconds", "histogram", "Time of a scheduling cycle", (), _E2E),
        Family("open_session_duration_milliseconds", "histogram", "Time to open a session", (), _E2E),
        Family(
            "e2e_job_scheduling_latency_milliseconds", "histogram", "Time from a job's creation to a bind", (), _JOBS
        ),
        Family("e2e_job_scheduling_duration", "gauge", "Milliseconds from a job's creation to its last bind", _JOB),
        Family("e2e_job_scheduling_start_time", "gauge", "Creation time of the job, in seconds", _JOB),
        Family("e2e_job_scheduling_last_time", "gauge", "Time of the last bind of the job, in seconds", _JOB),
        Family(
            "plugin_scheduling_latency_milliseconds", "histogram", "Time in a plugin", ("plugin", "OnSession"), _PLUGIN
        ),
        Family("action_scheduling_latency_milliseconds", "histogram", "Time of an action", ("action",), _ACTION),
        Family(
            "task_scheduling_latency_milliseconds", "histogram", "Time to schedule and bind a pod", ("stage",), _TASK
        ),
        Family("scheduling_stage_duration_milliseconds", "histogram", "Time of a stage", ("stage",), _STAGE),
        Family("schedule_attempts_total", "counter", "Attempts to schedule a pod, by result", ("result",)),
        Family("pod_preemption_victims", "gauge", "Victims of the last preemption"),
        Family("total_preemption_attempts", "counter", "Attempted preemptions"),
        Family("eviction_transactions_total", "counter", "Committed statements that evict", ("action",)),
        Family("unschedule_task_count", "gauge", "Pods missing to the minimum of a gang", ("job_id",)),
        Family("unschedule_job_count", "gauge", "Gangs below their minimum"),
        Family("job_share", "gauge", "Dominant share of a job", ("job_ns", "job_id")),
        Family("job_retry_counts", "counter", "Cycles at whose end the gang was below its minimum", ("job_id",)),
        *_queue_families(),
        Family("queue_share", "gauge", "Share of a queue: allocated divided by deserved", ("queue_name",)),
        Family("queue_weight", "gauge", "Weight of a queue", ("queue_name",)),
        Family("queue_overused", "gauge", "1 if a queue has all that it deserves", ("queue_name",)),
        # PodGroups of a queue by phase, as Volcano's queue controller reports them.
        *(
            Family(f"queue_pod_group_{phase}_count", "gauge", f"PodGroups of a queue that are {phase}", ("queue_name",))
            for phase in ("pending", "running", "unknown", "inqueue", "completed")
        ),
        Family("namespace_share", "gauge", "Share of a namespace", ("namespace_name",)),
        Family("namespace_weight", "gauge", "Weight of a namespace", ("namespace_name",)),
        Family("namespace_weighted_share", "gauge", "Share of a namespace divided by its weight", ("namespace_name",)),
        Family("goroutines", "gauge", "Operations in progress, by operation", ("operation",)),
    )
}

#: What Volcano does not have: searches that end at a bound, and reasons by codes that do not change.
OWN_FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family(
            "searches_cut_total",
            "counter",
            "Jobs whose search an action ended at its bound or did not begin",
            ("action",),
            prefix="pumice_",
        ),
        Family("waiting_jobs", "gauge", "Jobs that wait, by the code of the reason", ("code",), prefix="pumice_"),
        Family("waiting_pods", "gauge", "Pods of such jobs that wait", ("code",), prefix="pumice_"),
        Family("waiting_gpus", "gauge", "GPUs that such pods ask for", ("code",), prefix="pumice_"),
    )
}


def exponential(first: float, last: float, count: int) -> tuple[float, ...]:
    """Return upper bounds of buckets, each larger by the same factor. Source: Prometheus
    ``ExponentialBucketsRange``."""
    growth = math.pow(last / first, 1.0 / (count - 1))
    return tuple(first * math.pow(growth, i) for i in range(count))


@dataclass(slots=True)
class _Histogram:
    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)  # by bucket, not cumulative; the last is +Inf
    sum: float = 0.0

    def observe(self, value: float, times: int) -> None:
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times


class Metrics(Collector):
    """All of Volcano's metrics, and ``more``. A series appears with its first value, and is removed by ``forget`` or
    ``replace``.

    Names are without the prefix; those of ``more`` are its keys. Callable from several threads.
    """

    def __init__(self, more: Mapping[str, Family] = MappingProxyType({})) -> None:
        self._lock = threading.Lock()
        self._families = {**FAMILIES, **OWN_FAMILIES, **more}
        self._values: dict[str, dict[Labels, float]] = {}
        self._histograms: dict[str, dict[Labels, _Histogram]] = {}
        for name, family in self._families.items():
            if family.buckets is None:
                self._values[name] = {} if family.labels else {(): 0.0}
            else:
                self._histograms[name] = {}
                if not family.labels:
                    self._histogram(name, ())

    # -- writing

    def put(self, name: str, value: float, *labels: str) -> None:
        """Set a gauge."""
        with self._lock:
            self._values[name][labels] = value

    def add(self, name: str, amount: float = 1.0, *labels: str) -> None:
        """Increase a counter."""
        with self._lock:
            series = self._values[name]
            series[labels] = series.get(labels, 0.0) + amount

    def observe(self, name: str, value: float, *labels: str, times: int = 1) -> None:
        """Add an observation to a histogram, or as many equal ones."""
        with self._lock:
            self._histogram(name, labels).observe(value, times)

    def replace(self, name: str, series: Mapping[Labels, float]) -> None:
        """Set all series of a gauge, and remove others."""
        with self._lock:
            self._values[name] = dict(series)

    def forget(self, name: str, *labels: str) -> None:
        """Remove a series, if it exists."""
        with self._lock:
            self._values[name].pop(labels, None)

    def keep(self, name: str, labels: Iterable[Labels]) -> None:
        """Remove all series but these."""
        wanted = set(labels)
        with self._lock:
            self._values[name] = {key: value for key, value in self._values[name].items() if key in wanted}

    def _histogram(self, name: str, labels: Labels) -> _Histogram:
        series = self._histograms[name]
        found = series.get(labels)
        if found is None:
            buckets = self._families[name].buckets
            assert buckets is not None, name
            bounds = exponential(*buckets)
            found = series[labels] = _Histogram(bounds, [0] * (len(bounds) + 1))
        return found

    # -- reading

    def value(self, name: str, *labels: str) -> float | None:
        """Return the value of a gauge or counter, None if there is no such series."""
        with self._lock:
            return self._values[name].get(labels)

    def series(self, name: str) -> list[Labels]:
        """Return the labels of the series of a gauge or counter."""
        with self._lock:
            return list(self._values[name])

    def collect(self) -> Iterator[Metric]:
        """Yield raw families in the order of the table, without those that have no series, as Volcano's."""
        for name, family in self._families.items():
            metric = Metric(family.prefix + family.name, family.help, family.type)
            with self._lock:
                if family.buckets is None:
                    for labels, value in self._values[name].items():
                        metric.add_sample(metric.name, dict(zip(family.labels, labels, strict=True)), value)
                else:
                    for labels, histogram in self._histograms[name].items():
                        _add_histogram(metric, dict(zip(family.labels, labels, strict=True)), histogram)
            if metric.samples:
                yield metric

    def text(self, others: Iterable[Metric] = ()) -> bytes:
        """Return the page that Prometheus reads, with families of other collectors after ours."""
        return "".join(_lines(metric) for part in (self.collect(), others) for metric in part).encode()


def _add_histogram(metric: Metric, labels: dict[str, str], histogram: _Histogram) -> None:
    total = 0
    for bound, count in zip((*histogram.bounds, math.inf), histogram.counts, strict=True):
        total += count
        metric.add_sample(f"{metric.name}_bucket", {**labels, "le": _bound(bound)}, total)
    metric.add_sample(f"{metric.name}_sum", labels, histogram.sum)
    metric.add_sample(f"{metric.name}_count", labels, total)


def _bound(bound: float) -> str:
    """Return a bucket's bound as Go writes it: 5, not 5.0, which would be another label."""
    return _go_float(bound).removesuffix(".0")


def _lines(metric: Metric) -> str:
    """Return one family. Creation times are left out; a counter of a client library gets the name of its samples."""
    samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
    name = metric.name
    if metric.type == "counter" and samples and all(sample.name == f"{name}_total" for sample in samples):
        name += "_total"
    kind = "untyped" if metric.type == "unknown" else metric.type
    about = metric.documentation.replace("\\", r"\\").replace("\n", r"\n")
    lines = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
    for sample in samples:
        labels = ",".join(f'{key}="{_escaped(value)}"' for key, value in sample.labels.items())
        lines.append(f"{sample.name}{{{labels}}} " if labels else f"{sample.name} ")
        lines[-1] += _go_float(sample.value)
    return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    """Return a label's value on one line. A lone surrogate, which no page can contain, becomes a question mark."""
    plain = value.encode("utf-8", "replace").decode()
    return plain.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
