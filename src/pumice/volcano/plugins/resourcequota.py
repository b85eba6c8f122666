"""resourcequota: a job is admitted while its minimum fits its namespace's quotas.

Source: Volcano resourcequota (spec 04 §16).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pumice.api import F64, Job, PodGroup, Resource, Session, Vote, plugin, points
from pumice.model.quantity import format_quantity


@plugin("resourcequota")
class ResourceQuotas:
    """Of the names L that any quota limits: ``hard`` (quotas, L), inf where it does not limit one, and ``used``;
    ``pending`` (namespaces, L) is what jobs were admitted for in this session."""

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn
        quotas = ssn.tables.quotas.objs
        self._names = sorted({name for quota in quotas for name in quota.limited})
        self._place = {name: at for at, name in enumerate(dict.fromkeys(quota.namespace for quota in quotas))}
        self._of_namespace: dict[str, list[int]] = {name: [] for name in self._place}
        self.hard = np.full((len(quotas), len(self._names)), np.inf)
        self.used = np.zeros_like(self.hard)
        for row, quota in enumerate(quotas):
            self._of_namespace[quota.namespace].append(row)
            limited = np.isin(self._names, quota.limited)
            self.hard[row] = np.where(limited, self._amounts(quota.hard), np.inf)
            self.used[row] = self._amounts(quota.used)
        ssn.column("resourcequota.quotas", values=np.stack([self.hard, self.used]))
        self.pending = ssn.column("resourcequota.pending", values=np.zeros((len(self._place), len(self._names))))
        self.unused_points = () if len(quotas) else (points.job_enqueueable, points.job_enqueued)

    def _amounts(self, resource: Resource | None) -> F64:
        return np.array([0.0 if resource is None else resource.get(name) for name in self._names])

    def _minimum(self, group: PodGroup) -> F64 | None:
        """What the job is to be admitted for, None where no quota is concerned."""
        if group.min_resources is None or group.namespace not in self._place:
            return None
        return self._amounts(group.min_resources)

    @points.job_enqueueable
    def job_enqueueable(self, job: Job) -> Vote | str:
        """Permit where every quota of the namespace has room for what is asked of the names that it limits."""
        asked = self._minimum(job.group)
        if asked is None:
            return Vote.PERMIT
        pending = self.pending.array[self._place[job.group.namespace]]
        for row in self._of_namespace[job.group.namespace]:
            if ((self.used[row] + pending + asked > self.hard[row]) & (asked > 0)).any():
                return self._refusal(row, asked)
        return Vote.PERMIT

    @points.job_enqueued
    def job_enqueued(self, job: Job) -> None:
        asked = self._minimum(job.group)
        if asked is not None:
            self.ssn.journal.add(self.pending, self._place[job.group.namespace], asked)

    def _refusal(self, row: int, asked: F64) -> str:
        """Of the names that the quota limits, in words."""
        limited = np.flatnonzero(np.isfinite(self.hard[row])).tolist()
        told = (self._told(limited, amounts) for amounts in (asked, self.used[row], self.hard[row]))
        return "resource quota insufficient, requested: {}, used: {}, limited: {}".format(*told)

    def _told(self, places: Iterable[int], amounts: F64) -> str:
        return ", ".join(f"{self._names[at]} {format_quantity(self._names[at], float(amounts[at]))}" for at in places)
