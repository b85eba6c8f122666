"""What pages show of one cycle: plain columns, made once a cycle, which hold none of its tables.

Amounts are in units that people use: cores, GiB and whole devices; times are seconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from pumice.algorithms.groups import distinct
from pumice.answers.codes import Code, code_of
from pumice.answers.requests import waiting_amounts
from pumice.columns.counting import HELD, PENDING, PIPELINED
from pumice.columns.dtypes import F64, I8, I32, I64, AnyArray
from pumice.columns.tables import Tables
from pumice.framework.cycle.outcome import Outcome
from pumice.model.blockers import Blocker
from pumice.model.decisions import Decision, Evict
from pumice.reasons.blockers import Blockers
from pumice.reasons.shown_names import ShownNames
from pumice.runtime.job_states import CODES, EMPTY, NUMBER_OF, WAITS, states_of
from pumice.runtime.policy.check import described, warnings_of
from pumice.web.columns.devices import DeviceColumns, device_columns
from pumice.web.columns.nodes import NodeColumns, node_columns
from pumice.web.columns.pods import PodColumns, pod_columns
from pumice.web.columns.queues import QueueColumns, QueuedJobs, queue_columns
from pumice.web.columns.units import TEXT_MAX, PageUnits, ResourceColumn

#: A job is taken to have started with the first of so many of its pods: thousands need not be looked at.
_FIRST_PODS = 8


class JobColumns(Struct, frozen=True):
    """The jobs of a session (J). ``state``: into STATES. ``code``: into CODES, -1 for a job that does not wait.

    ``queue``: into the names of queues. ``asks``: what its waiting pods ask for together (J, resources); ``holds``:
    what its pods hold. ``sentences``: what is nearest in its way, "" for nothing. ``started``: when the first of its
    pods did, ``ends``: when it ends by its estimate; seconds since the epoch, NaN where that is not known. ``shown``:
    what people call each, ``names`` are keys.
    """

    names: Sequence[str]
    sentences: Sequence[str]
    queue: I32
    state: I8
    code: I8
    pods: I32
    running: I32
    waiting: I32
    minimum: I32
    priority: I64
    created: F64
    started: F64
    ends: F64
    asks: F64
    holds: F64
    shown: Sequence[str]

    def __len__(self) -> int:
        return len(self.names)


class WaitingKind(Struct, frozen=True):
    """Jobs that wait for the same kind of reason. ``asks``: of their waiting pods (resources,). ``shown``: what people
    call the example."""

    code: Code
    jobs: int
    asks: F64
    example: str
    sentence: str
    shown: str


class CycleSummary(Struct, frozen=True):
    """One cycle, as pages show it. ``reserves_from``: from when on the plugin reserve keeps room for the job that waits
    longest, None if it does not. ``policy``: as ``pumice check-conf --json`` prints it, with ``warnings``."""

    at: float
    digest: str
    language: str
    bound: int
    evicted: int
    faults: int
    resources: tuple[ResourceColumn, ...]
    jobs: JobColumns
    queues: QueueColumns
    nodes: NodeColumns
    devices: DeviceColumns
    pods: PodColumns
    waiting: tuple[WaitingKind, ...]
    reserves_from: float | None = None
    policy: Mapping[str, Any] = {}


def summarize(outcome: Outcome, decisions: Sequence[Decision], digest: str) -> CycleSummary:
    """Return what pages show of a cycle that ended."""
    tables = outcome.tables
    units = PageUnits(tables.axis)
    evicted = sum(isinstance(each, Evict) for each in decisions)
    jobs = _jobs(outcome, units)
    return CycleSummary(
        outcome.now,
        digest,
        outcome.policy.dialect.name,
        len(decisions) - evicted,
        evicted,
        len(outcome.faults),
        units.columns,
        jobs,
        queue_columns(outcome, units, QueuedJobs(jobs.queue, jobs.holds, jobs.asks, jobs.code >= 0)),
        node_columns(tables, units),
        device_columns(outcome),
        pod_columns(tables, outcome.live_jobs.tolist()),
        kinds_of(jobs),
        _reserves_from(outcome),
        described(outcome.policy) | {"warnings": warnings_of(outcome.policy)},
    )


def _reserves_from(outcome: Outcome) -> float | None:
    starts = outcome.figures.get("reserve.start", np.empty(0))
    known = starts[np.isfinite(starts)]
    return float(known.min()) if len(known) else None


# -- jobs --------------------------------------------------------------------------------------------------------------


def _jobs(outcome: Outcome, units: PageUnits) -> JobColumns:
    tables, rows = outcome.tables, outcome.live_jobs
    jobs = tables.jobs
    counts = jobs.counts[rows]
    held = counts @ HELD
    codes, sentences = _reasons(outcome, rows)
    states = states_of(counts, held)
    states[(states == EMPTY) & (codes >= 0)] = WAITS
    started, shown = _started(tables, rows, held), ShownNames(tables)
    return JobColumns(
        [jobs.uids[row] for row in rows.tolist()],
        sentences,
        jobs.queue[rows].copy(),
        states,
        codes,
        jobs.size[rows].copy(),
        held.astype(np.int32),
        (counts[:, PENDING] + counts[:, PIPELINED]).astype(np.int32),
        jobs.min_available[rows].copy(),
        jobs.priority[rows].copy(),
        jobs.creation[rows].copy(),
        started,
        started + np.where(jobs.estimate_s[rows] > 0, jobs.estimate_s[rows], np.nan),
        units(waiting_amounts(tables)[rows]),
        units(jobs.allocated[rows]),
        [shown.of(jobs.uids[row]) for row in rows.tolist()],
    )


def _started(tables: Tables, rows: AnyArray, held: AnyArray) -> F64:
    """Return when jobs that hold nodes started. Shape (rows,)."""
    found, pods = np.full(len(rows), np.nan), tables.tasks.pods
    for place in (held > 0).nonzero()[0].tolist():
        first = tables.jobs.tasks[rows[place]][:_FIRST_PODS].tolist()
        found[place] = min((pods[row].start_time or np.nan for row in first), default=np.nan)
    return found


def _reasons(outcome: Outcome, rows: AnyArray) -> tuple[I8, list[str]]:
    """Return the code of what is nearest in the way of each job, and its sentence."""
    found, shown = Blockers(outcome), ShownNames(outcome.tables)
    place = {row: i for i, row in enumerate(rows.tolist())}
    codes, sentences = np.full(len(rows), -1, dtype=np.int8), [""] * len(rows)
    # Thousands of jobs that wait share a few blockers, and a sentence is long to make.
    said: dict[Blocker, tuple[int, str]] = {}
    for row in found.waiting.tolist():
        nearest = found.nearest(row)
        if nearest not in said:
            said[nearest] = NUMBER_OF[code_of(nearest)], shown.sentence(nearest)[:TEXT_MAX]
        codes[place[row]], sentences[place[row]] = said[nearest]
    return codes, sentences


def kinds_of(jobs: JobColumns) -> tuple[WaitingKind, ...]:
    """Return the jobs that wait, by the kind of reason."""
    found = []
    for number in distinct(jobs.code[jobs.code >= 0]).tolist():
        rows = (jobs.code == number).nonzero()[0]
        first = int(rows[0])
        asks = jobs.asks[rows].sum(axis=0)
        found.append(
            WaitingKind(CODES[number], len(rows), asks, jobs.names[first], jobs.sentences[first], jobs.shown[first])
        )
    # The kind that keeps most devices waiting first, then cores, then jobs.
    found.sort(key=lambda kind: (*(-kind.asks[2:]).tolist(), -kind.asks[0], -kind.jobs, kind.code))
    return tuple(found)
