"""What is nearest in the way of each job that waits after a cycle, and what each of its pods waits for."""

from __future__ import annotations

from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.outcome import Outcome
from pumice.model.blockers import Blocker
from pumice.model.pod import UNREAD_GATE, Pod
from pumice.model.status import TaskStatus
from pumice.reasons.blockers import Blockers
from pumice.reasons.sentences import sentence
from pumice.reasons.shown_names import ShownNames


class NearestBlockers:
    """The nearest blocker of each job of one cycle that waits, with jobs named as people call them."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self._blockers, self._shown = Blockers(outcome), ShownNames(outcome.tables)
        self._found: dict[int, Blocker] = {}

    @property
    def waiting(self) -> AnyArray:
        """Rows of the jobs that wait, rising."""
        return self._blockers.waiting

    def of(self, job: int) -> Blocker:
        """Return the nearest blocker of a job that waits, by row."""
        # Kept, because the reasons of pods and the hints of jobs of one cycle both ask for it.
        if job not in self._found:
            self._found[job] = self._shown.named(self._blockers.nearest(job))
        return self._found[job]

    def by_key(self) -> dict[str, Blocker]:
        """Return the nearest blocker of each job that waits, by PodGroup key."""
        uids = self.outcome.tables.jobs.uids
        return {uids[job]: self.of(job) for job in self.waiting.tolist()}

    def was_tried(self, job: int) -> bool:
        """Return True if the cycle looked for nodes for a job, so that what it writes to the pods is about nodes."""
        trace = self.outcome.trace
        last_trial = trace.undone_of(job)
        was_undone = last_trial is not None and bool((last_trial.status >= 0).any())
        return self._blockers.is_gang(job) or bool(trace.errors_of(job)) or was_undone


def why_pods_wait(blockers: NearestBlockers) -> dict[str, str]:
    """Return by pod key, for every pod of the session's jobs that waits without a reservation, why: a gate of its own,
    what its language writes to a pod that was tried, or else what is nearest in the way of its job."""
    outcome, tables = blockers.outcome, blockers.outcome.tables
    tasks, notices = tables.tasks, {notice.pod: notice.message for notice in outcome.notices()}
    why: dict[str, str] = {}
    for job in blockers.waiting.tolist():
        rows = tables.jobs.tasks[job]
        nearest = ""
        tried = blockers.was_tried(job)
        for row in rows[tasks.status[rows] == TaskStatus.PENDING].tolist():
            pod = tasks.pods[row]
            text = _gated(pod, is_lifted=bool(tasks.gate_off[row])) or (tried and notices.get(pod.key)) or nearest
            if not text:
                text = nearest = sentence(blockers.of(job))
            why[pod.key] = text
    return why


def _gated(pod: Pod, *, is_lifted: bool) -> str:
    """Return which gate holds one pod back, "" if none does."""
    if UNREAD_GATE in pod.gates:
        return f"cannot be read: {'; '.join(pod.unparsable)}"
    if is_lifted:
        return "its queue takes it on: its scheduling gate is taken off now"
    return f"held back by its scheduling gate {', '.join(pod.gates)}" if pod.gates else ""
