"""resourcequota: admit a job while its minimum fits the ResourceQuotas of its namespace.

Source: Volcano resourcequota plugin.
"""

from __future__ import annotations

import numpy as np

from pumice.api import (
    F64,
    Job,
    PodGroup,
    QueueLimit,
    Resource,
    ResourceLimit,
    Session,
    TaskStatus,
    Vote,
    plugin,
    points,
)
from pumice.model.blockers import RESOURCE_QUOTA


@plugin("resourcequota")
class ResourceQuotas:
    """Vote on admission by quotas.

    Over the L names that any quota limits: ``hard`` (quotas, L), inf if a quota does not limit a name; ``used``;
    ``pending`` (namespaces, L), what was admitted in this session.

    ``ownCountedOnce``: pods of the job that exist are counted by the quota already, so only the rest of the minimum is
    asked for. In Volcano such a group counts twice, and may wait for itself for ever (volcano#4220).
    """

    def __init__(self, ssn: Session, *, ownCountedOnce: bool = False) -> None:
        self.ssn, self.own_counted_once = ssn, ownCountedOnce
        quotas = ssn.tables.quotas.objs
        self._names = sorted({name for quota in quotas for name in quota.limited})
        # Per namespace and not per quota: what is admitted counts against every quota of its namespace.
        self._place = {name: at for at, name in enumerate(dict.fromkeys(quota.namespace for quota in quotas))}
        self._of_namespace: dict[str, list[int]] = {name: [] for name in self._place}
        self.hard = np.full((len(quotas), len(self._names)), np.inf)
        self.used = np.zeros_like(self.hard)
        for row, quota in enumerate(quotas):
            self._of_namespace[quota.namespace].append(row)
            limited = np.isin(self._names, quota.limited)
            # Infinity where a quota is silent, so that one comparison serves all quotas and names.
            self.hard[row] = np.where(limited, self._amounts(quota.hard), np.inf)
            self.used[row] = self._amounts(quota.used)
        # No code reads this column. It makes memoized answers rest on the quotas.
        ssn.column("resourcequota.quotas", values=np.stack([self.hard, self.used]))
        self.pending = ssn.column("resourcequota.pending", values=np.zeros((len(self._place), len(self._names))))
        self.unused_points = () if len(quotas) else (points.job_enqueueable, points.job_enqueued)

    def _amounts(self, resource: Resource | None) -> F64:
        """Return the amounts of the limited names."""
        return np.array([0.0 if resource is None else resource.get(name) for name in self._names])

    def _minimum(self, job: Job) -> F64 | None:
        """Return the minimum of a job, or None if no quota concerns it."""
        group: PodGroup = job.group
        if group.min_resources is None or group.namespace not in self._place:
            return None
        asked = self._amounts(group.min_resources)
        return np.maximum(asked - self._counted(job), 0.0) if self.own_counted_once else asked

    def _counted(self, job: Job) -> F64:
        """Return what quotas count of the pods of a job."""
        tasks, found = self.ssn.tables.tasks, np.zeros(len(self._names))
        for row in self.ssn.tables.jobs.tasks[job.row].tolist():
            # The quota controller does not count pods that have ended.
            if tasks.status[row] not in (TaskStatus.SUCCEEDED, TaskStatus.FAILED):
                found += self._amounts(tasks.pods[row].spec.request)
        return found

    @points.job_enqueueable
    def job_enqueueable(self, job: Job) -> Vote | QueueLimit:
        """Permit if every quota of the namespace has room for the minimum, in the names that the quota limits."""
        asked = self._minimum(job)
        if asked is None:
            return Vote.PERMIT
        pending = self.pending.array[self._place[job.group.namespace]]
        for row in self._of_namespace[job.group.namespace]:
            # A quota that is exceeded in names that the job does not ask for does not reject it.
            if ((self.used[row] + pending + asked > self.hard[row]) & (asked > 0)).any():
                return self._refusal(row, asked)
        return Vote.PERMIT

    @points.job_enqueued
    def job_enqueued(self, job: Job) -> None:
        """Count the minimum of an admitted job."""
        asked = self._minimum(job)
        if asked is not None:
            # The quota controller counts pods, and the pods of an admitted job do not exist yet. So what this session
            # has admitted is added by hand.
            self.ssn.journal.add(self.pending, self._place[job.group.namespace], asked)

    def _refusal(self, row: int, asked: F64) -> QueueLimit:
        """Return the limit of a quota, with the amounts of all names that it limits, in the order of Volcano's text."""
        limited = np.flatnonzero(np.isfinite(self.hard[row])).tolist()
        quota = self.ssn.tables.quotas.objs[row]
        pending = self.pending.array[self._place[quota.namespace]]
        amounts = [each[limited].tolist() for each in (self.hard[row], self.used[row], pending, asked)]
        names = [self._names[at] for at in limited]
        resources = tuple(ResourceLimit(*each) for each in zip(names, *amounts, strict=True))
        return QueueLimit(quota.key, RESOURCE_QUOTA, resources)
