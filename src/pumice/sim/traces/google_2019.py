"""Read instance events of Google's cells of 2019 (Borg), as exported from BigQuery: JSON lines, or a flat CSV table.

Source: ``InstanceEvent`` of clusterdata_trace_format_v3.proto (Tirmazi et al., EuroSys'20). Amounts are parts of the
largest machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from pumice.model.queue import PriorityClass, Queue
from pumice.sim.traces.shapes import GI, Shapes
from pumice.sim.traces.tables import BadField, Table, lines, number, place, whole
from pumice.sim.traces.trace import Problems, Trace, TraceError
from pumice.sim.workloads.spans import SPAN_MAX_S
from pumice.sim.workloads.work import FOREVER, SimJob, SimTask

#: What amounts of 1.0 are taken for. The published ones have no unit.
CPU, MEMORY_GI = 64, 256
COLUMNS = ("time", "type", "collection_id", "collection_type", "priority", "alloc_collection_id", "instance_index",
           "resource_request.cpus", "resource_request.memory")  # fmt: skip
TYPES = ("SUBMIT", "QUEUE", "ENABLE", "SCHEDULE", "EVICT", "FAIL", "FINISH", "KILL", "LOST", "UPDATE_PENDING",
         "UPDATE_RUNNING")  # fmt: skip
_SUBMIT, _SCHEDULE, _EVICT = 0, 3, 4
_ENDS = (5, 6, 7, 8)
_US = 1e-6
_ALLOC_SET = ("1", "ALLOC_SET")


class _Event(Struct, frozen=True):
    time: float
    type: int
    priority: int
    cpus: float
    memory: float


def read(path: Path) -> Trace:
    """Read a file of instance events. An instance becomes a job of one pod, since tasks of a collection do not wait for
    each other; it runs as long as it ran in all, with evictions left out."""
    if path.is_dir():
        raise TraceError(f"{path}: found a folder, wanted one file of instance events")
    problems, events = Problems(), dict[str, list[_Event]]()
    in_allocs = 0
    for line, fields in _rows(path):
        try:
            if isinstance(fields, BadField):
                raise fields
            if fields.get("collection_type") in _ALLOC_SET:
                raise BadField("instances of alloc sets, which only reserve room")
            name, event = _event(fields)
            in_allocs += event.type == _SUBMIT and fields.get("alloc_collection_id", "") not in ("", "0")
            events.setdefault(name, []).append(event)
        except BadField as error:
            problems.add(str(path), error.reason, place(line, error))
    shapes, jobs = Shapes(), list[SimJob]()
    for name, listed in events.items():
        try:
            jobs.append(_job(name, sorted(listed, key=lambda event: (event.time, event.type)), shapes))
        except BadField as error:
            problems.add(str(path), error.reason, name)
    values = sorted({int(job.priority_class.rpartition("-")[2]) for job in jobs})
    return Trace(
        name="google-2019",
        jobs=jobs,
        queues=[Queue("default", uid="default")],
        priorities=[PriorityClass(f"priority-{value}", value) for value in values],
        notes=[
            f"{len(jobs):,} instances, each a job of one pod; an amount of 1.0 is {CPU} cores or {MEMORY_GI} GiB",
            f"cannot be mapped: constraints, alloc sets ({in_allocs:,} tasks ran in one), scheduling classes",
            "machines are in another table: use --nodes",
        ],
        problems=problems.listed(),
    )


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str] | BadField]]:
    """Yield (line, fields by name), with a point in names of nested fields."""
    first = next((text for _, text in lines(path)), "")
    if first.lstrip().startswith("{"):
        yield from _json_rows(path)
        return
    table = Table(path, ())
    # BigQuery flattens nested fields with an underscore.
    names = {column: column.replace("resource_request_", "resource_request.") for column in table.columns}
    if missing := sorted(set(COLUMNS) - set(names.values())):
        raise TraceError(f"{path}: missing columns {', '.join(missing)}; found {', '.join(table.columns[:20])}")
    for line, row in table.rows():
        yield line, row if isinstance(row, BadField) else {new: row.text(old) for old, new in names.items()}


def _json_rows(path: Path) -> Iterator[tuple[int, dict[str, str] | BadField]]:
    for line, text in lines(path):
        if not text.strip():
            continue
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            yield line, _flat(found)
        else:
            yield line, BadField("a line is no JSON object", text)


def _flat(found: dict[str, Any]) -> dict[str, str]:
    nested = found.pop("resource_request", None)
    flat = {name: "" if value is None else str(value) for name, value in found.items()}
    if isinstance(nested, dict):
        flat |= {f"resource_request.{name}": str(value) for name, value in nested.items()}
    return flat


def _event(fields: dict[str, str]) -> tuple[str, _Event]:
    def get(name: str) -> str:
        return fields.get(name, "")

    collection = whole(get("collection_id"), "collection_id", 0)
    name = f"c{collection}-{whole(get('instance_index'), 'instance_index', 0)}"
    kind = get("type")
    return name, _Event(
        number(get("time"), "time", 0, 2**63) * _US,  # later than all others: the end of the trace
        TYPES.index(kind) if kind in TYPES else whole(kind, "type", 0, len(TYPES) - 1),
        whole(get("priority") or "0", "priority", 0, 10_000),
        number(get("resource_request.cpus") or "0", "resource_request.cpus", 0, 1),
        number(get("resource_request.memory") or "0", "resource_request.memory", 0, 1),
    )


def _job(name: str, events: list[_Event], shapes: Shapes) -> SimJob:
    submitted = next((event.time for event in events if event.type == _SUBMIT), events[0].time)
    ran, since, ended = 0.0, None, False
    for event in events:
        if event.type == _SCHEDULE:
            since = event.time
        elif event.type in (_EVICT, *_ENDS):
            ran += event.time - since if since is not None else 0.0
            since, ended = None, event.type in _ENDS
    if since is None and not ran:
        raise BadField("an instance never ran")
    if submitted > SPAN_MAX_S or ran > SPAN_MAX_S:
        raise BadField("a time is above 100 years")
    last = events[-1]
    spec = shapes.pod(float(round(last.cpus * CPU * 1000)), float(round(last.memory * MEMORY_GI * GI)))
    return SimJob(
        "google", name, "default", (SimTask("task", 1, spec),), 1, ran if ended else FOREVER, submitted,
        priority_class=f"priority-{last.priority}",
    )  # fmt: skip
