"""Read a plain table with a row for each job, by a mapping of its columns."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from msgspec import Struct

from pumice.model.pod import PodSpec
from pumice.model.queue import PriorityClass, Queue
from pumice.sim.traces.csv_columns import Columns, Source, chosen, described
from pumice.sim.traces.shapes import Shapes
from pumice.sim.traces.tables import (
    CPU_MILLI_MAX,
    DATE,
    GANG_PODS_MAX,
    GPUS_MAX,
    MEMORY_MAX,
    SECONDS_MAX,
    BadField,
    Row,
    Table,
    instant,
    plain_name,
)
from pumice.sim.traces.trace import Problems, Trace, TraceError
from pumice.sim.workloads.spans import SPAN_MAX_S
from pumice.sim.workloads.work import SimJob, SimTask

NAMESPACE = "csv"
_SAMPLE = 200
_NAME_MAX = 200
#: Seconds since the epoch, and up to a microsecond count of them.
_MOMENT_MAX = SECONDS_MAX * 1e6
_PRIORITY_MAX = 2_000_000_000


class Jobs(Struct, frozen=True):
    """The jobs of a table. Their arrivals count from the first of them."""

    jobs: list[SimJob]
    queues: list[Queue]
    priorities: list[PriorityClass]
    problems: Problems


def read(path: Path, given: str = "") -> Trace:
    """Read a table. ``given``: its columns, as ``--columns`` has them; what it does not say is suggested."""
    if path.is_dir():
        raise TraceError(f"{path}: found a folder, wanted a table with a header")
    table = Table(path, ())
    header = table.columns
    if len(header) == 1 and (mark := next((each for each in ";\t|" if each in header[0]), "")):
        raise TraceError(f"{path}: found {mark!r} between columns, wanted commas")
    if len(set(header)) < len(header) or not all(header):
        raise TraceError(f"{path}: found a column twice or without a name, wanted a header with names")
    try:
        columns = chosen(given, header, _first_rows(path))
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from None
    found = read_jobs(table, columns, NAMESPACE)
    return Trace(
        name=f"csv {path.stem}",
        jobs=found.jobs,
        queues=found.queues,
        priorities=found.priorities,
        notes=[
            f"{described(columns, header)}; other columns: --columns FIELD=COLUMN@UNIT,…",
            f"{len(found.jobs):,} jobs; arrivals count from the first; gpus, cpus and memory are those of each pod",
        ],
        problems=found.problems.listed(),
    )


def _first_rows(path: Path) -> list[list[str]]:
    """Return the first rows of a table, by which units are suggested."""
    table = Table(path, ())
    rows = islice(table.rows(), _SAMPLE)
    return [[row.text(name) for name in table.columns] for _, row in rows if not isinstance(row, BadField)]


def read_jobs(table: Table, columns: Columns, namespace: str, queue_prefix: str = "") -> Jobs:
    """Return the jobs of a table. Rows that cannot be used are counted, and the rest is read."""
    shapes, problems = Shapes(), Problems()

    def read_job(row: Row) -> tuple[str, _Job]:
        job = _job(_Fields(row, columns), shapes, row.line, queue_prefix)
        return job.name, job

    found = table.by_name(read_job, problems).values()
    first = min((job.submitted for job in found), default=0.0)
    jobs = [job.sim_job(namespace, job.submitted - first) for job in found]
    queues = dict.fromkeys(job.queue for job in jobs)
    priorities = {job.priority: f"priority-{job.priority}" for job in found if job.priority is not None}
    return Jobs(
        jobs,
        [Queue(name, uid=name) for name in queues],
        [PriorityClass(name, value) for value, name in sorted(priorities.items())],
        problems,
    )


class _Job(Struct, frozen=True):
    """A row that was read. ``submitted``: on the table's own clock."""

    name: str
    queue: str
    user: str
    submitted: float
    duration: float
    estimate: float | None
    pods: int
    minimum: int
    spec: PodSpec
    priority: int | None

    def sim_job(self, namespace: str, arrival: float) -> SimJob:
        return SimJob(
            namespace,
            self.name,
            self.queue,
            (SimTask("worker", self.pods, self.spec, self.minimum if self.minimum < self.pods else None),),
            self.minimum,
            self.duration,
            arrival,
            priority_class="" if self.priority is None else f"priority-{self.priority}",
            estimate_s=self.estimate,
            user=self.user,
        )


