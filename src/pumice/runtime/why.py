"""Why jobs wait after a cycle, in words: read from what the cycle recorded. Nothing is decided by it.

The short text is for counting (``no node fits: Insufficient cpu``), the long one has everything about one job.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import Bool
from pumice.columns.jobs import PENDING_PHASE
from pumice.columns.tasks import NO_GATE
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.trace import is_invalid
from pumice.kai.engine.members import by_kai_rules, may_wait
from pumice.kai.status import why_not_placed
from pumice.kai.words import text_of
from pumice.model import blockers as b
from pumice.model.blockers import QueueLimit
from pumice.model.pod import UNREAD_GATE
from pumice.model.status import TaskStatus
from pumice.reasons.sentences import sentence
from pumice.volcano.status import rejections
from pumice.volcano.status.fit_errors import FitTexts, error_text, reasons


class Why(NamedTuple):
    """``short`` is equal for all jobs that wait for the same reason."""

    short: str
    text: str


def why_jobs_wait(outcome: Outcome, only: Bool | None = None) -> dict[str, Why]:
    """Return the reason by PodGroup key, for every job of the session that waits for admission or has waiting pods.

    ``only``: these rows of jobs. Shape (J,).
    """
    return dict(_Reader(outcome).jobs(only))


def why_pods_wait(outcome: Outcome) -> dict[str, str]:
    """Return the reason by pod key, for every waiting pod of the session's jobs without a reservation."""
    reader = _Reader(outcome)
    tables = outcome.tables
    tasks, pods = tables.tasks, tables.tasks.pods
    found = {}
    why_of = {key: why.text for key, why in reader.jobs()}
    notices = {notice.pod: notice.message for notice in outcome.notices()}
    for job in outcome.live_jobs.tolist():
        rows = tables.jobs.tasks[job]
        key = tables.jobs.uids[job]
        tried = reader.was_tried(job)
        for row in rows[tasks.status[rows] == TaskStatus.PENDING].tolist():
            pod = pods[row]
            if UNREAD_GATE in pod.gates:
                found[pod.key] = f"cannot be read: {'; '.join(pod.unparsable)}"
            elif tasks.gate_off[row]:
                found[pod.key] = "its queue takes it on: its scheduling gate is taken off now"
            elif pod.gates:
                found[pod.key] = f"held back by its scheduling gate {', '.join(pod.gates)}"
            else:
                found[pod.key] = (tried and notices.get(pod.key)) or why_of.get(key) or notices.get(pod.key, "")
    return found


