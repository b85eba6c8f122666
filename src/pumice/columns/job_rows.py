"""Rows of the job table as arrays, for hooks that answer for many jobs at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from pumice.columns.counting import ACTIVE, READY
from pumice.columns.dtypes import F64, I32, I64, AnyArray, Bool
from pumice.columns.label_values import LabelValues
from pumice.columns.rows import A, Rows, scattered
from pumice.columns.tables import Tables
from pumice.columns.views import Job
from pumice.model.workloads.podgroup import PodGroup


class JobRows(Rows):
    """Some rows of the job table, for hooks that answer for many jobs at once.

    With ``active`` the rows are hypothetical: it has, by row of sub-job, the number of active tasks where it differs
    from the present one. A hook cannot tell the difference.
    """

    __slots__ = ("_active",)

    def __init__(self, tables: Tables, rows: AnyArray, active: Mapping[int, int] | None = None) -> None:
        super().__init__(tables, rows)
        self._active = active

    def __iter__(self) -> Iterator[Job]:
        """Iterate over the jobs."""
        return (Job(self.tables, row) for row in self.rows.tolist())

    def scatter(self, values: A) -> A:
        """Return an array for all jobs with ``values`` (rows, …) at these rows and zero elsewhere: initial values for
        a column of jobs."""
        return scattered(values, self.rows, self.tables.jobs.capacity)

    @property
    def names(self) -> list[str]:
        """The name of each pod group."""
        return [job.name for job in self]

    @property
    def namespaces(self) -> list[str]:
        """The namespace of each pod group."""
        return [job.namespace for job in self]

    @property
    def groups(self) -> list[PodGroup]:
        """The latest pod groups."""
        groups = self.tables.jobs.groups
        return [groups[row] for row in self.rows.tolist()]

    @property
    def labels(self) -> list[Mapping[str, str]]:
        """The labels of each pod group, completed by labels of its first pod that the group does not have."""
        return [job.labels for job in self]

    def label(self, key: str) -> LabelValues:
        """Return the value of one label (see ``labels``) for each job."""
        # Not from ``labels``, which merges two dictionaries for each job.
        jobs, pods, each = self.tables.jobs, self.tables.tasks.pods, []
        for row in self.rows.tolist():
            value = jobs.groups[row].labels.get(key)
            if value is None:
                tasks = jobs.tasks[row]
                value = pods[tasks[0]].labels.get(key, "") if len(tasks) else ""
            each.append(value)
        return LabelValues.of(each)

    @property
    def annotations(self) -> list[Mapping[str, str]]:
        """The annotations of each pod group."""
        return [group.annotations for group in self.groups]

    @property
    def queue(self) -> I32:
        """The row of each job's queue. Shape (rows,)."""
        return self.tables.jobs.queue[self.rows]

    @property
    def surplus(self) -> I64:
        """For each job -1, 0 or 1: it holds less than its minimums, just these, or more. Shape (rows,).

        A sub-job with less than its minimum decides for the job (-1), else one with more (1).
        """
        jobs, subs = self.tables.jobs, self.tables.subs
        found = np.zeros(len(self.rows), dtype=np.int64)
        each = [jobs.subs[row] for row in self.rows.tolist()]
        lengths = [len(parts) for parts in each]
        if not sum(lengths):
            return found
        flat = np.array([sub for parts in each for sub in parts])
        have = subs.counts[flat] @ ACTIVE
        if self._active is not None:
            have = np.array([self._active.get(s, h) for s, h in zip(flat.tolist(), have.tolist(), strict=True)])
        over: I64 = np.sign(have - subs.min_available[flat]).astype(np.int64)
        # Nearly all jobs have one sub-job: ``over`` has a row for each job then, and nothing has to be grouped.
        if len(flat) == len(found) == sum(lengths) and max(lengths) == 1:
            return over
        job = np.repeat(np.arange(len(found)), lengths)
        np.maximum.at(found, job, over)
        # Last, for -1 goes before what another sub-job of the same job has more than its minimum.
        found[job[over < 0]] = -1
        return found

    @property
    def priority(self) -> I64:
        """The priority of each job. Shape (rows,)."""
        return self.tables.jobs.priority[self.rows]

    @property
    def creation(self) -> F64:
        """The creation time of each pod group, seconds since the epoch. Shape (rows,)."""
        return self.tables.jobs.creation[self.rows]

    @property
    def estimate_s(self) -> F64:
        """Seconds that each job is expected to run, 0 if unknown. Shape (rows,)."""
        return self.tables.jobs.estimate_s[self.rows]

    @property
    def ready(self) -> Bool:
        """True where the minimum is placed (``Job.is_ready``). Shape (rows,)."""
        jobs = self.tables.jobs
        have = jobs.counts[self.rows] @ READY + jobs.best_effort[self.rows]
        return np.asarray(have >= jobs.min_available[self.rows])
