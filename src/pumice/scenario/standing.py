"""Jobs in their order, by queue, kept in step with what is committed: so that nobody sorts them for each job that looks
for room."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable
from typing import Any

from pumice.columns.dtypes import AnyArray
from pumice.framework.session import Session
from pumice.scenario.parts import Chunk

#: A job with its key, which ends in age and UID.
Entry = tuple[Any, int]


class Standing:
    """Some jobs by queue, the best one first. ``alone``: what would leave of jobs of one task, as far as it is known.

    Jobs that are put there get their keys when somebody looks at their queue, all of them at once.
    """

    def __init__(self, ssn: Session, rows: AnyArray) -> None:
        self._ssn = ssn
        self._entry_of: dict[int, Entry] = {}
        self.alone: dict[int, Chunk] = {}
        self._lines: dict[int, list[Entry]] = {}
        self._coming: dict[int, dict[int, None]] = {}  # by queue: those without a key
        queue = ssn.tables.jobs.queue[rows].tolist()
        keys = ssn.order.job_keys()(rows.tolist()) if len(rows) else []
        for entry, leaf in zip(zip(keys, rows.tolist(), strict=True), queue, strict=True):
            self._lines.setdefault(leaf, []).append(entry)
            self._entry_of[entry[1]] = entry
        for entries in self._lines.values():
            entries.sort()

    def __contains__(self, job: int) -> bool:
        return job in self._entry_of or job in self._coming.get(self._leaf(job), ())

    def _leaf(self, job: int) -> int:
        return int(self._ssn.tables.jobs.queue[job])

    @property
    def leaves(self) -> Collection[int]:
        """Queues that have, or had, any."""
        return self._lines.keys()

    def line(self, leaf: int) -> list[Entry]:
        """Those of a queue, with their keys."""
        coming = self._coming.pop(leaf, None)
        if coming:
            jobs = list(coming)
            for entry in zip(self._ssn.order.job_keys()(jobs), jobs, strict=True):
                self._entry_of[entry[1]] = entry
                insort(self._lines[leaf], entry)
        return self._lines.get(leaf, [])

    def key(self, job: int) -> Any:
        """The key of one of them."""
        self.line(self._leaf(job))
        return self._entry_of[job][0]

    def put(self, jobs: Iterable[int], *, there: Iterable[int]) -> None:
        """Some jobs changed: those that are to be ``there`` take their place anew, the others are out."""
        stay = set(there)
        for job in jobs:
            leaf = self._leaf(job)
            self.alone.pop(job, None)
            old = self._entry_of.pop(job, None)
            if old is not None:
                line = self._lines[leaf]
                del line[bisect_left(line, old)]
            elif leaf in self._coming:
                self._coming[leaf].pop(job, None)
            if job in stay:
                self._lines.setdefault(leaf, [])
                self._coming.setdefault(leaf, {})[job] = None
