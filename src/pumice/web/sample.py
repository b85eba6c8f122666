"""What charts over time keep of one cycle: sums, which cost little, and so are made while no page is open too."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from pumice.answers.requests import waiting_amounts
from pumice.columns.counting import PENDING
from pumice.columns.dtypes import F64
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.trace import Fault
from pumice.model.decisions import Evict
from pumice.runtime.cycle_end import CycleEnd
from pumice.runtime.telemetry.cycle_metrics import searches_cut
from pumice.web.columns.queues import QueueColumns, QueuedJobs, queue_columns
from pumice.web.columns.units import PageUnits, ResourceColumn

#: Faults of one cycle that are kept: a plugin that fails for each of thousands of jobs says the same each time.
FAULTS_MAX = 20


class Amounts(Struct, frozen=True):
    """What a cycle left. ``waiting``: jobs that wait. ``offers``, ``used``, ``asked`` (resources,): what nodes offer,
    what pods hold of it, and what waiting pods ask for."""

    waiting: int
    resources: tuple[ResourceColumn, ...]
    offers: F64
    used: F64
    asked: F64
    queues: QueueColumns


class CycleSample(Struct, frozen=True):
    """One cycle. ``at``: seconds since the epoch. ``spans``: as in CycleEnd. ``cuts``: searches that actions ended."""

    number: int
    at: float
    spans: Mapping[str, float]
    bound: int
    evicted: int
    fault_count: int
    faults: tuple[Fault, ...]
    cuts: int
    amounts: Amounts


def sample_of(end: CycleEnd, amounts: Amounts) -> CycleSample:
    """Return what charts keep of a cycle that ended, with amounts of it, or of one shortly before."""
    faults = end.outcome.faults
    evicted = sum(isinstance(each, Evict) for each in end.decisions)
    return CycleSample(
        end.number,
        end.outcome.now,
        dict(end.spans),
        len(end.decisions) - evicted,
        evicted,
        len(faults),
        tuple(faults[:FAULTS_MAX]),
        searches_cut(end.outcome).total(),
        amounts,
    )


def amounts_of(outcome: Outcome) -> Amounts:
    """Return the amounts that a cycle left."""
    tables, rows = outcome.tables, outcome.live_jobs
    jobs, units = tables.jobs, PageUnits(tables.axis)
    asks = units(waiting_amounts(tables)[rows])
    waits = (jobs.counts[rows, PENDING] > 0) | (jobs.has_min[rows] & (jobs.size[rows] == 0))
    queued = QueuedJobs(jobs.queue[rows], units(jobs.allocated[rows]), asks, waits)
    return Amounts(
        int(np.count_nonzero(waits)),
        units.columns,
        units(np.asarray(tables.nodes.facts.total)),
        units(tables.nodes.used.sum(axis=0)),
        asks.sum(axis=0),
        queue_columns(outcome, units, queued),
    )
