"""A hint for each job that waits: one sentence with numbers, about the blocker that is nearest to its being placed.

Beside Volcano's texts, which stay as they are. What a hint names, changed as it says, changes the filter_result
(docs/decisions/0034; ``tests/cases/hints`` holds each to that).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pumice.columns.dtypes import Bool
from pumice.columns.jobs import PENDING_PHASE
from pumice.explain import gangs, queues, room, selection
from pumice.explain.view import View
from pumice.explain.words import joined, meant
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.trace import is_invalid
from pumice.model.events import Object
from pumice.model.pod import Pod
from pumice.model.queue import Queue
from pumice.model.status import TaskStatus
from pumice.model.workloads.podgroup import PodGroup

#: Characters of a hint.
LENGTH_MAX = 140
_ENDED = ("Succeeded", "Failed")


def hints(outcome: Outcome, only: Bool | None = None) -> dict[str, str]:
    """By PodGroup key: what would help each job of the session that waits; a job of which nothing is known is left out.

    Equal jobs share the work. ``only``: these rows of jobs. Shape (J,).
    """
    return dict(_Hints(outcome).of_jobs(only))


class _Hints:
    def __init__(self, outcome: Outcome) -> None:
        self.view = View(outcome)
        self.invalid = {e.subject for e in outcome.trace.entries if is_invalid(e.finding)}
        self._known: dict[tuple[object, ...], str] = {}

    def of_jobs(self, only: Bool | None) -> Iterable[tuple[str, str]]:
        jobs, live = self.view.tables.jobs, self.view.outcome.live_jobs
        waits = (jobs.counts[live, TaskStatus.PENDING] > 0) | (jobs.counts[live, TaskStatus.PIPELINED] > 0)
        live = live[waits | (jobs.phase[live] == PENDING_PHASE)]
        for job in (live if only is None else live[only[live]]).tolist():
            said = "" if jobs.barred[job] else gangs.reserved(self.view, job) or self._known_or_new(job)
            if said:
                yield jobs.uids[job], shortened(said)

    def _known_or_new(self, job: int) -> str:
        """Jobs that failed as one, or ask alike for admission to one queue, wait for the same."""
        jobs, trace = self.view.tables.jobs, self.view.trace
        if jobs.phase[job] == PENDING_PHASE:
            kind: tuple[object, ...] = (int(jobs.queue[job]), jobs.min_resources[job].tobytes())
        elif trace.failed_as[job] and jobs.signature[job] >= 0:
            kind = (int(jobs.queue[job]), int(trace.failed_as[job]), int(jobs.signature[job]))
        else:
            return self._hint(job)
        if kind not in self._known:
            self._known[kind] = self._hint(job)
        return self._known[kind]

    def _hint(self, job: int) -> str:
        view, jobs = self.view, self.view.tables.jobs
        if jobs.phase[job] == PENDING_PHASE:
            return queues.not_admitted(view, job)
        if jobs.uids[job] in self.invalid:
            return gangs.incomplete(view, job) or gangs.held_back(view, job)
        said = gangs.held_back(view, job)
        if said:
            return said
        row = view.first_failed(job)
        if row is not None:
            return self._no_node(job, row)
        rows = view.waiting_rows(job)
        if not rows:
            return gangs.incomplete(view, job)
        return room.not_there(view, rows[0]) or queues.turned_away(view, job) or self._no_node(job, rows[0])

    def _no_node(self, job: int, row: int) -> str:
        """Nodes were looked at for a task, and none would do."""
        view, spec, request = self.view, self.view.spec(row), self.view.request(row)
        said = room.not_there(view, row)
        if said:
            return said
        nodes = selection.selected(view, spec)
        if not nodes.any():
            return selection.no_such_node(view, spec)
        labels = joined([selection.said(each) for each in selection.wanted_labels(spec)])
        said = room.too_large(view, request, nodes, f" with {labels}" if labels and not nodes.all() else "")
        if said:
            return said
        may = nodes & selection.open_to(view, spec) & (view.tables.nodes.barred_by == 0)
        if not may.any():
            return selection.all_closed(view, spec, nodes)
        return room.in_one_hypernode(view, job) or self._among(job, row, nodes, may)

    def _among(self, job: int, row: int, nodes: Bool, may: Bool) -> str:
        """Of the nodes that it ``may`` go to, none has room, or the room is no use."""
        view, spec, request = self.view, self.view.spec(row), self.view.request(row)
        fits, pod = view.fits(request, view.future), view.tables.tasks.pods[row]
        rows, placed = may.nonzero()[0], self._placed(job)
        needed, left = view.needed(job), view.needed(job) - len(placed)
        if (may & fits).any():
            there = may & fits
            said = (
                selection.near_nobody(view, spec, pod.namespace)
                or selection.ports(view, spec, there)
                or selection.keeps_apart(view, spec, pod.namespace, there, max(left, 1), needed)
                or selection.spread(view, spec, row, may, fits, placed)
                or room.all_slots_used(view, there.nonzero()[0], request)
            )
            return said or (room.some_fit(view, len(placed), needed, request, rows) if 0 < left < needed else "")
        closed = (nodes & fits & ~may).nonzero()[0].tolist()
        if closed:
            return selection.room_on_closed(view, spec, closed, rows, request)
        said = room.taken_in_turn(view, job, request, rows) or room.of_other_schedulers(
            view, pod.scheduler_name, request, rows
        )
        if not said and not nodes.all():
            said = selection.few_selected(view, spec, nodes, request)
        return said or room.not_enough(view, request, rows)

    def _placed(self, job: int) -> list[int]:
        """Nodes of the tasks that the last try had placed, before it was undone."""
        last_trial = self.view.trace.undone_of(job)
        if last_trial is None:
            return []
        found: list[int] = last_trial.node[last_trial.status == TaskStatus.ALLOCATED].tolist()
        return found


def shortened(text: str) -> str:
    """At most so many characters: a sentence, not a page."""
    return text if len(text) <= LENGTH_MAX else f"{text[: LENGTH_MAX - 1].rstrip()}…"


def hints_outside(objects: Collection[Object], scheduler_names: Collection[str] | None = None) -> dict[str, str]:
    """By PodGroup key: jobs that no session sees, or not with all their pods, for what they name is not there.

    ``scheduler_names``: whose pods are placed here, None: everybody's.
    """
    groups = {obj.key: obj for obj in objects if isinstance(obj, PodGroup)}
    there = sorted(obj.name for obj in objects if isinstance(obj, Queue))
    found: dict[str, str] = {}
    for pod in objects:
        if not isinstance(pod, Pod) or pod.node_name or pod.phase in _ENDED or not pod.group_key:
            continue
        said = _outside(pod, groups, there, scheduler_names)
        if said and pod.group_key not in found:
            found[pod.group_key] = shortened(said)
    return found


def _outside(
    pod: Pod, groups: Mapping[str, PodGroup], queues_there: list[str], scheduler_names: Collection[str] | None
) -> str:
    if scheduler_names is not None and pod.scheduler_name not in scheduler_names:
        ours = joined(sorted(scheduler_names))
        return f"its pods name the scheduler {pod.scheduler_name}; Pumice places those of {ours}"
    group = groups.get(pod.group_key)
    if group is None:
        other = meant(pod.group_key, groups)
        return f"PodGroup {pod.group_key} is not there" + (f"; did you mean {other}?" if other else "")
    if group.queue and group.queue not in queues_there:
        return queues.missing(group.queue, queues_there)
    return ""
