"""What blocks each job that waits, made from what one cycle left behind.

The trace holds findings that equal jobs share; here the blockers of one job are made from them, for that job alone.
Labels, taints and other pods that keep a job off nodes are looked up when its blockers are read: in a cycle with
thousands of waiting jobs only those are read that are shown.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from functools import cached_property

from msgspec.structs import replace

from pumice.algorithms.groups import distinct
from pumice.columns.counting import HELD, PIPELINED
from pumice.columns.dtypes import AnyArray
from pumice.columns.jobs import PENDING_PHASE
from pumice.columns.views import Job
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.trace import WHOLE_CYCLE, Entry, is_invalid, rest_of_action
from pumice.framework.plugin.filter_result import FitErrors
from pumice.kai.engine.members import by_kai_rules, may_wait
from pumice.kai.engine.tree_order import QueueTree
from pumice.kai.status import why_not_placed, why_not_tried
from pumice.kai.words import Waits
from pumice.model.blockers import (
    ACTION,
    CLOSED,
    DESERVED,
    TASK,
    Behind,
    Blocker,
    Domain,
    GangIncomplete,
    GangPartial,
    Missing,
    NodeFilter,
    NoNode,
    NoRoom,
    NotAdmitted,
    PluginFault,
    QueueLimit,
    Refused,
    Shortage,
    Unreadable,
)
from pumice.model.blockers.changes import ChangeNodes, NotKnown
from pumice.model.status import TaskStatus
from pumice.reasons import domains, gangs, nodes, queues, room
from pumice.reasons.places import Places
from pumice.reasons.shared_claims import shared_claim
from pumice.reasons.view import View


class Blockers:
    """Of the jobs of one session. Shapes: J jobs, R resources."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome, self._tables, self._trace = outcome, outcome.tables, outcome.trace
        self._view = View(outcome)
        self._shared: dict[Hashable, tuple[Blocker, ...]] = {}
        self._limits: dict[Blocker, Blocker] = {}  # with the jobs that hold promises
        self._looks_at_pods: dict[int, bool] = {}  # by signature

    @property
    def waiting(self) -> AnyArray:
        """Rows of the jobs that wait for admission, or of which some pod waits for a node, rising."""
        jobs, live = self._tables.jobs, self._outcome.live_jobs
        counts = jobs.counts[live]
        waits = (counts[:, TaskStatus.PENDING] > 0) | (counts[:, PIPELINED] > 0)
        asks = jobs.phase[live] == PENDING_PHASE
        # A gang that runs whole asks for nothing, although nothing has written the phase of its PodGroup yet.
        runs = (
            (counts.sum(axis=1) >= jobs.min_available[live])
            & (counts @ HELD >= jobs.size[live])
            & (jobs.size[live] > 0)
        )
        asks &= ~runs
        asks[asks] = [not self.is_gang(job) for job in live[asks].tolist()]
        found: AnyArray = live[waits | asks]
        return found

    def is_gang(self, job: int) -> bool:
        """Return True for a gang that is placed as KAI places gangs, without admission."""
        return by_kai_rules(self._tables.jobs.groups[job], self._outcome.policy.dialect.name)

    def of(self, job: int) -> tuple[Blocker, ...]:
        """Return those of a job that waits, by row: at least one, the nearest first."""
        return tuple(dict.fromkeys(self._in_order(job)))

    def nearest(self, job: int) -> Blocker:
        """Return the first of those of a job that waits."""
        # Not all of them: after each cycle of a simulation this is asked for many jobs.
        return next(self._in_order(job))

    def findings(self, job: int) -> list[object]:
        """Return what the cycle recorded about a job by name."""
        return [entry.finding for entry in self._found.get(self._tables.jobs.uids[job], ())]

    def rejections(self, job: int) -> list[Blocker]:
        """Return why a job was not admitted in this cycle."""
        return self._rejected.get(job, [])

    def labels_that_matter(self, job: int) -> Hashable:
        """Return the namespace and the labels of the pod that the blockers of a job are about, where its own terms look
        at pods, or else which terms of pods on nodes are about it; () for none. Jobs of one signature may differ in
        labels, and a gang that keeps away from its own label keeps its pods apart."""
        tables = self._tables
        signature, rows = int(tables.jobs.signature[job]), tables.jobs.tasks[job]
        if signature not in self._looks_at_pods:
            # By class, because a job may have thousands of pods.
            specs = (tables.classes.specs[each] for each in distinct(tables.tasks.cls[rows]).tolist())
            self._looks_at_pods[signature] = any(
                spec.spread or spec.affinity.pod_required or spec.affinity.anti_required for spec in specs
            )
        looks_at_pods = self._looks_at_pods[signature]
        if not len(rows) or not (looks_at_pods or self._view.terms_apart.selectors):
            return ()
        pod = tables.tasks.pods[self._first_in_vain(job)]
        if looks_at_pods:
            return pod.namespace, *sorted(pod.labels.items())
        # Not its labels: if each job has one of its own, none would share anything.
        about = self._view.terms_apart.about(pod.labels)
        return (pod.namespace, *about) if about else ()

    def _first_in_vain(self, job: int) -> int:
        """Return the task that the blockers of a job are about: the first that found no node, or else that waits."""
        row = self._view.first_failed(job)
        return next(iter(self._view.waiting_rows(job)), int(self._tables.jobs.tasks[job][0])) if row is None else row

    def _in_order(self, job: int) -> Iterator[Blocker]:
        group, uid = self._tables.jobs.groups[job], self._tables.jobs.uids[job]
        if group.unparsable:
            yield Unreadable(f"PodGroup {uid}", group.unparsable[0])
            return
        # No action ran, so what queues and nodes would say is not why the job waits.
        if self._faults_of_cycle:
            yield from self._faults_of_cycle
            return
        reserved = gangs.reserved(self._view, job)
        # A reservation for a part of the gang is no promise that it starts, unless pods are leaving for it.
        helps = reserved is not None and (reserved.leaving or Job(self._tables, job).is_pipelined)
        if reserved is not None and helps:
            yield reserved
        is_empty = reserved is None
        for each in self._of_gang(job) if self.is_gang(job) else self._of_job(job):
            is_empty = False
            yield each
        if reserved is not None and not helps:
            yield reserved
        if is_empty:
            held = gangs.held_back(self._view, job, by_its_queue=True) or self._of_its_domain(job)
            # After a fault that ended an action, the job may not have been tried, and no other reason is known.
            yield from (held,) if held else self._faults_of_actions or (Behind(),)

    # -- Volcano's jobs ------------------------------------------------------------------------------------------------

    def _of_job(self, job: int) -> Iterator[Blocker]:
        jobs, queues_ = self._tables.jobs, self._tables.queues
        queue = int(jobs.queue[job])
        findings = self.findings(job)
        # A gang that the language cannot place is not admitted either, and admission would not help it.
        unreadable = [finding for finding in findings if isinstance(finding, Unreadable)]
        if unreadable:
            yield from unreadable
            return
        if jobs.phase[job] == PENDING_PHASE:
            yield self._not_admitted(job, queue)
            return
        own = [finding for finding in findings if isinstance(finding, Blocker)]
        for finding in own:
            if isinstance(finding, GangIncomplete):
                yield gangs.incomplete(self._view, job, finding.detail) or finding
            elif is_invalid(finding):
                yield finding
        gated = gangs.held_back(self._view, job)
        if gated is not None:
            yield gated
        # An action that asks about single tasks passes over a gang with too few pods and records nothing.
        if not any(isinstance(finding, GangIncomplete) for finding in own):
            handle = Job(self._tables, job)
            if handle.valid_count < handle.min_available:
                yield from filter(None, (gangs.incomplete(self._view, job),))
        nearest = () if any(is_invalid(finding) for finding in own) else self._of_nodes(job)
        yield from nearest
        known = {(type(each), getattr(each, "kind", "")) for each in nearest}
        rest = [finding for finding in own if not is_invalid(finding)]
        if not own and any(each.finding == QueueLimit(each.subject, DESERVED) for each in self._of_queue(queue)):
            rest.append(QueueLimit(queues_.names[queue], DESERVED))
        # A limit whose amounts are known is not repeated without them.
        rest = [each for each in rest if (type(each), getattr(each, "kind", "")) not in known]
        yield from (queues.with_own_amounts(self._view, job, each) for each in rest)

    def _not_admitted(self, job: int, queue: int) -> NotAdmitted:
        queues_ = self._tables.queues
        closed = () if queues_.open[queue] else (QueueLimit(queues_.names[queue], CLOSED),)
        rejected = self.rejections(job)
        by = (*closed, *map(self._with_holders, rejected)) or self._faults_of_actions
        # Jobs of Volcano under KAI's language, which admits none. Volcano's own goes without the action.
        if not by and not self._outcome.policy.has_action("enqueue"):
            by = (Missing(ACTION, "enqueue"),)
        return NotAdmitted(by)

    def _with_holders(self, limit: Blocker) -> Blocker:
        found = self._limits.get(limit)
        if found is None:
            found = self._limits[limit] = queues.with_holders(self._view, limit)
        return found

    def _of_its_domain(self, job: int) -> Domain | None:
        rows = self._view.waiting_rows(job)
        counted = domains.in_hypernodes(self._view, job, rows[0]) if rows else None
        return counted or room.of_its_domain(self._view, job)

    def _of_queue(self, queue: int) -> list[Entry]:
        return self._found.get(self._tables.queues.names[queue], [])

    def _of_nodes(self, job: int) -> tuple[Blocker, ...]:
        """Return what nodes or the queue have against the first task that found no node, the nearest first."""
        jobs, trace = self._tables.jobs, self._trace
        # Jobs that failed as one, and are equal, have equal findings. The blockers are values without the job's name.
        failed_like = trace.failed_like(job)
        if not failed_like or jobs.signature[job] < 0:
            return tuple(self._look_up(job))
        # Failures with equal texts have one number, and may have found other amounts free.
        against = tuple(each.against for _, each in trace.failure_of(job).errors)
        kind = int(jobs.queue[job]), failed_like, int(jobs.signature[job]), self.labels_that_matter(job), against
        if kind not in self._shared:
            self._shared[kind] = tuple(self._look_up(job))
        return self._shared[kind]

    def _look_up(self, job: int) -> Iterator[Blocker]:
        view, rows = self._view, self._view.waiting_rows(job)
        row = view.first_failed(job)
        if row is not None:
            nearest: Blocker | None = nodes.against(view, job, row)
        elif rows:
            nearest = room.not_there(view, rows[0]) or queues.turned_away(view, job)
            nearest = nearest or nodes.against(view, job, rows[0])
        else:
            nearest = None
        if nearest is None and row is not None:
            nearest = nodes.on_nearest(view, job, row)
        errors = () if row is None else tuple(self.of_task(row, self._trace.errors_of(job)[row]))
        if nearest is None and errors and not _names_change(errors[0]):
            nearest = shared_claim(view, job)
        first = nearest or (errors[0] if errors else None)
        count, needed = len(nodes.placed(view, job)), view.needed(job)
        if 0 < count < needed:
            yield GangPartial(count, needed, first)
        if nearest is not None:
            yield nearest
        short = nearest.resource if isinstance(nearest, Shortage) else ""
        yield from (each for each in errors if not (isinstance(each, Shortage) and each.resource == short))

    def of_task(self, row: int, errors: FitErrors) -> Iterator[Blocker]:
        """What blocked one task, that which most nodes say first; before all others what a change is known for."""
        if errors.message:
            yield Refused(TASK, errors.message)
        job = int(self._tables.tasks.job[row])
        wanted = max(1, self._view.needed(job) - len(nodes.placed(self._view, job)))
        for each in sorted(errors.against, key=lambda each: (not _names_change(each), -each.nodes)):
            if isinstance(each, NodeFilter):
                apart = bool(each.changes) and Places(self._view, job, row).are_apart
                yield nodes.for_pods(each, wanted, apart=apart)
            else:
                yield replace(each, wanted=wanted) if isinstance(each, Shortage) else each

    @cached_property
    def _found(self) -> dict[str, list[Entry]]:
        """What the trace says of a job or a queue, by its key."""
        found: dict[str, list[Entry]] = {}
        for entry in self._trace.entries:
            found.setdefault(entry.subject, []).append(entry)
        return found

    @cached_property
    def _faults_of_cycle(self) -> tuple[PluginFault, ...]:
        """Faults of plugins that could not be opened."""
        return self._faults_at({WHOLE_CYCLE})

    @cached_property
    def _faults_of_actions(self) -> tuple[PluginFault, ...]:
        """Faults that ended an action before it had tried all jobs."""
        return self._faults_at({rest_of_action(action.name) for action in self._outcome.policy.actions})

    def _faults_at(self, subjects: Collection[str]) -> tuple[PluginFault, ...]:
        """Return the faults that were recorded for some subjects, in order."""
        if not self._trace.faults:
            return ()
        found = (entry.finding for entry in self._trace.entries if entry.subject in subjects)
        return tuple(finding for finding in found if isinstance(finding, PluginFault))

    @cached_property
    def _rejected(self) -> dict[int, list[Blocker]]:
        found: dict[int, list[Blocker]] = {}
        for rows, why in self._trace.rejected:
            for row in rows.tolist():
                found.setdefault(row, []).append(why)
        return found

    # -- gangs of KAI --------------------------------------------------------------------------------------------------

    def _of_gang(self, job: int) -> Iterator[Blocker]:
        waits = self._not_placed.get(job)
        gated = gangs.held_back(self._view, job)
        if gated is not None:
            yield gated
        # KAI's own rules say that no node or domain will do, and not why. A gang with all nodes reserved, as after an
        # eviction for it, has no pod that nodes could have anything against.
        is_of_nodes = waits is not None and isinstance(waits.why, NoRoom | NoNode | Domain)
        counted: GangPartial | None = None
        waiting = self._view.waiting_rows(job)
        if waits is not None and is_of_nodes and waiting:
            places = self._of_places(job, is_domain=isinstance(waits.why, Domain))
            if waits.partial is not None and waits.partial.placed and places and isinstance(places[0], Shortage):
                counted = replace(waits.partial, first=places[0])
                yield counted
            yield from places
        elif waits is not None and isinstance(waits.why, Refused) and waiting:
            yield from filter(None, (room.not_there(self._view, waiting[0]),))
        found = [entry.finding for entry in self._found.get(self._tables.jobs.uids[job], ())]
        for each in (*found, *((waits.partial or waits.why,) if waits is not None else ())):
            # How many pods fit says more than that there is no room, and less than what a plugin has against them.
            why = each.first if isinstance(each, GangPartial) and not isinstance(each.first, NoRoom) else each
            if counted is not None and isinstance(why, GangPartial):
                continue
            if isinstance(why, NoNode):
                apart = bool(waiting) and Places(self._view, job, waiting[0]).are_apart
                if apart or not why.changes:
                    yield from filter(None, (shared_claim(self._view, job),))
                yield nodes.for_pods(why, self._view.needed(job), apart=apart)
            elif isinstance(why, Blocker):
                yield queues.with_amounts(self._view, job, why)
        if waits is not None:
            yield from waits.also
        elif not may_wait(self._tables, job):
            rows, minimum = self._tables.jobs.tasks[job], int(self._tables.jobs.min_available[job])
            yield GangIncomplete("", len(rows), minimum)

    def _of_places(self, job: int, *, is_domain: bool) -> tuple[Blocker, ...]:
        """Return what nodes and domains have against a gang, where that is known."""
        jobs, needed = self._tables.jobs, self._view.needed(job)
        waiting = len(self._view.waiting_rows(job))
        # Equal gangs of which nothing has a node have equal findings.
        if jobs.signature[job] < 0 or waiting < len(jobs.tasks[job]):
            return tuple(self._look_up_places(job, is_domain=is_domain))
        labels = self.labels_that_matter(job)
        kind = int(jobs.queue[job]), is_domain, int(jobs.signature[job]), labels, needed, waiting
        if kind not in self._shared:
            self._shared[kind] = tuple(self._look_up_places(job, is_domain=is_domain))
        return self._shared[kind]

    def _look_up_places(self, job: int, *, is_domain: bool) -> Iterator[Blocker]:
        view, row = self._view, self._view.waiting_rows(job)[0]
        found: Blocker | None
        if is_domain:
            found = room.in_one_label_domain(view, job) or domains.in_labels(view, job, row)
            found = found or nodes.against(view, job, row)
        else:
            found = nodes.against(view, job, row) or nodes.too_few_fit(view, job, row)
            found = found or nodes.too_few_places(view, job, row) or domains.in_labels(view, job, row)
        if found is not None:
            yield found

    @cached_property
    def _not_placed(self) -> dict[int, Waits]:
        if all(group is None or group.gang is None for group in self._tables.jobs.groups):
            return {}
        return why_not_placed(self._trace) | why_not_tried(self._tables, QueueTree(self._tables))


def _names_change(blocker: Blocker) -> bool:
    """Return True if it is known what to change, beside that a plugin must no longer refuse."""
    return not any(
        isinstance(change, NotKnown) or (isinstance(change, ChangeNodes) and change.plugin) for change in blocker.lift
    )


def blockers_of(outcome: Outcome) -> dict[str, tuple[Blocker, ...]]:
    """By PodGroup key: what blocks each job of the session that waits."""
    found = Blockers(outcome)
    return {outcome.tables.jobs.uids[job]: found.of(job) for job in found.waiting.tolist()}
