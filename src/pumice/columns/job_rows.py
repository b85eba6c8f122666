"""Rows of the job table together, for hooks that answer for many jobs at once."""

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

    ``active``: how many active tasks sub-jobs would have, by row, where that is not what they have. A hook cannot tell
    the difference.
    """

    __slots__ = ("_active",)

    def __init__(self, tables: Tables, rows: AnyArray, active: Mapping[int, int] | None = None) -> None:
        super().__init__(tables, rows)
        self._active = active

    def __iter__(self) -> Iterator[Job]:
        """One handle a row."""
        return (Job(self.tables, row) for row in self.rows.tolist())

    def scatter(self, values: A) -> A:
        """An array with a row for every job: ``values`` (rows, …) at these, zero elsewhere. What a column of jobs may
        begin with."""
        return scattered(values, self.rows, self.tables.jobs.capacity)

    @property
    def names(self) -> list[str]:
        """The name of each one's pod group."""
        return [job.name for job in self]

    @property
    def namespaces(self) -> list[str]:
        """The namespace of each."""
        return [job.namespace for job in self]

    @property
    def groups(self) -> list[PodGroup]:
        """The pod groups as they were last seen. No answer is asked for again because the status of one changed, but
        for the phase."""
        groups = self.tables.jobs.groups
        return [groups[row] for row in self.rows.tolist()]

    @property
    def labels(self) -> list[Mapping[str, str]]:
        """The labels of each one's pod group, and those of its first pod that the group does not have."""
        return [job.labels for job in self]

    def label(self, key: str) -> LabelValues:
        """The value that each has of one label, as ``labels`` has it."""
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
        """The annotations of each one's pod group."""
        return [group.annotations for group in self.groups]

    @property
    def queue(self) -> I32:
        """Row of each one's queue. Shape (rows,)."""
        return self.tables.jobs.queue[self.rows]

    @property
    def surplus(self) -> I64:
        """Whether each holds less than its minimums (-1), just these (0), or more (1); of its sub-jobs the one with the
        least decides, then the one with the most. Shape (rows,)."""
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
        if len(flat) == len(found) == sum(lengths) and max(lengths) == 1:
            return over
        job = np.repeat(np.arange(len(found)), lengths)
        np.maximum.at(found, job, over)
        found[job[over < 0]] = -1
        return found

    @property
    def priority(self) -> I64:
        """Priority of each. Shape (rows,)."""
        return self.tables.jobs.priority[self.rows]

    @property
    def creation(self) -> F64:
        """When each was created, seconds since the epoch. Shape (rows,)."""
        return self.tables.jobs.creation[self.rows]

    @property
    def ready(self) -> Bool:
        """IsReady of each."""
        jobs = self.tables.jobs
        have = jobs.counts[self.rows] @ READY + jobs.best_effort[self.rows]
        return np.asarray(have >= jobs.min_available[self.rows])