class _Reader:
    def __init__(self, outcome: Outcome) -> None:
        self.outcome, self.tables, self.trace = outcome, outcome.tables, outcome.trace
        self.texts = FitTexts(outcome.tables, outcome.trace)
        rejected = sorted((rejections.text_of(why), rows.tolist()) for rows, why in self.trace.rejected)
        self.rejected = {row: text for text, rows in rejected for row in rows}  # of several the last counts
        self.is_open: list[bool] = outcome.tables.queues.open.tolist()
        self.invalid: dict[str, str] = {}
        self.overused: set[str] = set()
        self.full: dict[str, QueueLimit] = {}
        self.kept_out: dict[str, str] = {}
        self.no_domain: dict[str, str] = {}
        self.no_room: dict[str, list[str]] = {}
        self.not_placed: dict[int, str] = {}
        self.set_aside = {fault.subject: fault.text for fault in outcome.faults}
        for entry in outcome.entries:
            match entry.finding:
                case QueueLimit(_, b.CAPACITY) as limit:
                    self.full[entry.subject] = limit
                case b.RoomReserved():
                    self.kept_out[entry.subject] = sentence(entry.finding)
                case QueueLimit(queue, b.DESERVED):
                    self.overused.add(queue)
                case b.Domain():
                    self.no_domain[entry.subject] = sentence(entry.finding)
                case b.CannotEvict():
                    self.no_room.setdefault(entry.subject, []).append(sentence(entry.finding))
                case finding if isinstance(finding, b.Blocker) and is_invalid(finding):
                    self.invalid[entry.subject] = rejections.text_of_invalid(finding) or sentence(finding)
        if outcome.policy.dialect.name == "kai":
            self.not_placed = {row: text_of(waits.why) for row, waits in why_not_placed(outcome.trace).items()}

    def jobs(self, only: Bool | None = None) -> Iterator[tuple[str, Why]]:
        jobs, live = self.tables.jobs, self.outcome.live_jobs
        live = live[(jobs.counts[live, TaskStatus.PENDING] > 0) | (jobs.phase[live] == PENDING_PHASE)]
        rows = live if only is None else live[only[live]]
        keys, groups = np.asarray(jobs.uids)[rows].tolist(), np.asarray(jobs.groups)[rows].tolist()
        phases, queues = jobs.phase[rows].tolist(), jobs.queue[rows].tolist()
        for job, key, group, phase, queue in zip(rows.tolist(), keys, groups, phases, queues, strict=True):
            if group.unparsable:
                why = Why("its PodGroup cannot be read", f"PodGroup {key} cannot be read: {group.unparsable[0]}")
            elif by_kai_rules(group, self.outcome.policy.dialect.name):
                why = self._of_gang(job)
            elif phase == PENDING_PHASE:
                why = self._not_admitted(queue, self.rejected.get(job))
            else:
                why = self._why(job)
            tried = self.no_room.get(key)
            yield key, Why(why.short, "; ".join((why.text, *tried))) if tried else why

    def was_tried(self, job: int) -> bool:
        """Return True if nodes were examined for the job in this cycle."""
        return bool(self.trace.errors_of(job)) or self._was_undone(job)

    def _was_undone(self, job: int) -> bool:
        last_trial = self.trace.undone_of(job)
        return last_trial is not None and bool((last_trial.status >= 0).any())

    def _why(self, job: int) -> Why:
        tables = self.tables
        jobs = tables.jobs
        key, queue = jobs.uids[job], tables.queues.names[jobs.queue[job]]
        if key in self.invalid:
            return Why(f"invalid: {self.invalid[key].partition(', valid:')[0]}", self.invalid[key])
        errors = self.trace.errors_of(job)
        if errors:
            row, first = next(iter(errors.items()))
            text = error_text(tables, row, first)
            most = max(
                reasons(first).items(),
                key=lambda item: (item[1], item[0]),
                default=(first.message or (text if first.skipped else "no node"), 0),
            )
            return Why(f"no node fits: {most[0]}", text)
        if key in self.full:
            return Why("queue full", sentence(self.full[key]))
        if key in self.kept_out:
            return Why("room is reserved", self.kept_out[key])
        rows = jobs.tasks[job]
        if not (tables.tasks.gate[rows] == NO_GATE).any():
            return Why("held back by scheduling gates", "all its pods are held back by scheduling gates")
        if queue in self.overused:
            return Why("queue has what it deserves", f"queue {queue} has all that it deserves at the moment")
        if self._was_undone(job):
            return Why("gang not complete", self.texts.job_text(job))
        if key in self.set_aside:
            return Why("a plugin failed", f"a plugin failed while the job was tried: {self.set_aside[key]}")
        if key in self.no_domain:
            return Why("no domain has room", self.no_domain[key])
        return Why("others came first", "others came first and the cycle ended")

    def _of_gang(self, job: int) -> Why:
        """Return the reason of a gang of KAI, which needs no admission."""
        tables, jobs = self.tables, self.tables.jobs
        rows = jobs.tasks[job]
        if len(rows) and not (tables.tasks.gate[rows] == NO_GATE).any():
            return Why("held back by scheduling gates", "all its pods are held back by scheduling gates")
        key = jobs.uids[job]
        if key in self.set_aside:
            return Why("a plugin failed", f"a plugin failed while the job was tried: {self.set_aside[key]}")
        message = next((text for row in rows.tolist() if (text := self.messages.get(tables.tasks.pods[row].key))), "")
        if message or job in self.not_placed:
            short = self.not_placed.get(job) or message.partition(":")[0]
            return Why(short, message or short)
        if not may_wait(tables, job):
            return Why("gang not complete", "not all pods are there that it needs to start")
        return Why("others came first", "others came first and the cycle ended")

    @cached_property
    def messages(self) -> dict[str, str]:
        """The text of each pod's notice."""
        return {notice.pod: notice.message for notice in self.outcome.notices()}

    def _not_admitted(self, queue: int, said: str | None) -> Why:
        if not self.is_open[queue]:
            name = self.tables.queues.names[queue]
            return Why("not admitted: queue is closed", f"not admitted: queue {name} is not open")
        text = f"not admitted: {said}" if said else "not admitted yet"
        return Why(text, text)
