"""Jobs that fail because one like them has: of one queue, with equal tasks in equal order, and nothing of them placed.

Jobs of several kinds of tasks are left out (how the first kind was placed decides about the second), and so are those
that must be near each other.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pumice.columns.counting import ACTIVE
from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.session import Session
from pumice.model.blockers import Blocker

_Kind = tuple[int, int, bool, int]


class Alike:
    """Failures of one action, of the jobs that waited when it began."""

    def __init__(self, ssn: Session, rows: AnyArray) -> None:
        self._ssn = ssn
        jobs = ssn.tables.jobs
        columns = (jobs.queue, jobs.signature, jobs.preemptible, jobs.priority)
        apart = (jobs.signature[rows] < 0) | (jobs.counts[rows] @ ACTIVE > 0)
        kinds: Iterable[_Kind] = zip(*(column[rows].tolist() for column in columns), strict=True)
        self._kind: dict[int, _Kind | None] = {
            job: None if alone else kind for job, kind, alone in zip(rows.tolist(), kinds, apart.tolist(), strict=True)
        }
        self._why: dict[_Kind | None, Blocker] = {}
        self._told: list[tuple[int, Blocker]] = []

    def failed(self, job: int) -> bool:
        """Whether one like it has failed; it has then, too."""
        why = self._why.get(self._kind[job])
        if why is None:
            return False
        self._told.append((job, why))
        return True

    def leading(self, jobs: Iterable[int]) -> int:
        """How many of the first of some jobs fail as one like each of them has."""
        count = 0
        for job in jobs:
            if not self.failed(job):
                break
            count += 1
        return count

    def fails(self, job: int, why: Blocker, *, alike: bool = True) -> None:
        """A job failed; ``alike``: as all like it would."""
        self._told.append((job, why))
        kind = self._kind[job]
        if kind is not None and alike and self._is_uniform(job):
            self._why[kind] = why

    def _is_uniform(self, job: int) -> bool:
        tables = self._ssn.tables
        classes = tables.tasks.cls[tables.jobs.tasks[job]]
        return bool((classes == classes[0]).all())

    def placed(self, job: int) -> None:
        """Something of a job was placed: it is like no other."""
        self._kind[job] = None

    def forget(self) -> None:
        """Others may fare better from now on."""
        self._why.clear()

    def tell(self) -> None:
        """Put all of it into the trace, an entry for each reason."""
        by_reason: dict[Blocker, list[int]] = {}
        for job, why in self._told:
            by_reason.setdefault(why, []).append(job)
        for why, jobs in by_reason.items():
            self._ssn.trace.tell_of_jobs(np.array(jobs), why)
