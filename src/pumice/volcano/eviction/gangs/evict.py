"""Evict for starving gangs one after the other, each complete or not at all. Source: Volcano gangpreempt and
gangreclaim actions.
"""

from __future__ import annotations

import numpy as np

from pumice.framework.cycle.budget import Budget
from pumice.framework.cycle.ordering import Heap
from pumice.framework.cycle.session import Session
from pumice.volcano import points
from pumice.volcano.eviction.context import EvictionKind
from pumice.volcano.eviction.gangs.search import GangSearch, Limits
from pumice.volcano.eviction.node_search import least_steps
from pumice.volcano.failures.evictions import equal_failures, note_failure
from pumice.volcano.gangs.attempt import discarded, promised
from pumice.volcano.gangs.readiness import job_pipelined
from pumice.volcano.gangs.starving import all_of, queues_in_order, starving_jobs

#: Each domain costs a trial of the whole gang, so the number bounds the work of one job. Source: Volcano's default.
DOMAINS_DEFAULT = 8


def limits_of(
    domains: int, *, whole: bool, only_in_need: bool, promised_kept: bool = True, all_must_agree: bool = False
) -> Limits:
    """Return the limits that the arguments of an action set. ``domains`` below 1 means 8."""
    return Limits(domains if domains > 0 else DOMAINS_DEFAULT, whole, only_in_need, promised_kept, all_must_agree)


def evict_for_gangs(ssn: Session, kind: EvictionKind, reason: str, limits: Limits, steps: int) -> None:
    """Process starving jobs in queue and job order, with at most so many steps in a cycle."""
    starving = starving_jobs(ssn, with_topology=True, in_domains=True)
    if starving:
        budget = Budget(ssn, all_of(starving), steps, least=least_steps(ssn))
        _GangEviction(ssn, kind, reason, limits, budget).run(starving)


class _GangEviction:
    """One run of gangpreempt or gangreclaim."""

    def __init__(self, ssn: Session, kind: EvictionKind, reason: str, limits: Limits, budget: Budget) -> None:
        self.ssn, self.kind, self.budget = ssn, kind, budget
        self.search = GangSearch(ssn, kind, reason, limits, budget, cached=_nodes_are_cached(ssn))
        self.equal = equal_failures(ssn, f"{reason} {limits}", points.unified_evictable, budget)

    def run(self, starving: dict[int, list[int]]) -> None:
        """Process all queues."""
        ssn = self.ssn
        # Preemption within a queue does not change what the queue holds, so only reclaim asks whether it is overused.
        for queue in queues_in_order(ssn, starving, but_overused=self.kind is EvictionKind.GANG_RECLAIM):
            jobs = Heap(ssn.order.job_keys(), starving[queue])
            for job in self.budget.jobs(jobs):
                if self._for_job(job):
                    self.equal.go_on(jobs)
            self.budget.close(np.array(starving[queue]))
        self.budget.end()

    def _for_job(self, job: int) -> bool:
        """Make room for a job. Return True if that failed and changed nothing."""
        ssn, failed = self.ssn, False
        if self.equal.fails(job):
            return True
        if self.budget.is_cut():
            return False
        with ssn.fault_scope(ssn.tables.jobs.uids[job]), ssn.statement() as stmt:
            # Asked before the search, which leaves findings of its own.
            fresh, hypernodes = self.equal.is_fresh(job), self.search.make_room(stmt, job)
            if job_pipelined(ssn, job):
                promised(ssn, job, stmt)
                self.budget.changes += 1
                for sub, hypernode in hypernodes.items():
                    # A later allocate in this session tries this hypernode first.
                    ssn.journal.put(ssn.tables.subs["nominated"], sub, hypernode)
            elif self.budget.is_cut():
                stmt.discard()
            else:
                failed = True
                # What was not found for want of steps must not be remembered of equal jobs.
                fresh, findings = fresh and self.search.is_whole, tuple(self.search.findings)
                note_failure(ssn, self.equal, job, discarded(ssn, job, stmt, findings), fresh=fresh)
        return failed


def _nodes_are_cached(ssn: Session) -> bool:
    """Return True if a node that failed for one task of a role is skipped for the next one."""
    # Quirk of Volcano, kept on purpose: these actions read the argument of allocate and have none of their own.
    arguments = next((each.arguments for each in ssn.policy.actions if each.name == "allocate"), {})
    return bool(arguments.get("predicateErrorCacheEnable", True))
