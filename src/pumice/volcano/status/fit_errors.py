"""Render the texts that users read about tasks without a node and about their jobs.

Source: Volcano FitErrors, job fit errors, TaskSchedulingReason. The texts are identical, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.counting import ALLOCATED, PENDING, PIPELINED, ready_in
from pumice.columns.tables import Tables
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.trace import CycleTrace
from pumice.framework.plugin.filter_result import FitErrors
from pumice.model.blockers import Shortage
from pumice.model.decisions import PodNotice
from pumice.model.status import TaskStatus

UNSCHEDULABLE, SCHEDULABLE = "Unschedulable", "Schedulable"
#: The byte of a task of which nothing was undone: -1.
_NOT_UNDONE = 0xFF
# Allocated too: a task that keeps its place without being bound still waits for its gang.
_WAITING = (TaskStatus.PENDING, TaskStatus.ALLOCATED, TaskStatus.PIPELINED)


class FailedAttempt(NamedTuple):
    """``placed``: pending tasks that an undone attempt had placed. ``text``: the job's text without the origin."""

    placed: int
    text: str


class LastOperation(NamedTuple):
    """Status of a task, its node (-1: none), and whether tasks were evicted for it: of the operation that was undone
    last, or else its present status."""

    status: int
    node: int
    evicted: bool


def error_text(tables: Tables, row: int, errors: FitErrors) -> str:
    """``0/6 nodes are unavailable: 6 Insufficient cpu.``"""
    # Volcano's text for a task whose role has failed already; that task was not tried on any node, so there are no
    # numbers.
    if errors.skipped:
        pod = tables.tasks.pods[row]
        return f"Task {pod.name} with role spec {pod.role} has already predicated failed, skip"
    head = errors.message or f"0/{errors.node_count} nodes are unavailable"
    counts = reasons(errors)
    if counts:
        # Sorted as texts and not as numbers, so 10 goes before 2. Source: Volcano FitErrors.Error().
        head = f"{head}: " + ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items())) + "."
    return f"In hyperNode {errors.hypernode}: {head}" if errors.hypernode else head


def reasons(errors: FitErrors) -> Counter[str]:
    """Return the texts of the objections to nodes, each with the number of nodes."""
    found: Counter[str] = Counter()
    for each in errors.against:
        found[f"Insufficient {each.resource}" if isinstance(each, Shortage) else each.detail] += each.nodes
    return found


class FitTexts:
    """Texts about jobs of one session, from its trace."""

    def __init__(self, tables: Tables, trace: CycleTrace) -> None:
        self._tables, self._trace = tables, trace

    def operation(self, row: int) -> LastOperation:
        """Return the reported status of a task."""
        tasks, job = self._tables.tasks, int(self._tables.tasks.job[row])
        # Volcano reports the last transaction of a task even if it was rolled back: a pod that would fit says so.
        last_trial = self._trace.undone_of(job)
        if last_trial is not None:
            at = int((self._tables.jobs.tasks[job] == row).argmax())
            if last_trial.status[at] >= 0:
                return LastOperation(int(last_trial.status[at]), int(last_trial.node[at]), bool(last_trial.evicted[at]))
        return LastOperation(int(tasks.status[row]), int(tasks.node[row]), bool(tasks.evicted_for[row]))

    def task_reason(self, row: int) -> tuple[str, str, str]:
        """Return the reason, the message and the nominated node of a task. Source: Volcano TaskSchedulingReason."""
        tables, last = self._tables, self.operation(row)
        key = tables.tasks.pods[row].key
        name = tables.nodes.facts.names[last.node] if last.node >= 0 else ""
        if last.status == TaskStatus.ALLOCATED:
            return SCHEDULABLE, f"Pod {key} can possibly be assigned to {name}, once minAvailable is satisfied", ""
        if last.status == TaskStatus.PIPELINED:
            message = (
                f"Pod {key} can possibly be assigned to {name}, once resource is released and minAvailable is satisfied"
            )
            return UNSCHEDULABLE, message, name if last.evicted else ""
        if last.status == TaskStatus.PENDING:
            errors = self._trace.errors_of(int(tables.tasks.job[row])).get(row)
            return UNSCHEDULABLE, error_text(tables, row, errors) if errors else "", ""
        return TaskStatus(last.status).label, "", ""

    def job_text(self, job: int) -> str:
        """Return ``pod group is not ready, 8 Pending, 8 minAvailable; Pending: …. Origin reason is …``."""
        group = self._tables.jobs.groups[job]
        if group is not None and group.quarantined:
            # Its minimum is out of reach, as a number that says nothing.
            return f"PodGroup {group.key} cannot be read: {'; '.join(group.unparsable)}"
        return self.fared(job).text + self.origin(job)

    def origin(self, job: int) -> str:
        """Return the end of a job's text, "" if none of its tasks failed."""
        # Volcano takes the failed task that comes first in a random map order; here it is the first in task order.
        first = self._trace.first_error_of(job)
        if first is None:
            return ""
        row, errors = first
        return f". Origin reason is {self._tables.tasks.pods[row].name}: {error_text(self._tables, row, errors)}"

    def fared(self, job: int) -> FailedAttempt:
        """Return the result of a job's tasks."""
        tasks, jobs, last_trial = self._tables.tasks, self._tables.jobs, self._trace.undone_of(job)
        counts: list[int] = jobs.counts[job].tolist()
        least, undone = int(jobs.min_available[job]), b"\xff" * counts[PENDING]
        if last_trial is not None:
            undone = last_trial.status[tasks.status[jobs.tasks[job]] == PENDING].tobytes()
        # Equal arguments for equal jobs, so that the cache below answers for all but the first.
        return _fared(tuple(counts), undone, least, ready_in(counts) + int(jobs.best_effort[job]) >= least)


