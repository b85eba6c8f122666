"""tdm: use nodes of a revocable zone for preemptable tasks in the zone's hours, and evict them afterwards.

Source: Volcano tdm plugin.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from pumice.algorithms.groups import nth_of_its_group
from pumice.api import (
    F64,
    I32,
    ROWS,
    AnyArray,
    Bool,
    Candidates,
    Code,
    FilterResult,
    Job,
    JobRows,
    NodeRows,
    PodGroup,
    Session,
    Task,
    TaskRows,
    TaskStatus,
    Unfit,
    Vote,
    plugin,
    points,
)
from pumice.model.pod import REVOCABLE_ZONE_KEY
from pumice.model.workloads.podgroup import MAX_MISSING_ANNOTATION, MIN_RUNNING_ANNOTATION
from pumice.placing.derived import derived
from pumice.volcano.durations import argument_s, duration_problems
from pumice.volcano.revocable import WindowError, Zones, parse_window

DEFAULT_PERIOD = "1m"
EVICTED_AT = "tdm.evicted_at"
# Unresolvable, since evicting pods of the node would not make the task revocable.
NOT_ALLOWED = Unfit("not allow to dispatch to revocable node", Code.UNRESOLVABLE)
RUNNING, ENDED = int(TaskStatus.RUNNING), [int(TaskStatus.SUCCEEDED), int(TaskStatus.FAILED)]
_NUMBER = re.compile(r"([0-9]{1,9})(%?)", re.ASCII)


@plugin("tdm", separator=".", spelled=("tdm.revocable-zone.",))
class Tdm:
    """Filter, score and evict by zones. A node is in the zone that its label ``volcano.sh/revocable-zone`` names.

    ``tdm.revocable-zone.<zone>``: the hours of a zone, ``9:30-18:00`` in UTC. ``tdm.evict.period``: shortest time
    between two evictions from zones outside their hours.
    """

    def __init__(
        self,
        ssn: Session,
        *,
        tdm_evict_period: str = DEFAULT_PERIOD,
        tdm_revocable_zone_: Mapping[str, str] | None = None,
    ) -> None:
        self.ssn = ssn
        self.period = argument_s(tdm_evict_period, DEFAULT_PERIOD)
        self.zones = Zones.read(tdm_revocable_zone_ or {})
        # Zones as numbers, because filters compare those of all nodes at once.
        label = derived(ssn).label(REVOCABLE_ZONE_KEY)
        #: Zone of each node (N,), from 1, 0 for none.
        self.zone_of: I32 = np.array([0, *(i * bool(z) for i, z in enumerate(label.values, start=1))])[label.codes + 1]
        # Once a session, in which the time does not change.
        objections = [self.zones.objection(zone, ssn.now) for zone in label.values]
        self._why = [(), *((Unfit(why, Code.UNRESOLVABLE),) if why else () for why in objections)]
        # Columns and not fields, so that memoized answers of the hooks end when a zone opens or closes.
        self.closed = ssn.column("tdm.closed", values=np.array([False, *map(bool, objections)]))
        evicted_at = ssn.snapshot.notes.get(EVICTED_AT)
        self.due = ssn.column("tdm.due", values=np.array([evicted_at is None or ssn.now - evicted_at >= self.period]))
        jobs = ssn.tables.jobs
        assert jobs.stamps is not None
        self.preemptable: AnyArray = ssn.memo.by_row("tdm.preemptable", (), jobs.stamps, self._preemptable_of)

    @staticmethod
    def problems(*, tdm_evict_period: str, tdm_revocable_zone_: Mapping[str, str] | None) -> Iterator[str]:
        """Yield problems with the arguments."""
        for zone, text in (tdm_revocable_zone_ or {}).items():
            try:
                parse_window(text)
            except WindowError as error:
                yield f"argument tdm.revocable-zone.{zone}: {error}; the zone would never be open"
        yield from duration_problems("tdm.evict.period", tdm_evict_period, DEFAULT_PERIOD)

    def _preemptable_of(self, rows: AnyArray) -> AnyArray:
        """Return whether jobs are preemptable. Shape (rows,)."""
        groups = self.ssn.tables.jobs.groups
        return np.array([group is not None and group.preemptable for group in (groups[r] for r in rows.tolist())])

    def wakes_at(self) -> float | None:
        """Return when the hours of a zone begin or end, or when the next tasks may be evicted."""
        now, evicted_at = self.ssn.now, self.ssn.snapshot.notes.get(EVICTED_AT)
        moments = [window.changes_after(now) for window in self.zones.windows.values() if window is not None]
        if evicted_at is not None and evicted_at + self.period > now and self._any_overstays():
            moments.append(evicted_at + self.period)
        return min(moments, default=None)

    def _any_overstays(self) -> bool:
        """Return True if preemptable tasks run in a zone outside its hours."""
        tasks = self.ssn.tables.tasks
        there = tasks.node[tasks.preemptable & (tasks.status == RUNNING) & (tasks.node >= 0)]
        return bool(self._over()[self.zone_of[there]].any())

    def _over(self) -> Bool:
        """Return the zones that have hours and are outside of them, indexed as in ``zone_of``."""
        names = ["", *derived(self.ssn).label(REVOCABLE_ZONE_KEY).values]
        # A label without hours in the policy closes its zone too, but nothing is evicted there: it may be a spelling
        # mistake. Source: Volcano tdm.go, which goes through the configured zones.
        over: Bool = np.array([name in self.zones.windows for name in names]) & self.closed.array
        return over

    # -- where tasks may run ------------------------------------------------------------------------------------------

    @points.predicate
    def predicate(self, task: Task, nodes: NodeRows) -> FilterResult | None:
        """Reject nodes of zones outside their hours, and all nodes of zones for tasks that are not revocable.
        Shape (rows,)."""
        zone = nodes.pick(self.zone_of)
        if not self.zone_of.any():
            return None
        if task.pod.revocable_zone:
            return FilterResult(np.where(self.closed.array[zone], zone, 0), tuple(self._why))
        # The reason of the zone goes before that of the task, as in Volcano.
        other = len(self._why)
        codes = np.where(self.closed.array[zone], zone, np.where(zone > 0, other, 0))
        return FilterResult(codes, (*self._why, (NOT_ALLOWED,)))

    @points.node_order
    def node_order(self, task: Task, nodes: NodeRows) -> F64 | None:
        """Return 100 for nodes of open zones, for revocable tasks. Shape (rows,)."""
        if not self.zone_of.any():
            return None
        zone = nodes.pick(self.zone_of)
        # Revocable tasks prefer these nodes, so that the others stay free for tasks that can run nowhere else.
        wanted = bool(task.pod.revocable_zone)
        return np.where((zone > 0) & ~self.closed.array[zone] & wanted, 100.0, 0.0)

    # -- who leaves ---------------------------------------------------------------------------------------------------

    @points.preemptable
    def preemptable_tasks(self, preemptor: Task, candidates: Candidates) -> Bool:
        """Return running preemptable tasks outside of zones, as many of each job as it allows. Shape (rows,).

        None for preemptors that are preemptable or revocable themselves.
        """
        # A preemptable pod may itself be evicted at any time, so evicting another one for it would gain nothing.
        if preemptor.preemptable or preemptor.pod.revocable_zone:
            return np.zeros(len(candidates), dtype=bool)
        tasks = candidates.tables.tasks
        rows = candidates.rows
        found = tasks.preemptable[rows] & (tasks.status[rows] == RUNNING) & (self.zone_of[tasks.node[rows]] == 0)
        # By node and job, since each node is judged as if it were the only one.
        return self._up_to_budget(candidates, found, candidates.apart(candidates.job))

    @points.victim_tasks
    def victim_tasks(self, tasks: TaskRows) -> Bool:
        """Return running preemptable tasks in zones outside their hours, as many of each job and zone as the job
        allows. Shape (rows,)."""
        table, rows = tasks.tables.tasks, tasks.rows
        if not self.due.array[0]:
            return np.zeros(len(tasks), dtype=bool)
        over = self._over()
        zone = self.zone_of[table.node[rows]]
        found = table.preemptable[rows] & (table.status[rows] == RUNNING) & over[zone]
        # Quirk of Volcano, kept on purpose: the budget holds for each zone by itself, so a job in two zones may lose
        # twice as many tasks.
        return self._up_to_budget(tasks, found, tasks.job.astype(np.int64) * len(over) + zone)

    def _up_to_budget(self, tasks: TaskRows, found: Bool, group: AnyArray) -> Bool:
        """Return the first found tasks of each group, as many as the job allows. A group has tasks of one job.
        Shape (rows,)."""
        rows = found.nonzero()[0]
        job = tasks.job[rows]
        which, inverse = np.unique(job, return_inverse=True)
        most = np.array([self._budget(Job(tasks.tables, row)) if row >= 0 else 0 for row in which.tolist()])
        victims = np.zeros(len(tasks), dtype=bool)
        if len(rows):
            victims[rows] = nth_of_its_group(group[rows]) < most[inverse]
        return victims

    def _budget(self, job: Job) -> int:
        """Return how many tasks of a job may be evicted now."""
        counts, running = job.counts, int(job.counts[RUNNING])
        least, missing = _budget_of(job.group)
        # Tasks that neither run nor have ended are missing already.
        if missing:
            return max(0, _amount(missing, job.size) - (job.size - int(counts[ENDED].sum()) - running))
        if least and running >= _amount(least, job.size):
            return running - _amount(least, job.size)
        # Without a valid budget Volcano evicts one task at a time.
        return 1

    @points.session_close
    def close(self) -> None:
        """Remember when tasks were last evicted from zones."""
        # Without the action shuffle no victims are evicted, and the period does not begin.
        if self.due.array[0] and self.ssn.policy.has_action("shuffle"):
            self.ssn.notes[EVICTED_AT] = self.ssn.now

    # -- jobs ---------------------------------------------------------------------------------------------------------

    @points.job_order(reads=(ROWS,))
    def job_order(self, jobs: JobRows) -> F64:
        """Return the order key: preemptable jobs last. Shape (rows,)."""
        return self.preemptable[jobs.rows].astype(np.float64)

    @points.job_pipelined(reads=(ROWS,))
    def job_pipelined(self, job: Job) -> Vote:
        """Permit if the job would be ready once releasing resources are free."""
        return Vote.PERMIT if job.is_pipelined else Vote.REJECT

    @points.job_starving(reads=(ROWS,))
    def job_starving(self, job: Job) -> bool:
        """Return True if the job is not preemptable and has pending tasks."""
        return not self.preemptable[job.row] and bool(job.counts[TaskStatus.PENDING])


def _budget_of(group: PodGroup) -> tuple[str, str]:
    """Return the minimum of running tasks and the maximum of missing tasks in a job's annotations; only the first that
    is set."""
    least = group.annotations.get(MIN_RUNNING_ANNOTATION, "")
    return least, "" if least else group.annotations.get(MAX_MISSING_ANNOTATION, "")


def _amount(text: str, of: int) -> int:
    """Return a number, or a percentage rounded up, and 0 for other texts."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return 0
    return -(-int(found[1]) * of // 100) if found[2] else int(found[1])
