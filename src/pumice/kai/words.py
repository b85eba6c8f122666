"""Render blockers of jobs as messages with numbers.

Source: KAI fit errors, for which messages there are and which numbers they contain.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from pumice.columns.counting import PENDING
from pumice.columns.dtypes import EPS, F64
from pumice.columns.nodes import FUTURE
from pumice.columns.queues import SHARED
from pumice.columns.tables import Tables
from pumice.kai.amounts import shared
from pumice.kai.engine.parts import amount_of
from pumice.kai.engine.tree_order import QueueTree
from pumice.kai.reasons import reason_of
from pumice.kai.usage import amounts_by_queue, summed_up
from pumice.model.blockers import (
    CAPACITY,
    CIRCLE,
    HAS_CHILDREN,
    LIMIT,
    NO_PARENT,
    QUOTA,
    BadQueue,
    Blocker,
    Delayed,
    Domain,
    GangPartial,
    NoCase,
    NoNode,
    NoRoom,
    NoVictims,
    QueueLimit,
    Refused,
    RoomReserved,
    SearchCut,
    StartReserved,
)
from pumice.model.instants import stamp

#: Unit of CPU, memory and GPUs in messages, and the divisor of amounts.
_UNITS = {"cpu": ("CPU cores", 1e3), "memory": ("GB of memory", 1e9), "gpu": ("GPUs", 1e3)}


class Explanation(NamedTuple):
    """A reason code for programs, and a message for people."""

    reason: str
    message: str


class Waits(NamedTuple):
    """Why a job waits. ``also``: searches that ended at a limit, after which ``why`` is not certain, and a delay before
    anything is evicted for the job. ``partial``: how many pods of a gang fit before one of which ``why`` is said."""

    why: Blocker
    also: tuple[Blocker, ...] = ()
    partial: GangPartial | None = None


def waits_for(why: Blocker, also: tuple[Blocker, ...] = ()) -> Waits:
    """Return why a job waits, by a finding of the trace."""
    if isinstance(why, GangPartial) and why.first is not None:
        return Waits(why.first, also, why)
    return Waits(why, also)


def text_of(why: Blocker) -> str:
    """Return a short text for a blocker."""
    match why:
        case BadQueue(queue, problem, other):
            return f"queue {queue} {_PROBLEMS[problem]}{other}"
        case QueueLimit():
            return why.detail or (f"queue {why.queue} may take no more" if why.kind == CAPACITY else reason_of(why))
        case Refused():
            return why.detail
        case Delayed():
            return _of_delay(why)
        case RoomReserved():
            return f"room is reserved for {why.holder} from {stamp(why.start)}"
        case StartReserved():
            return "room is reserved for it" + (f" from {stamp(why.start)}" if why.start is not None else " no longer")
    return _TEXTS[type(why)]


_PROBLEMS = {
    HAS_CHILDREN: "has queues below it: only those that have none run workloads",
    NO_PARENT: "has a parent that is not there: ",
    CIRCLE: "has parents that go round in a circle",
}
_TEXTS: dict[type[Blocker], str] = {
    NoRoom: "no node has room",
    NoNode: "no node takes it",
    Domain: "no domain of its topology takes it",
    NoCase: "has no case",
    NoVictims: "no running pods can be evicted for it",
    SearchCut: "",
}


def _of_delay(why: Delayed) -> str:
    """Return KAI's message for a preemption delay."""
    minutes, seconds = divmod(why.delay, 60.0)
    hours, minutes = divmod(minutes, 60.0)
    window = f"{hours:.0f}h" * (hours > 0) + f"{minutes:.0f}m" * (hours + minutes > 0) + f"{seconds:g}s"
    rule = f"Workload is within its preemption delay window ({window})"
    return f"{rule} and may not trigger evictions before {stamp(why.until)}"


