"""Keep jobs sorted by queue while commits change them, so that no search sorts them again."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Any

from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.session import Session
from pumice.kai.engine.parts import Chunk

#: The sort key of a job, which ends in age and UID, and the job's row.
Entry = tuple[Any, int]


class SortedJobs:
    """Jobs sorted by queue, the best first. ``alone`` caches chunks of jobs with one task."""

    def __init__(self, ssn: Session, rows: AnyArray) -> None:
        self._ssn, self._rows = ssn, rows
        self.alone: dict[int, Chunk] = {}
        # Per queue, jobs whose key is not computed yet. A key costs a call of every order plugin, so they are collected
        # until a search reads the queue and then computed at once.
        self._coming: dict[int, dict[int, None]] = {}

    @cached_property
    def _entry_of(self) -> dict[int, Entry]:
        """Return the entry of each job; computed when first needed."""
        rows = self._rows.tolist()
        keys = self._ssn.order.job_keys()(rows) if rows else []
        return dict(zip(rows, zip(keys, rows, strict=True), strict=True))

    @cached_property
    def _lines(self) -> dict[int, list[Entry]]:
        """Return the sorted entries of each queue; computed when first needed."""
        found: dict[int, list[Entry]] = {}
        queue = self._ssn.tables.jobs.queue[self._rows].tolist()
        for entry, leaf in zip(self._entry_of.values(), queue, strict=True):
            found.setdefault(leaf, []).append(entry)
        for entries in found.values():
            entries.sort()
        return found

    def __contains__(self, job: int) -> bool:
        return job in self._entry_of or job in self._coming.get(self._leaf(job), ())

    def _leaf(self, job: int) -> int:
        """Return the queue of a job."""
        return int(self._ssn.tables.jobs.queue[job])

    @property
    def leaves(self) -> Collection[int]:
        """Queues that have, or had, any of the jobs."""
        return self._lines.keys()

    def line(self, leaf: int) -> list[Entry]:
        """Return the entries of a queue, sorted."""
        coming = self._coming.pop(leaf, None)
        if coming:
            jobs = list(coming)
            for entry in zip(self._ssn.order.job_keys()(jobs), jobs, strict=True):
                self._entry_of[entry[1]] = entry
                insort(self._lines[leaf], entry)
        return self._lines.get(leaf, [])

    def key(self, job: int) -> Any:
        """Return the key of one of the jobs."""
        self.line(self._leaf(job))
        return self._entry_of[job][0]

    def put(self, jobs: Iterable[int], *, there: Iterable[int]) -> None:
        """Update jobs that changed: those in ``there`` get a new position, the others are removed."""
        stay, lines = set(there), self._lines
        for job in jobs:
            leaf = self._leaf(job)
            self.alone.pop(job, None)
            old = self._entry_of.pop(job, None)
            if old is not None:
                # By bisection on the old key, which must therefore be the one with which the job was inserted. Keys are
                # kept and never computed anew for this.
                del lines[leaf][bisect_left(lines[leaf], old)]
            elif leaf in self._coming:
                self._coming[leaf].pop(job, None)
            if job in stay:
                lines.setdefault(leaf, [])
                self._coming.setdefault(leaf, {})[job] = None
