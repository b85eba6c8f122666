"""What is nearest in the way of each job that waits after a cycle, and what each of its pods waits for."""

from __future__ import annotations

from pumice.framework.cycle.outcome import Outcome
from pumice.model.blockers import Blocker
from pumice.model.pod import UNREAD_GATE, Pod
from pumice.model.status import TaskStatus
from pumice.reasons.blockers import Blockers
from pumice.reasons.shown_names import ShownNames


def nearest_of(outcome: Outcome) -> dict[str, Blocker]:
    """Return by PodGroup key the nearest blocker of each job of the session that waits, with jobs named as people call
    them."""
    found, uids, shown = Blockers(outcome), outcome.tables.jobs.uids, ShownNames(outcome.tables)
    return {uids[job]: shown.named(found.nearest(job)) for job in found.waiting.tolist()}


def why_pods_wait(outcome: Outcome) -> dict[str, str]:
    """Return by pod key, for every pod of the session's jobs that waits without a reservation, why: a gate of its own,
    what its language writes to a pod that was tried, or else what is nearest in the way of its job."""
    found, tables, shown = Blockers(outcome), outcome.tables, ShownNames(outcome.tables)
    tasks, notices = tables.tasks, {notice.pod: notice.message for notice in outcome.notices()}
    why: dict[str, str] = {}
    for job in found.waiting.tolist():
        rows = tables.jobs.tasks[job]
        nearest = ""
        tried = _was_tried(outcome, found, job)
        for row in rows[tasks.status[rows] == TaskStatus.PENDING].tolist():
            pod = tasks.pods[row]
            text = _gated(pod, is_lifted=bool(tasks.gate_off[row])) or (tried and notices.get(pod.key)) or nearest
            if not text:
                text = nearest = shown.sentence(found.nearest(job))
            why[pod.key] = text
    return why


def _gated(pod: Pod, *, is_lifted: bool) -> str:
    """Return which gate holds one pod back, "" if none does."""
    if UNREAD_GATE in pod.gates:
        return f"cannot be read: {'; '.join(pod.unparsable)}"
    if is_lifted:
        return "its queue takes it on: its scheduling gate is taken off now"
    return f"held back by its scheduling gate {', '.join(pod.gates)}" if pod.gates else ""


def _was_tried(outcome: Outcome, found: Blockers, job: int) -> bool:
    """Return True if the cycle looked for nodes for a job, so that what it writes to the pods is about nodes."""
    trace = outcome.trace
    last_trial = trace.undone_of(job)
    was_undone = last_trial is not None and bool((last_trial.status >= 0).any())
    return found.is_gang(job) or bool(trace.errors_of(job)) or was_undone