@lru_cache(maxsize=1024)
def _fared(counts: tuple[int, ...], undone: bytes, min_available: int, ready: bool) -> FailedAttempt:
    """Return the result of a job's tasks, from ``counts`` by status, and from ``undone``: per pending task the status
    of its last undone attempt, one byte each, -1 for none."""
    parts = sorted(
        [f"{count} {TaskStatus(s).label}" for s, count in enumerate(counts) if count]
        + [f"{min_available} minAvailable"]
    )
    text = ", ".join(["pod group is ready" if ready else "pod group is not ready", *parts])
    lasts = Counter(undone)
    if lasts:
        reasons = Counter[str]()
        for last, count in lasts.items():
            reasons[_pending_label(-1 if last == _NOT_UNDONE else last)] += count
        text += "; Pending: " + ", ".join(sorted(f"{n} {reason}" for reason, n in reasons.items()))
    return FailedAttempt(lasts[ALLOCATED], text)


def _pending_label(last: int) -> str:
    """Return the label of a pending task, by the status of its last undone attempt."""
    if last == ALLOCATED:
        return SCHEDULABLE
    # Pipelined tasks count as unschedulable, because their room is not free yet. Source: Volcano TaskSchedulingReason.
    if last in (-1, TaskStatus.PENDING, TaskStatus.PIPELINED):
        return UNSCHEDULABLE
    return TaskStatus(last).label


def nominations(outcome: Outcome) -> Iterator[PodNotice]:
    """Yield the notices that nominate a pod to a node: those for whose pods others were evicted, even if that was
    undone."""
    tables, tasks = outcome.tables, outcome.tables.tasks
    kept, undone = tasks.evicted_for.nonzero()[0], outcome.trace.undone_promises()
    if not len(kept) and not len(undone):
        return
    promised = distinct(np.concatenate([kept[tasks.status[kept] == PIPELINED], undone]))
    promised = promised[np.isin(tasks.status[promised], _WAITING) & (tasks.job[promised] >= 0)]
    texts, live = FitTexts(tables, outcome.trace), np.zeros(tables.jobs.capacity, dtype=bool)
    live[outcome.live_jobs] = True
    for row in promised.tolist():
        pod = tasks.pods[row]
        if live[tasks.job[row]] and not pod.gates:
            reason, message, nominated = texts.task_reason(row)
            if nominated:
                yield PodNotice(pod.key, pod.uid, reason, message, nominated)


def notices(outcome: Outcome) -> Iterator[PodNotice]:
    """Yield for every waiting pod without gates why it waits."""
    tables, texts = outcome.tables, FitTexts(outcome.tables, outcome.trace)
    tasks = tables.tasks
    waiting = np.isin(tasks.status, _WAITING)
    for job in outcome.live_jobs.tolist():
        rows = tables.jobs.tasks[job]
        rows = [r for r in rows[waiting[rows]].tolist() if not tasks.pods[r].gates]
        text = texts.job_text(job) if rows else ""
        for row in rows:
            reason, message, nominated = texts.task_reason(row)
            pod = tasks.pods[row]
            yield PodNotice(pod.key, pod.uid, reason, message or text or "all nodes are unavailable", nominated)
