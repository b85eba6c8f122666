"""What running jobs hold, since when, and when they are expected to end."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from pumice.columns.dtypes import F64, AnyArray
from pumice.columns.nodes import IDLE, RELEASING
from pumice.framework.cycle.session import Session
from pumice.model.status import ALLOCATED_STATUSES
from pumice.model.workloads.estimate import expected_end_s
from pumice.ours.reservations.room_over_time import RoomOverTime

HOLDING = sorted(ALLOCATED_STATUSES)


class RunningJobs:
    """The running jobs of a session. ``unknown_s``: estimate of jobs that have none. ``grace_s``: for how long after
    its estimate a job may take to end."""

    def __init__(self, ssn: Session, unknown_s: float, grace_s: float) -> None:
        self.ssn, self._unknown_s, self._grace_s = ssn, unknown_s, grace_s

    @cached_property
    def holding(self) -> AnyArray:
        """Return the rows of tasks that hold a node."""
        tasks = self.ssn.tables.tasks
        found: AnyArray = (tasks.alive & (tasks.node >= 0) & np.isin(tasks.status, HOLDING)).nonzero()[0]
        return found

    def room(self, ends: F64) -> RoomOverTime:
        """Return the room that there will be if jobs end at these moments, (J,)."""
        tables = self.ssn.tables
        tasks, rows = tables.tasks, self.holding
        job = tasks.job[rows]
        # Pods without a job, such as those of a DaemonSet, are not expected to end.
        end = np.where(job >= 0, ends[job], np.inf)
        # What is being released counts as free: its pods have been asked to leave.
        free = tables.nodes.books[:, IDLE] + tables.nodes.books[:, RELEASING]
        return RoomOverTime(free, tasks.node[rows], tables.classes.req[tasks.cls[rows]], end)

    @cached_property
    def starts(self) -> F64:
        """Return since when each job is running, ``inf`` for others. Shape (J,)."""
        tables, now = self.ssn.tables, self.ssn.now
        found = np.full(tables.jobs.capacity, np.inf)
        for job in (tables.jobs.alive & (tables.jobs.counts[:, HOLDING].sum(axis=1) > 0)).nonzero()[0].tolist():
            # One pod of a gang tells when it started: they run together.
            pod = tables.tasks.pods[tables.jobs.tasks[job][0]]
            found[job] = now if pod.start_time is None else pod.start_time
        return found

    @cached_property
    def ends(self) -> F64:
        """Return when each running job is expected to end, ``inf`` for others. Shape (J,)."""
        found = np.full(len(self.starts), np.inf)
        for job in np.isfinite(self.starts).nonzero()[0].tolist():
            found[job] = expected_end_s(float(self.starts[job]), self.estimate(job), self.ssn.now)
        return found

    def estimate(self, job: int) -> float:
        """Return how long a job is expected to run, in seconds."""
        return float(self.estimates[job])

    @cached_property
    def estimates(self) -> F64:
        """Return how long each job is expected to run, in seconds. Shape (J,)."""
        known: F64 = self.ssn.tables.jobs.estimate_s
        return np.where(known > 0, known, self._unknown_s) + self._grace_s