class _Finding(NamedTuple):
    """What equal jobs share: the reason, and the message. The name of a pod of the job belongs between ``message`` and
    ``after_pod`` if that is not empty."""

    reason: str
    message: str
    after_pod: str = ""


class Words:
    """Messages of the waiting jobs of one session. Equal jobs share what was found, which is rendered once; a message
    with the name of a pod is made for each job."""

    def __init__(self, tables: Tables, tree: QueueTree) -> None:
        self._tables, self._tree = tables, tree
        self._rendered: dict[Hashable, _Finding] = {}
        self._sums: tuple[F64, F64] | None = None
        jobs = tables.jobs
        # All that the numbers of a message depend on, for jobs of which all pods wait. Of others, different pods may
        # wait although equally many do.
        columns = (jobs.signature, jobs.queue, jobs.preemptible)
        self._class_keys: list[tuple[int, ...]] = list(zip(*(column.tolist() for column in columns), strict=True))
        all_wait = jobs.counts[:, PENDING] == jobs.counts.sum(axis=1)
        self._is_shared: list[bool] = ((jobs.signature >= 0) & all_wait).tolist()

    def of(self, job: int, why: Waits) -> Explanation:
        """Return the reason and the message for a waiting job."""
        key = (self._class_keys[job], why) if self._is_shared[job] else (job, why)
        found = self._rendered.get(key)
        if found is None:
            found = self._rendered[key] = self._find(job, why)
        pod = self._first_waiting(job) if found.after_pod else ""
        return Explanation(found.reason, f"{found.message}{pod}{found.after_pod}")

    def _find(self, job: int, why: Waits) -> _Finding:
        """Return what is found for a job, with the searches that were cut off and its delay."""
        found, more = self._render(job, why), ""
        cuts = [each for each in why.also if isinstance(each, SearchCut)]
        if cuts:
            cut = ", ".join(f"{each.action} was cut off after {each.steps:,} steps" for each in cuts)
            more = f" Not all was tried: {cut}."
        delayed = next((each for each in why.also if isinstance(each, Delayed)), None)
        if delayed is not None:
            more += f" {_of_delay(delayed)}."
        last = "after_pod" if found.after_pod else "message"
        return found._replace(**{last: getattr(found, last) + more})

    def _first_waiting(self, job: int) -> str:
        """Return the key of the first pod of a job that waits."""
        tasks = self._tables.tasks
        rows = self._tables.jobs.tasks[job]
        return tasks.pods[int(rows[np.argmax(tasks.status[rows] == 0)])].key

    def _render(self, job: int, waits: Waits) -> _Finding:
        """Return the reason and the message for a blocker, without searches that were cut."""
        why, reason = waits.why, reason_of(waits.why)
        if isinstance(why, BadQueue | Delayed):
            return _Finding(reason, text_of(why))
        if isinstance(why, QueueLimit) and why.kind in (LIMIT, QUOTA):
            return _Finding(reason, self._of_quota(job, why.kind))
        return _Finding(reason, *self._of_nodes(job, why, waits.partial))

    # -- queues --------------------------------------------------------------------------------------------------------

    def _of_quota(self, job: int, kind: str) -> str:
        """Return a message with the first queue on the path to the root that would exceed its limit or quota."""
        tables = self._tables
        queues, names = tables.queues, tables.queues.names
        asked = shared(tables, amount_of(tables, self._missing(job)))
        allocated, held_fast = self._sums_up()
        held, most = (allocated, queues.limit) if kind == LIMIT else (held_fast, queues.quota)
        # Upwards from the leaf, as KAI checks quotas: users can change the queue that is nearest to their job.
        for queue in self._tree.path[int(tables.jobs.queue[job])]:
            for i, name in enumerate(SHARED):
                if asked[i] and held[queue, i] + asked[i] > most[queue, i]:
                    return _quota_text(names[queue], name, most[queue, i], held[queue, i], asked[i], kind)
        # At the end of the session, earlier placements may have been undone; then no queue is over its limit any more.
        return f"queue {names[int(tables.jobs.queue[job])]} had no more to give when the workload was tried"

    def _sums_up(self) -> tuple[F64, F64]:
        """Return what queues hold including queues below them, in all and non-preemptible; computed once per
        session."""
        if self._sums is None:
            own = amounts_by_queue(self._tables)[:2]
            self._sums = summed_up(self._tree, own[0]), summed_up(self._tree, own[1])
        return self._sums

    def _missing(self, job: int, pod_set: str = "") -> list[int]:
        """Return waiting tasks of a job, as many as it lacks to its minimum, at least one. ``pod_set``: all that wait
        in the sub-group of this name, if any do."""
        tables = self._tables
        start = len(tables.jobs.uids[job]) + 1
        inside = (tables.subs.tasks[sub] for sub in tables.jobs.subs[job] if tables.subs.uids[sub][start:] == pod_set)
        own = [row for rows in inside if pod_set for row in rows.tolist() if tables.tasks.status[row] == PENDING]
        # A later action may have placed the sub-group that found no room.
        if own:
            return own
        rows = [row for row in tables.jobs.tasks[job].tolist() if tables.tasks.status[row] == 0]
        # The job could start with these, so room for more of its pods is not what it waits for.
        lacks = max(int(tables.jobs.min_available[job]) - int(tables.jobs.counts[job, 1:6].sum()), 1)
        return rows[:lacks]

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _of_nodes(self, job: int, why: Blocker, partial: GangPartial | None) -> tuple[str, str]:
        """Return a message with the number of nodes per resource that is short for the job's first task, and why the
        other nodes were not chosen: what comes before the key of the task's pod, and what comes after it; "" for the
        latter if no pod is named. Source: KAI newFailedTaskAllocationError."""
        tables, rows = self._tables, self._missing(job, partial.role if partial is not None else "")
        request, free = tables.classes.req[tables.tasks.cls[rows[0]]], tables.nodes.books[:, FUTURE]
        short = (request > 0) & (free < request - EPS)
        counts = zip(tables.axis.names, short.sum(axis=0).tolist(), strict=False)
        parts = [f"{count} node(s) didn't have enough {name}" for name, count in sorted(counts) if count]
        others = len(free) - int(np.count_nonzero(short.any(axis=1)))
        if others and isinstance(why, NoRoom) and (len(rows) > 1 or partial is not None):
            all_pods = "all pods" if partial is not None and partial.role else f"all {len(rows)} pods"
            parts.append(f"{others} node(s) have room for it, but not for {all_pods} that must start together")
        elif others or not parts:
            parts.append(f"{others} node(s) are out: {text_of(why)}")
        reasons = f"due to: 0/{len(free)} nodes are available: {'; '.join(parts)}."
        if partial is None:
            return "Resources were not found for pod ", f" {reasons}"
        fit, least, role = f"Resources were found for {partial.placed} pods", partial.minimum, partial.role
        if not role:
            needs = f"{least} are required for gang scheduling. Additional pods cannot be scheduled"
            return f"{fit} while {needs} {reasons}", ""
        needs = f"{least} pods for gang scheduling. Additional pods cannot be scheduled in this sub-group"
        return f"{fit} from all sub-groups while sub-group {role} requires {needs} {reasons}", ""


def _quota_text(queue: str, name: str, most: float, held: float, asked: float, kind: str) -> str:
    """Return the message for a queue at its limit or quota."""
    unit, by = _UNITS[name]
    limit, has, wants = (f"{amount / by:.4g}" for amount in (most, held, asked))
    if kind == LIMIT:
        reached = f"{queue} has reached its limit of {unit}"
        return f"{reached}: the limit is {limit}, {has} allocated, the workload asks for {wants}"
    return (
        f"a workload that is not preemptible must stay within the quota: that of {queue} is {limit} {unit},"
        f" {has} allocated to such workloads, and it asks for {wants}; a preemptible one may go over the quota"
    )
