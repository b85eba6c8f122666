"""What people call the jobs of a cycle, and blockers as sentences with these names.

Blockers hold keys, by which programs find a job. The key of a PodGroup that was made for pods without one is a uid,
which says nothing to people; they know its pod, or the owner of its pods.
"""

from __future__ import annotations

from functools import cached_property

from msgspec.structs import replace

from pumice.columns.tables import Tables
from pumice.model import blockers as b
from pumice.model.blockers import Blocker
from pumice.model.workloads.bare_pods import is_bare, shown_name
from pumice.reasons.sentences import sentence


class ShownNames:
    """The names of the jobs in the tables of one cycle."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def of(self, key: str) -> str:
        """Return what people call a job, by key; the key of one that is not in the cycle."""
        # Asked first, because there may be 100,000 jobs, most of them with a PodGroup of their own.
        if not is_bare(key):
            return key
        row = self._bare.get(key)
        return key if row is None else self._of_row(row)

    def sentence(self, blocker: Blocker) -> str:
        """Return a blocker as a sentence in which jobs have these names."""
        return sentence(self.named(blocker))

    @cached_property
    def _bare(self) -> dict[str, int]:
        """The rows of jobs that may have been made for pods without a PodGroup, by key."""
        jobs = self._tables.jobs
        return {jobs.uids[row]: row for row in jobs.alive.nonzero()[0].tolist() if is_bare(jobs.uids[row])}

    def _of_row(self, row: int) -> str:
        jobs, pods = self._tables.jobs, self._tables.tasks.pods
        return shown_name(jobs.uids[row], (pods[task] for task in jobs.tasks[row].tolist()))

    def _all(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(self.of, keys)) if any(map(is_bare, keys)) else keys

    def named(self, blocker: Blocker) -> Blocker:
        """Return a blocker with these names where it holds keys."""
        match blocker:
            case b.NotAdmitted(by):
                return replace(blocker, by=tuple(map(self.named, by)))
            case b.GangPartial(first=b.Blocker() as first):
                return replace(blocker, first=self.named(first))
            case b.CannotEvict(because=b.Blocker() as because):
                return replace(blocker, because=self.named(because))
            case b.QueueLimit():
                return replace(blocker, holders=self._all(blocker.holders))
            case b.Reserved():
                return replace(blocker, by=self._all(blocker.by))
            case b.RoomReserved():
                return replace(blocker, holder=self.of(blocker.holder))
            case b.StartReserved():
                moved_by = tuple(replace(each, job=self.of(each.job)) for each in blocker.moved_by)
                return replace(blocker, waits_for=self._all(blocker.waits_for), moved_by=moved_by)
            case b.Behind():
                return replace(blocker, jobs=self._all(blocker.jobs))
        return blocker
