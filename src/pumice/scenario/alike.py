"""Jobs that fail because one like them has: of one queue, with equal tasks in equal order, and nothing of them placed.

While an action only places tasks, rooms and quotas only shrink; so what one job did not get, its like does not get
later. Jobs of several kinds of tasks are left out (how the first kind was placed decides about the second), and so
are those that must be near each other.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from pumice.framework.session import Session
from pumice.scenario.parts import active_count


class Alike:
    """Failures of one action."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self._why: dict[Hashable, str] = {}
        self._jobs: dict[Hashable, list[int]] = {}

    def kind(self, job: int) -> Hashable | None:
        """Equal for jobs that are alike; None for one that is like no other."""
        jobs, tasks = self._ssn.tables.jobs, self._ssn.tables.tasks
        signature = int(jobs.signature[job])
        if signature < 0 or active_count(jobs.counts[job].tolist()):
            return None
        rows = jobs.tasks[job]
        if len(rows) > 1 and (tasks.cls[rows] != tasks.cls[rows[0]]).any():
            return None
        return int(jobs.queue[job]), signature, bool(jobs.preemptible[job]), int(jobs.priority[job])

    def failed(self, job: int) -> bool:
        """Whether one like it has failed."""
        kind = self.kind(job) if self._why else None
        if kind is None or kind not in self._why:
            return False
        self._jobs[kind].append(job)
        return True

    def fails(self, job: int, why: str) -> None:
        """Note that a job failed."""
        kind = self.kind(job)
        if kind is None:
            self._ssn.story.tell(self._ssn.tables.jobs.uids[job], "not placed", why)
            return
        self._why[kind], self._jobs[kind] = why, [job]

    def tell(self) -> None:
        """Put all of it into the story, once for each kind of failure."""
        for kind, why in self._why.items():
            self._ssn.story.tell_of_jobs(np.array(self._jobs[kind]), "not placed", why)
