"""Every job for the page, one column for each property. A search finds any job; pictures show a time or a queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pumice.model.plain_words import first_names
from pumice.report.units import shortest
from pumice.sim.measures.history import History, JobRecord
from pumice.sim.run import Run

JOBS_MAX = 50_000
NODES_NAMED = 6
TEXT_MAX = 300


def cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 1] + "…"


def job_data(run: Run) -> dict[str, Any]:
    """Return columns by name. Times are seconds from the start, lengths are seconds, None for what did not happen.
    ``waits`` holds (since, number of the code) one after the other. ``never`` and ``nodes`` are by row."""
    history, never = run.history, {each.job: each.impossible for each in run.stuck if each.impossible is not None}
    records = kept(history.jobs, never)
    queues = sorted({record.queue for record in records})
    number = {queue: i for i, queue in enumerate(queues)}
    codes = {code: i for i, code in enumerate(run.wait_codes)}
    for record in records:
        for _, code in record.codes:
            codes.setdefault(code, len(codes))
    rows = {record.key: row for row, record in enumerate(records)}
    return {
        "left_out": len(history.jobs) - len(records),
        "queues": [cut(queue) for queue in queues],
        "codes": list(codes),
        "names": [cut(record.key) for record in records],
        "queue": [number[record.queue] for record in records],
        "pods": [record.size for record in records],
        "submitted": [_since(history, record.submitted) for record in records],
        "wait": [None if record.wait_s is None else _short(record.wait_s) for record in records],
        "run": [_run_time(record) for record in records],
        "ended": [int(record.ended is not None) for record in records],
        "restarts": {str(row): record.restarts for row, record in enumerate(records) if record.restarts},
        "waits": [_segments(history, record, codes) for record in records],
        "never": {str(rows[key]): cut(why or "") for key, why in never.items() if key in rows},
        "nodes": {
            str(rows[bar.record.key]): cut(first_names(bar.nodes, NODES_NAMED, bar.node_count))
            for bar in history.longest_jobs()
            if bar.record.key in rows
        },
    }


def kept(records: Sequence[JobRecord], never: Mapping[str, object]) -> list[JobRecord]:
    """Return at most JOBS_MAX jobs: those that can never run, and those that took longest from arrival to end."""
    if len(records) <= JOBS_MAX:
        return list(records)
    by_time = sorted(records, key=lambda record: (record.key not in never, -_completion_time(record), record.key))
    chosen = {id(record) for record in by_time[:JOBS_MAX]}
    return [record for record in records if id(record) in chosen]


def _completion_time(record: JobRecord) -> float:
    """Return the time from arrival to the end, infinite for a job that has not ended."""
    return float("inf") if record.completion_s is None else record.completion_s


def _run_time(record: JobRecord) -> float | None:
    """Return the time from the first start to the end, None for a job that runs or never ran."""
    if record.started is None or record.ended is None:
        return None
    return _short(record.ended - record.started)


def _segments(history: History, record: JobRecord, codes: Mapping[str, int]) -> list[float | int]:
    found: list[float | int] = []
    for since, code in record.codes:
        found += (_since(history, since), codes[code])
    return found


def _since(history: History, moment: float) -> float | int:
    return _short(moment - history.start)


def _short(seconds: float) -> float | int:
    """Return a number of seconds to the millisecond."""
    return shortest(seconds, 3)
