"""Jobs in their order, by queue, kept in step with what is committed: so that nobody sorts them for each job that looks
for room."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Any

from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.session import Session
from pumice.kai.engine.parts import Chunk

#: A job with its key, which ends in age and UID.
Entry = tuple[Any, int]


class Standing:
    """Some jobs by queue, the best one first. ``alone``: what would leave of jobs of one task, as far as it is known.

    They are put in order for the first who looks, if there is one. Jobs that are put there later get their keys when
    somebody looks at their queue, all of them at once.
    """

    def __init__(self, ssn: Session, rows: AnyArray) -> None:
        self._ssn, self._rows = ssn, rows
        self.alone: dict[int, Chunk] = {}
        self._coming: dict[int, dict[int, None]] = {}  # by queue: those without a key

    @cached_property
    def _entry_of(self) -> dict[int, Entry]:
        rows = self._rows.tolist()
        keys = self._ssn.order.job_keys()(rows) if rows else []
        return dict(zip(rows, zip(keys, rows, strict=True), strict=True))

    @cached_property
    def _lines(self) -> dict[int, list[Entry]]:
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
        stay, lines = set(there), self._lines
        for job in jobs:
            leaf = self._leaf(job)
            self.alone.pop(job, None)
            old = self._entry_of.pop(job, None)
            if old is not None:
                del lines[leaf][bisect_left(lines[leaf], old)]
            elif leaf in self._coming:
                self._coming[leaf].pop(job, None)
            if job in stay:
                lines.setdefault(leaf, [])
                self._coming.setdefault(leaf, {})[job] = None
