"""Jobs in their order, by queue, kept in step with what is committed: so that nobody sorts them for each job that looks
for room."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import Any

from pumice.columns.dtypes import AnyArray
from pumice.framework.session import Session
from pumice.scenario.parts import Chunk

#: A job with its key, which ends in age and UID.
Entry = tuple[Any, int]


class Standing:
    """Some jobs by queue, the best one first. ``alone``: what would leave of jobs of one task, as far as it is
    known."""

    def __init__(self, ssn: Session, rows: AnyArray) -> None:
        self._ssn = ssn
        self._entry_of: dict[int, Entry] = {}
        self.alone: dict[int, Chunk] = {}
        self.queues: dict[int, list[Entry]] = {}
        queue = ssn.tables.jobs.queue[rows].tolist()
        keys = ssn.order.job_keys()(rows.tolist()) if len(rows) else []
        for entry, leaf in zip(zip(keys, rows.tolist(), strict=True), queue, strict=True):
            self.queues.setdefault(leaf, []).append(entry)
            self._entry_of[entry[1]] = entry
        for entries in self.queues.values():
            entries.sort()

    def __contains__(self, job: int) -> bool:
        return job in self._entry_of

    def key(self, job: int) -> Any:
        """The key of one of them."""
        return self._entry_of[job][0]

    def put(self, jobs: Iterable[int], *, there: Iterable[int]) -> None:
        """Some jobs changed: those that are to be ``there`` take their place anew, the others are out."""
        stay = set(there)
        for job in jobs:
            leaf = int(self._ssn.tables.jobs.queue[job])
            self.alone.pop(job, None)
            old = self._entry_of.pop(job, None)
            if old is not None:
                del self.queues[leaf][bisect_left(self.queues[leaf], old)]
            if job in stay:
                entry = self._entry_of[job] = (self._ssn.order.job_keys()([job])[0], job)
                insort(self.queues.setdefault(leaf, []), entry)
