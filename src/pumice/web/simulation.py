"""The results of a simulation, as ``pumice simulate --json`` prints them, for a page."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

#: Larger files are no results of a simulation: a thousand waiting jobs and all queues take a few MB.
BYTES_MAX = 64 << 20
#: Rows of a table that a page shows.
ROWS_MAX = 200


class _Spread(Struct):
    count: int
    mean: float
    max: float
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None


class _Use(Struct):
    mean: float
    peak: float
    capacity: float
    unit: str
    while_waiting: float | None = None


class _Queue(Struct):
    jobs: int
    completed: int
    running: int
    pending: int
    share: float
    deserved: float
    wait_s: _Spread | None = None
    completion_s: _Spread | None = None


class _Waiting(Struct):
    job: str
    queue: str
    pods: int
    why: str
    code: str = ""
    waited_s: float | None = None


class _Reason(Struct):
    code: str
    meaning: str
    job_s: float
    share: float


class _Never(Struct):
    job: str
    queue: str
    pods: int
    why: str


class _Fairness(Struct):
    jain: float | None = None
    of: str = ""


#: Field -> what it must be. Those that are something else are named, and the others are shown.
_FIELDS: dict[str, Any] = {
    "digest": str,
    "ending": str,
    "conf": str,
    "sources": list[str],
    "nodes": int,
    "jobs": int,
    "completed": int,
    "pending": int,
    "running": int,
    "cycles": int,
    "binds": int,
    "evictions": int,
    "simulated_s": float,
    "wall_s": float,
    "utilisation": dict[str, _Use],
    "wait_s": _Spread | None,
    "completion_s": _Spread | None,
    "queues": dict[str, _Queue],
    "fairness": _Fairness,
    "waiting": list[_Waiting],
    "waits_by_code": list[_Reason],
    "never_run": list[_Never],
    "faults": dict[str, int],
}
_SIGNS = ("simulated_s", "waits_by_code", "digest")
_LISTS = ("waiting", "waits_by_code", "never_run")


class Results(Struct, frozen=True):
    """``data``: by field, None for one that is missing or unreadable. ``notes``: what could not be read, by line."""

    data: dict[str, Any]
    notes: list[str]


def results_in(content: bytes) -> Results | None:
    """Return the results in a JSON document, None if it has none."""
    if len(content) > BYTES_MAX:
        return None
    try:
        found = msgspec.json.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(found, dict) or sum(name in found for name in _SIGNS) < 2:
        return None
    data, notes = dict[str, Any](), list[str]()
    for name, wanted in _FIELDS.items():
        data[name] = None
        try:
            data[name] = msgspec.to_builtins(msgspec.convert(found[name], wanted))
        except KeyError:
            notes.append(f"{name} is missing")
        except msgspec.ValidationError as error:
            notes.append(f"{name} cannot be read: {error}"[:300])
    for name in _LISTS:
        if data[name] is not None and len(data[name]) > ROWS_MAX:
            notes.append(f"of {name} the first {ROWS_MAX} of {len(data[name]):,} are shown")
            data[name] = data[name][:ROWS_MAX]
    return Results(data, notes)