class _Fields:
    """Fields of one row, in what the simulator counts in."""

    def __init__(self, row: Row, columns: Columns) -> None:
        self._row, self._columns = row, columns

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def text(self, name: str) -> str:
        source = self._columns.get(name)
        return "" if source is None else self._row.text(source.column)

    def number(self, name: str, high: float) -> float:
        source: Source = self._columns[name]
        return self._row.number(source.column, 0.0, high / source.factor) * source.factor

    def whole(self, name: str, low: int, high: int) -> int:
        source = self._columns[name]
        if source.values is None:
            return self._row.whole(source.column, low, high)
        text = self._row.text(source.column)
        if text not in source.values:
            raise BadField(f"{source.column} is none of {', '.join(source.values)}", text)
        return source.values[text]

    def moment(self, name: str) -> float:
        source = self._columns[name]
        if source.unit == DATE:
            return instant(self._row.text(source.column), source.column)
        return self._row.number(source.column, -_MOMENT_MAX, _MOMENT_MAX) * source.factor

    def amount(self, name: str, pods: int, high: float) -> float:
        """Return what each pod asks for, 0 for nothing."""
        if name in self:
            return self.number(name, high) if self.text(name) else 0.0
        if f"total_{name}" not in self or not self.text(f"total_{name}"):
            return 0.0
        return self.number(f"total_{name}", high * pods) / pods


def _job(fields: _Fields, shapes: Shapes, line: int, queue_prefix: str) -> _Job:
    pods = fields.whole("pods", 1, GANG_PODS_MAX) if "pods" in fields else 1
    submitted, duration = _times(fields)
    queue = fields.text("queue")
    return _Job(
        name=plain_name(fields.text("job"), "job") if "job" in fields else f"job-{line:06d}",
        queue=plain_name(queue_prefix + queue, "queue") if queue else "default",
        user=fields.text("user")[:_NAME_MAX],
        submitted=submitted,
        duration=duration,
        estimate=fields.number("estimate", SPAN_MAX_S) or None if fields.text("estimate") else None,
        pods=pods,
        minimum=fields.whole("minimum", 1, pods) if "minimum" in fields else pods,
        spec=_spec(fields, shapes, pods),
        priority=fields.whole("priority", -_PRIORITY_MAX, _PRIORITY_MAX) if fields.text("priority") else None,
    )


def _times(fields: _Fields) -> tuple[float, float]:
    """Return (submitted, duration)."""
    submitted = fields.moment("submitted" if "submitted" in fields else "started")
    if "duration" in fields:
        return submitted, fields.number("duration", SPAN_MAX_S)
    began, ended = fields.moment("started") if "started" in fields else submitted, fields.moment("ended")
    if ended < began:
        raise BadField("a job ends before it starts", fields.text("ended"))
    if ended - began > SPAN_MAX_S:
        raise BadField("a job runs for more than 100 years", fields.text("ended"))
    return submitted, ended - began


def _spec(fields: _Fields, shapes: Shapes, pods: int) -> PodSpec:
    gpus = fields.amount("gpus", pods, GPUS_MAX)
    whole = float(int(gpus))
    part = round(gpus - whole, 3)
    if part and (whole or (pods > 1 and "total_gpus" in fields)):
        raise BadField("GPUs of a pod are neither a whole number nor a part of one", f"{gpus:g}")
    models = tuple(sorted({model for each in fields.text("gpu_model").split("|") if (model := each.strip())}))
    return shapes.pod(
        float(round(fields.amount("cpus", pods, CPU_MILLI_MAX))),
        float(round(fields.amount("memory", pods, MEMORY_MAX))),
        whole,
        models if gpus else (),
        part,
    )
