"""tdm: nodes of a revocable zone take preemptable work in the zone's hours, and lose it after them.

Source: Volcano tdm (spec 04 §12).
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
    SIGNATURE,
    AnyArray,
    Bool,
    Candidates,
    Code,
    DurationError,
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
    parse_duration,
    plugin,
    points,
)
from pumice.model.pod import REVOCABLE_ZONE_KEY
from pumice.model.workloads.podgroup import MAX_MISSING_ANNOTATION, MIN_RUNNING_ANNOTATION
from pumice.placing.derived import derived
from pumice.volcano.revocable import WindowError, Zones, parse_window

DEFAULT_PERIOD = 60.0
EVICTED_AT = "tdm.evicted_at"
NOT_ALLOWED = Unfit("not allow to dispatch to revocable node", Code.UNRESOLVABLE)
RUNNING, ENDED = int(TaskStatus.RUNNING), [int(TaskStatus.SUCCEEDED), int(TaskStatus.FAILED)]
_NUMBER = re.compile(r"([0-9]{1,9})(%?)", re.ASCII)


@plugin("tdm")
class Tdm:
    """``tdm.revocable-zone.<zone>``: the zone's hours, ``9:30-18:00`` in UTC; ``tdm.evict.period``: how long after
    tasks were evicted from zones whose hours are over no others are.

    A zone is what nodes have in the label ``volcano.sh/revocable-zone``.
    """

    def __init__(
        self, ssn: Session, *, tdm_evict_period: str = "1m", tdm_revocable_zone_: Mapping[str, str] | None = None
    ) -> None:
        self.ssn = ssn
        self.period = _seconds(tdm_evict_period)
        self.zones = Zones.read(tdm_revocable_zone_ or {})
        label = derived(ssn).label(REVOCABLE_ZONE_KEY)
        #: Of each node its zone (N,), from 1, 0 for none; and what stands against each zone.
        self.zone_of: I32 = np.array([0, *(i * bool(z) for i, z in enumerate(label.values, start=1))])[label.codes + 1]
        objections = [self.zones.objection(zone, ssn.now) for zone in label.values]
        self._why = [(), *((Unfit(why, Code.UNRESOLVABLE),) if why else () for why in objections)]
        self.closed = ssn.column("tdm.closed", values=np.array([False, *map(bool, objections)]))
        evicted_at = ssn.snapshot.notes.get(EVICTED_AT)
        self.due = ssn.column("tdm.due", values=np.array([evicted_at is None or ssn.now - evicted_at >= self.period]))
        jobs = ssn.tables.jobs
        assert jobs.stamps is not None
        self.preemptable: AnyArray = ssn.memo.by_row("tdm.preemptable", (), jobs.stamps, self._preemptable_of)

    @staticmethod
    def problems(*, tdm_evict_period: str, tdm_revocable_zone_: Mapping[str, str] | None) -> Iterator[str]:
        """What cannot be used."""
        for zone, text in (tdm_revocable_zone_ or {}).items():
            try:
                parse_window(text)
            except WindowError as error:
                yield f"argument tdm.revocable-zone.{zone}: {error}; the zone would never be open"
        try:
            parse_duration(tdm_evict_period)
        except DurationError:
            yield f"argument tdm.evict.period: found {tdm_evict_period[:80]!r}, wanted a duration such as 1m; it is 1m"

    def _preemptable_of(self, rows: AnyArray) -> AnyArray:
        groups = self.ssn.tables.jobs.groups
        return np.array([group is not None and group.preemptable for group in (groups[r] for r in rows.tolist())])

    def wakes_at(self) -> float | None:
        """When the hours of a zone begin or end, or the next tasks may be evicted."""
        now, evicted_at = self.ssn.now, self.ssn.snapshot.notes.get(EVICTED_AT)
        moments = [window.changes_after(now) for window in self.zones.windows.values() if window is not None]
        if evicted_at is not None and evicted_at + self.period > now and self._somebody_stays_too_long():
            moments.append(evicted_at + self.period)
        return min(moments, default=None)

    def _somebody_stays_too_long(self) -> bool:
        """Whether tasks that may be revoked run where the hours are over."""
        tasks = self.ssn.tables.tasks
        there = tasks.node[tasks.preemptable & (tasks.status == RUNNING) & (tasks.node >= 0)]
        return bool(self._over()[self.zone_of[there]].any())

    def _over(self) -> Bool:
        """Of each zone, as in ``zone_of``, whether it has hours and they are over."""
        names = ["", *derived(self.ssn).label(REVOCABLE_ZONE_KEY).values]
        over: Bool = np.array([name in self.zones.windows for name in names]) & self.closed.array
        return over

    # -- where tasks may run ------------------------------------------------------------------------------------------

    @points.predicate
    def predicate(self, task: Task, nodes: NodeRows) -> FilterResult | None:
        """Nodes of a zone: in its hours, for tasks that may be revoked. All other nodes: no objection."""
        zone = nodes.pick(self.zone_of)
        if not self.zone_of.any():
            return None
        if task.pod.revocable_zone:
            return FilterResult(np.where(self.closed.array[zone], zone, 0), tuple(self._why))
        other = len(self._why)
        codes = np.where(self.closed.array[zone], zone, np.where(zone > 0, other, 0))
        return FilterResult(codes, (*self._why, (NOT_ALLOWED,)))

    @points.node_order
    def node_order(self, task: Task, nodes: NodeRows) -> F64 | None:
        """Tasks that may be revoked rather run where they may be."""
        if not self.zone_of.any():
            return None
        zone = nodes.pick(self.zone_of)
        wanted = bool(task.pod.revocable_zone)
        return np.where((zone > 0) & ~self.closed.array[zone] & wanted, 100.0, 0.0)

    # -- who leaves ---------------------------------------------------------------------------------------------------

    @points.preemptable
    def preemptable_tasks(self, preemptor: Task, candidates: Candidates) -> Bool:
        """For a task that may not be preempted nor revoked itself: running preemptable tasks outside of all zones, of
        each job as many as it lets go. Shape (rows,)."""
        if preemptor.preemptable or preemptor.pod.revocable_zone:
            return np.zeros(len(candidates), dtype=bool)
        tasks = candidates.tables.tasks
        rows = candidates.rows
        found = tasks.preemptable[rows] & (tasks.status[rows] == RUNNING) & (self.zone_of[tasks.node[rows]] == 0)
        return self._as_many_as_jobs_let_go(candidates, found, candidates.apart(candidates.job))

    @points.victim_tasks
    def victim_tasks(self, tasks: TaskRows) -> Bool:
        """Running preemptable tasks on nodes of zones that have hours, and not now; of each job as many in each zone as
        it lets go. Shape (rows,)."""
        table, rows = tasks.tables.tasks, tasks.rows
        if not self.due.array[0]:
            return np.zeros(len(tasks), dtype=bool)
        over = self._over()
        zone = self.zone_of[table.node[rows]]
        found = table.preemptable[rows] & (table.status[rows] == RUNNING) & over[zone]
        return self._as_many_as_jobs_let_go(tasks, found, tasks.job.astype(np.int64) * len(over) + zone)

    def _as_many_as_jobs_let_go(self, tasks: TaskRows, found: Bool, group: AnyArray) -> Bool:
        """The first of those that are found in each group of one job."""
        rows = found.nonzero()[0]
        job = tasks.job[rows]
        which, inverse = np.unique(job, return_inverse=True)
        most = np.array([self._lets_go(Job(tasks.tables, row)) if row >= 0 else 0 for row in which.tolist()])
        victims = np.zeros(len(tasks), dtype=bool)
        if len(rows):
            victims[rows] = nth_of_its_group(group[rows]) < most[inverse]
        return victims

    def _lets_go(self, job: Job) -> int:
        """How many of its tasks may leave now."""
        counts, running = job.counts, int(job.counts[RUNNING])
        least, missing = _budget_of(job.group)
        if missing:
            return max(0, _amount(missing, job.size) - (job.size - int(counts[ENDED].sum()) - running))
        if least and running >= _amount(least, job.size):
            return running - _amount(least, job.size)
        return 1

    @points.session_close
    def close(self) -> None:
        """Remember when tasks were last evicted from zones."""
        if self.due.array[0] and self.ssn.policy.has_action("shuffle"):
            self.ssn.notes[EVICTED_AT] = self.ssn.now

    # -- jobs ---------------------------------------------------------------------------------------------------------

    @points.job_order(reads=(ROWS,))
    def job_order(self, jobs: JobRows) -> F64:
        """Jobs that may be preempted after others."""
        return self.preemptable[jobs.rows].astype(np.float64)

    @points.job_pipelined(reads=(SIGNATURE,))
    def job_pipelined(self, job: Job) -> Vote:
        return Vote.PERMIT if job.is_pipelined else Vote.REJECT

    @points.job_starving(reads=(ROWS,))
    def job_starving(self, job: Job) -> bool:
        """A job that may not be preempted and has tasks that wait."""
        return not self.preemptable[job.row] and bool(job.counts[TaskStatus.PENDING])


def _budget_of(group: PodGroup) -> tuple[str, str]:
    """(how many must run, how many may be missing) as the job says it; of the two the first that is there."""
    least = group.annotations.get(MIN_RUNNING_ANNOTATION, "")
    return least, "" if least else group.annotations.get(MAX_MISSING_ANNOTATION, "")


def _amount(text: str, of: int) -> int:
    """A number, or a percentage rounded up; 0 for anything else."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return 0
    return -(-int(found[1]) * of // 100) if found[2] else int(found[1])


def _seconds(text: str) -> float:
    try:
        return max(0.0, parse_duration(text))
    except DurationError:
        return DEFAULT_PERIOD
