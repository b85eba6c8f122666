"""Log what a cycle did after it is over, in the texts of Volcano's log and at its levels.

It is read from what the cycle leaves, so that the core logs nothing while it works. What was tried and undone is in the
notes of tasks, why they found no node in the fit errors, and the rest in the trace.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from pumice.columns.dtypes import F64
from pumice.columns.nodes import IDLE, RELEASING, USED
from pumice.columns.tasks import NO_GATE
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.trace import Entry, is_invalid
from pumice.kube.scheduler.logs import V3, V4, V5
from pumice.model import blockers
from pumice.model.blockers import QueueLimit
from pumice.model.decisions import Bind, Decision
from pumice.model.status import TaskStatus
from pumice.model.workloads.podgroup import PodGroup
from pumice.reasons.nearest import NearestBlockers
from pumice.reasons.sentences import sentence
from pumice.volcano.status import rejections
from pumice.volcano.status.fit_errors import error_text

Line = tuple[int, str]  # level, text

_log = logging.getLogger("pumice.cycle")


def log_cycle(outcome: Outcome, decisions: list[Decision]) -> None:
    """Log a cycle. Costs nothing below ``-v 3``; the work for a level is done only if it is enabled."""
    if not _log.isEnabledFor(V3):
        return
    for level, text in _CycleLines(outcome, decisions, _log.getEffectiveLevel()).lines():
        if _log.isEnabledFor(level):
            _log.log(level, "%s", text)


class _CycleLines:
    def __init__(self, outcome: Outcome, decisions: list[Decision], level: int) -> None:
        self.outcome, self.decisions = outcome, decisions
        self.tables = outcome.tables
        self.detailed, self.all = level <= V4, level <= V5

    def lines(self) -> Iterator[Line]:
        """Yield lines in Volcano's order: by action, then evictions, then the end."""
        outcome = self.outcome
        queues, ready = len(self.tables.queues.names), str(bool(self.tables.tree.ready)).lower()
        yield V4, "Start scheduling ..."
        yield from self._left_out()
        yield (
            V3,
            f"Open Session {outcome.uid} with {len(outcome.live_jobs)} Job and {queues} Queues."
            f" HyperNodesReadyToSchedule: {ready}",
        )
        for action in outcome.policy.actions:
            yield from self._action(action.name, queues)
        yield from self._effects()
        if self.detailed:
            yield from self._queues()
            for job, blocker in NearestBlockers(self.outcome).by_key().items():
                yield V4, f"Job <{job}> waits: {sentence(blocker)}"
        yield V3, f"Close Session {outcome.uid}"
        yield V4, "End scheduling ..."

    # -- what is no part of the session --------------------------------------------------------------------------------

    def _left_out(self) -> Iterator[Line]:
        """Yield jobs and pods that are not in the session, which nothing else reports."""
        jobs, tasks = self.tables.jobs, self.tables.tasks
        for row in (jobs.alive & (jobs.queue < 0)).nonzero()[0].tolist():
            group: PodGroup | None = jobs.groups[row]
            if group is not None:
                yield V3, f"The Queue <{group.queue}> of Job <{group.key}> does not exist, ignore it."
            else:
                yield V4, f"Job <{jobs.uids[row]}> has no PodGroup, ignore it."
        if self.detailed:
            for row in (tasks.alive & (tasks.job < 0) & (tasks.status == TaskStatus.PENDING)).nonzero()[0].tolist():
                yield V4, f"Pod <{tasks.pods[row].key}> names no PodGroup, ignore it."

    # -- by action -----------------------------------------------------------------------------------------------------

    def _action(self, name: str, queues: int) -> Iterator[Line]:
        shown = name.capitalize()
        yield V5, f"Enter {shown} ..."
        if name == "enqueue":
            yield V3, f"Try to enqueue PodGroup to {queues} Queues"
            yield from self._rejected()
        elif name == "allocate":
            yield V3, f"Try to allocate resource to {queues} Queues"
        for entry in self._trace:
            if entry.action == name:
                yield from self._found(entry)
        if name == "allocate":
            yield from self._statements()
        yield V5, f"Leaving {shown} ..."

    def _rejected(self) -> Iterator[Line]:
        if self.detailed:
            for rows, why in self.outcome.trace.rejected:
                for row in rows.tolist():
                    yield V4, f"{self._job(row)} skip enqueue, reason: {rejections.text_of(why)}"

    def _found(self, entry: Entry) -> Iterator[Line]:
        finding = entry.finding
        match finding:
            case QueueLimit(queue, blockers.DESERVED):
                yield V3, f"Queue <{queue}> is overused, ignore it."
            case QueueLimit(queue, blockers.CAPACITY):
                yield V3, f"Queue <{queue}> is overused when considering job <{entry.subject}>, ignore it."
                if finding.detail:
                    yield V4, f"<{entry.subject}> queue's reason: {finding.detail}"
            case blockers.Blocker() if is_invalid(finding):
                job = self._job(self._row_of[entry.subject])
                reason = rejections.text_of_invalid(finding) or sentence(finding)
                yield V4, f"{job} skip {entry.action}, reason: {reason}"
            case _:
                yield V4, f"<{entry.subject}> {sentence(finding)}"

    def _job(self, row: int) -> str:
        jobs = self.tables.jobs
        return f"Job <{jobs.uids[row]}> Queue <{self.tables.queues.names[jobs.queue[row]]}>"

    @cached_property
    def _trace(self) -> list[Entry]:
        return self.outcome.entries

    @cached_property
    def _row_of(self) -> dict[str, int]:
        uids = self.tables.jobs.uids
        return {uids[row]: row for row in self.outcome.live_jobs.tolist()}

    # -- jobs that were tried ------------------------------------------------------------------------------------------

    def _statements(self) -> Iterator[Line]:
        """Yield which tasks got nodes, which got reservations, and which lost what they had been given."""
        tasks, count, trace = self.tables.tasks, len(self.tables.nodes.facts), self.outcome.trace
        committed = Counter(decision.job for decision in self.decisions if isinstance(decision, Bind))
        promised = self._by_job(tasks.alive & (tasks.status == TaskStatus.PIPELINED))
        for row in self.outcome.live_jobs.tolist():
            job = self.tables.jobs.uids[row]
            bound, errors, undone = committed.get(job, 0), trace.errors_of(row), self._undone(row)
            if not (bound or undone or row in promised or errors):
                continue
            yield V3, f"There are <{count}> nodes for Job <{job}>"
            yield from self._skipped(row)
            for task, each in errors.items():
                text = error_text(self.tables, task, each)
                yield V3, f"Predicates failed: Task <{tasks.pods[task].key}>: {text}"
            if bound:
                yield V3, f"SubJob ready, return statement: Job <{job}>"
                yield V3, f"Committing operations ... Job <{job}>: {bound} tasks"
            elif row in promised:
                yield V3, f"SubJob pipelined, return statement: Job <{job}>"
            else:
                yield V3, f"Discarding operations ... Job <{job}>: {len(undone)} tasks"
            yield from self._taken_back(undone)

    def _undone(self, job: int) -> list[tuple[int, int]]:
        """Return the tasks of a job that had been placed, with their nodes."""
        last_trial = self.outcome.trace.undone_of(job)
        if last_trial is None:
            return []
        there = (last_trial.status >= 0).nonzero()[0]
        return list(zip(self.tables.jobs.tasks[job][there].tolist(), last_trial.node[there].tolist(), strict=True))

    def _by_job(self, chosen: Any) -> dict[int, list[int]]:
        """Return rows of tasks, by the row of their job."""
        found: dict[int, list[int]] = {}
        for row, job in zip(chosen.nonzero()[0].tolist(), self.tables.tasks.job[chosen].tolist(), strict=True):
            found.setdefault(job, []).append(row)
        return found

    def _skipped(self, job: int) -> Iterator[Line]:
        tasks = self.tables.tasks
        if not self.detailed:
            return
        for row in self.tables.jobs.tasks[job].tolist():
            if tasks.status[row] != TaskStatus.PENDING:
                continue
            if tasks.gate[row] != NO_GATE:
                yield V4, f"Task <{tasks.pods[row].key}> has scheduling gates, skip it."
            elif tasks.best_effort[row]:
                yield V4, f"Task <{tasks.pods[row].key}> is BestEffort, skip it."

    def _taken_back(self, undone: Iterable[tuple[int, int]]) -> Iterator[Line]:
        tasks, names = self.tables.tasks, self.tables.nodes.facts.names
        for row, node in undone:
            if node >= 0:
                yield V3, f"Remove Task <{tasks.pods[row].key}> on node <{names[node]}>"

    # -- what leaves ---------------------------------------------------------------------------------------------------

    def _effects(self) -> Iterator[Line]:
        came: dict[str, list[str]] = {}
        for decision in self.decisions:
            if isinstance(decision, Bind):
                yield V3, f"Binding Task <{decision.pod}> to node <{decision.node}>"
                came.setdefault(decision.node, []).append(decision.pod)
            else:
                yield V3, f"Evicting Task <{decision.pod}> from node <{decision.node}>: {decision.reason}"
        yield from self._books("allocated", came)
        promised: dict[str, list[str]] = {}
        for pod, node in self.outcome.pipelined.items():
            yield V3, f"Pipelining Task <{pod}> to node <{node}>"
            promised.setdefault(node, []).append(pod)
        yield from self._books("pipelined", promised)
        hypernodes = self.tables.tree.names
        for row, hypernode in self.outcome.writes.job_hypernodes.items():
            if hypernode >= 0:
                yield (
                    V3,
                    f"Allocate job to hyperNode success: Job <{self.tables.jobs.uids[row]}>"
                    f" hyperNode <{hypernodes[hypernode]}>",
                )

    def _books(self, done: str, came: dict[str, list[str]]) -> Iterator[Line]:
        """Yield what the nodes that took tasks have left at the end of the session."""
        nodes = self.tables.nodes
        for name, pods in came.items():
            books = nodes.books[nodes.facts.row_of[name]]
            idle, used, releasing = (self._amount(books[column]) for column in (IDLE, USED, RELEASING))
            tasks = ", ".join(f"<{pod}>" for pod in pods)
            yield (
                V3,
                f"After {done} Task {tasks} to Node <{name}>: idle <{idle}>, used <{used}>, releasing <{releasing}>",
            )
        if self.all and done == "allocated":
            for row, name in enumerate(nodes.facts.names):
                yield V5, f"Node <{name}>: idle <{self._amount(nodes.books[row, IDLE])}>"

    def _queues(self) -> Iterator[Line]:
        """Yield what a plugin that shares the cluster counts for each queue."""
        figures = self.outcome.figures
        if "queue.elastic" not in figures:
            return
        shown_as = {
            "deserved": "deserved",
            "realCapability": "real_capacity",
            "allocate": "allocated",
            "request": "request",
            "elastic": "elastic",
        }
        for row, name in enumerate(self.tables.queues.names):
            amounts = {what: self._amount(figures[f"queue.{figure}"][row]) for what, figure in shown_as.items()}
            shown = ", ".join(f"{what} <{amount}>" for what, amount in amounts.items())
            share = figures["queue.share"][row]
            yield V4, f"The attributes of queue <{name}> in proportion: {shown}, share <{share:.2f}>"

    def _amount(self, row: F64) -> str:
        """Return ``cpu 1500.00, memory 1073741824.00``: thousandths, bytes, and other amounts above 0."""
        pairs = zip(self.tables.axis.names, row.tolist(), strict=True)
        return ", ".join(f"{name} {value:.2f}" for i, (name, value) in enumerate(pairs) if i < 2 or value)


def log_decisions(cycle: int, now: float, digest: str, decisions: Sequence[Decision], conf: str) -> None:
    """Log how much a cycle decided, and what a replay of it needs. ``conf``: hash of the policy. Silent for nothing."""
    if not decisions:
        return
    binds = sum(isinstance(decision, Bind) for decision in decisions)
    evicts = len(decisions) - binds
    fields = {"cycle": cycle, "now": now, "digest": digest, "conf": conf, "to_bind": binds, "to_evict": evicts}
    text = "cycle %d: %d to bind, %d to evict; digest %s at %r"
    logging.getLogger("pumice.run").info(text, cycle, binds, evicts, digest, now, extra={"fields": fields})
