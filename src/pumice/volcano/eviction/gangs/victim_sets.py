"""Group the victims in one domain into sets: per job, the tasks that it can spare, and the rest. Source: Volcano
gangpreempt and gangreclaim actions (bundles).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import cmp_to_key
from typing import Any, NamedTuple

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.counting import HELD, READY
from pumice.columns.dtypes import EPS, F64, I64, AnyArray, Bool
from pumice.columns.rows import TaskRows
from pumice.columns.views import Job, Queue
from pumice.framework.cycle.session import Session
from pumice.model.pod import PREEMPTABLE_KEY, is_true
from pumice.model.workloads.podgroup import PodGroup
from pumice.volcano import points
from pumice.volcano.eviction.candidates import leaves_together
from pumice.volcano.eviction.context import EvictionContext, EvictionKind
from pumice.volcano.gangs.readiness import sub_missing


class VictimSetKind(IntEnum):
    """``SAFE``: the job stays ready, or is not ready anyway. ``WHOLE``: the job falls below its minimum."""

    SAFE = 0
    WHOLE = 1


class VictimSet(NamedTuple):
    """Tasks of one job that are evicted together.

    ``freed`` (R,): their total request. ``gain``: the useful share of what is freed, divided by what the job loses in
    the whole cluster; infinite if it loses nothing more.
    """

    kind: VictimSetKind
    job: int
    rows: tuple[int, ...]
    freed: F64
    gain: float


def victim_sets_of(
    ssn: Session, context: EvictionContext, candidates: TaskRows, need: F64, *, whole: bool, agreed: bool = False
) -> list[VictimSet]:
    """Return the victim sets of a domain, in eviction order.

    ``candidates``: tasks that the kind of eviction may touch. ``need`` (R,): request of the gang. ``whole`` False:
    leave out victim sets that break a job. ``agreed``: count the votes of all plugins (decision 0017).
    """
    found = _in_order(ssn, context.kind, context.job.row, list(_split(ssn, candidates, need)))
    found = _allowed(ssn, context, found, agreed=agreed)
    return [each for each in found if whole or each.kind is VictimSetKind.SAFE]


def may_be_evicted(group: PodGroup) -> bool:
    """Return True if gang evictions may touch a job, which is so unless its PodGroup says otherwise."""
    # Unset means yes here and no for preempt and reclaim. Source: Volcano gangpreempt and gangreclaim actions.
    mark = group.annotations.get(PREEMPTABLE_KEY, group.labels.get(PREEMPTABLE_KEY))
    return mark is None or is_true(mark)


# -- what a job can spare


def _split(ssn: Session, candidates: TaskRows, need: F64) -> Iterator[VictimSet]:
    """Yield the victim sets of each job."""
    tables = ssn.tables
    job = candidates.job
    # Volcano's order within a job: lower priority first, then by UID.
    order = np.lexsort((_by_uid(ssn)[candidates.rows], candidates.priority, job))
    # Once per job, because annotations are parsed.
    may = {j: may_be_evicted(tables.jobs.groups[j]) and _is_all_or_any(ssn, j, job) for j in distinct(job).tolist()}
    order = order[[may[j] for j in job[order].tolist()]]
    rows, job = candidates.rows[order], job[order]
    if not len(rows):
        return
    whole = ~_can_go(ssn, rows, job)
    # The tasks of a job that it can spare are brought together, and so are the others, for sums by ``reduceat``.
    order = np.lexsort((whole, job))
    rows, job, whole = rows[order], job[order], whole[order]
    first = np.ones(len(rows), dtype=bool)
    first[1:] = (job[1:] != job[:-1]) | (whole[1:] != whole[:-1])
    starts = first.nonzero()[0]
    freed = np.add.reduceat(tables.classes.req[tables.tasks.cls[rows]], starts)
    gain = _gains(ssn, job[starts], whole[starts], freed, need)
    listed, ends = rows.tolist(), [*starts[1:].tolist(), len(rows)]
    for i, (start, end) in enumerate(zip(starts.tolist(), ends, strict=True)):
        yield VictimSet(VictimSetKind(int(whole[start])), int(job[start]), tuple(listed[start:end]), freed[i], gain[i])


def _is_all_or_any(ssn: Session, row: int, job: AnyArray) -> bool:
    """Return False for a job that leaves only together and of which not all tasks are candidates. ``job``: the job of
    each candidate."""
    jobs = ssn.tables.jobs
    return not leaves_together(jobs.groups[row]) or np.count_nonzero(job == row) == int(jobs.counts[row] @ HELD)


def _by_uid(ssn: Session) -> I64:
    """Return the rank of each running task by UID. Shape (T,)."""

    def build() -> I64:
        tasks = ssn.tables.tasks
        rows = (tasks.alive & (tasks.node >= 0)).nonzero()[0].tolist()
        found = np.zeros(tasks.capacity, dtype=np.int64)
        found[sorted(rows, key=lambda row: tasks.pods[row].uid)] = np.arange(len(rows))
        return found

    # Sorting strings is slow, so it is done once per session for all tasks that run.
    return ssn.shared(_by_uid, build)


def _can_go(ssn: Session, rows: AnyArray, job: AnyArray) -> Bool:
    """Return True for tasks that can leave, one after the other, while their job stays ready, and for all tasks of
    jobs that are not ready. Tasks of a job are adjacent. Shapes (rows,) -> (rows,)."""
    jobs = ssn.tables.jobs
    which, starts, lengths = np.unique(job, return_index=True, return_counts=True)
    surplus = jobs.counts[which] @ READY - jobs.min_available[which]
    # By position, since all tasks of a job count equally towards its minimum.
    nth = np.arange(len(rows)) - np.repeat(starts, lengths)
    found: Bool = np.repeat(surplus < 0, lengths) | (nth < np.repeat(surplus, lengths))
    # Roles and sub-groups have minimums of their own. Only jobs with such minimums are walked task by task.
    for j, start, length in zip(which.tolist(), starts.tolist(), lengths.tolist(), strict=True):
        if leaves_together(jobs.groups[j]):
            found[start : start + length] = False
        elif jobs.has_policy[j] or jobs.role_min[j]:
            of_job = rows[start : start + length].tolist()
            safe = _spare(ssn, j, of_job)
            found[start : start + length] = [row in safe for row in of_job]
    return found


def _spare(ssn: Session, row: int, rows: Sequence[int]) -> set[int]:
    """Return the tasks of a job that can leave, one after the other, while it stays ready."""
    tables, job = ssn.tables, Job(ssn.tables, row)
    surplus = int(job.counts @ READY) - job.min_available
    # A job that is not ready has nothing to lose.
    if surplus < 0:
        return set(rows)
    of_role: dict[int, int] = {}
    if job.roles_matter:
        counts = job.role_counts(READY, with_best_effort=True)
        of_role = {role: counts[role] - minimum for role, minimum in job.role_min.items()}
    groups = _GroupSurplus(ssn, job)
    safe: set[int] = set()
    for task in rows:
        role, sub = int(tables.tasks.role[task]), int(tables.tasks.sub[task])
        # A task of a role or sub-group without a minimum is bounded by the job's own minimum alone.
        if surplus <= 0 or of_role.get(role, 1) <= 0 or not groups.can_spare(sub):
            continue
        safe.add(task)
        surplus -= 1
        if role in of_role:
            of_role[role] -= 1
        groups.take_from(sub)
    return safe


class _GroupSurplus:
    """How many sub-jobs of each policy may fall below their minimum. A sub-job that is not ready counts as broken."""

    def __init__(self, ssn: Session, job: Job) -> None:
        subs = ssn.tables.subs
        self._gid = {sub: subs.gids[sub] for sub in job.sub_jobs}
        minimum = {f"{job.key}/{p.name}": p.min_sub_groups for p in job.group.sub_groups if p.min_sub_groups}
        self._matters = bool(minimum)
        ready = [sub for sub in job.sub_jobs if self._matters and sub_missing(ssn, sub) == 0]
        self._broken = set(self._gid).difference(ready) if self._matters else set()
        count = Counter(self._gid[sub] for sub in ready)
        self._surplus = {gid: count[gid] - least for gid, least in minimum.items()}

    def can_spare(self, sub: int) -> bool:
        """Return True if a task of the sub-job can leave."""
        if not self._matters or sub in self._broken:
            return True
        return sub in self._gid and self._surplus.get(self._gid[sub], 1) > 0

    def take_from(self, sub: int) -> None:
        """Record that a task of the sub-job leaves."""
        if self._matters and sub not in self._broken:
            # Only the first task of a sub-job breaks it. Its other tasks cost nothing more.
            self._broken.add(sub)
            gid = self._gid[sub]
            if gid in self._surplus:
                self._surplus[gid] -= 1


def amount_of(ssn: Session, rows: Iterable[int] | AnyArray) -> F64:
    """Return the total request of tasks. Shape (R,)."""
    tables = ssn.tables
    found: F64 = tables.classes.req[tables.tasks.cls[np.array(list(rows), dtype=np.int64)]].sum(axis=0)
    return found


def _gains(ssn: Session, job: AnyArray, whole: Bool, freed: F64, need: F64) -> list[float]:
    """Return the gain of each victim set. ``whole``: whether it breaks its job. Shapes (sets,), (sets, R)."""
    found, asked = np.full(len(job), np.inf), need >= EPS
    if not whole.any() or not asked.any():
        return found.tolist()
    tables = ssn.tables
    each = [tables.jobs.tasks[j] for j in job[whole].tolist()]
    starts = np.cumsum([0, *map(len, each[:-1])])
    lost = np.add.reduceat(tables.classes.req[tables.tasks.cls[np.concatenate(each)]], starts)
    lost, local = (np.ascontiguousarray(amounts[:, asked]) for amounts in (lost, freed[whole]))
    # No more than is needed: a job that frees ten times the need is no better than one that frees it once.
    gained = np.minimum(local, need[asked]) / need[asked]
    # A job that loses nothing that the gang asks for divides by 0, and is replaced by infinity below.
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = gained.sum(axis=1) / (lost / need[asked]).sum(axis=1)
    found[whole] = np.where(lost.any(axis=1), gain, np.inf)
    return found.tolist()


# -- in which order


def _in_order(ssn: Session, kind: EvictionKind, job: int, victim_sets: list[VictimSet]) -> list[VictimSet]:
    """Return victim sets in eviction order: safe ones first, then by job or queue, then by gain, then by UID."""
    if not victim_sets:
        return []
    which = distinct([each.job for each in victim_sets])
    keys = _keys_of_jobs(ssn, which) if kind is EvictionKind.GANG_PREEMPT else _keys_of_queues(ssn, job, which)
    key_of, uids = dict(zip(which.tolist(), keys, strict=True)), ssn.tables.jobs.uids
    # Safe ones first, because their jobs run on. Among jobs that end, the one that frees most for what it loses. The
    # UID makes the order the same in each run.
    return sorted(victim_sets, key=lambda each: (each.kind, key_of[each.job], -each.gain, uids[each.job]))


def _keys_of_jobs(ssn: Session, which: AnyArray) -> list[Any]:
    """Return sort keys: smaller for jobs that are last in job order, then for younger ones."""
    columns, creation = ssn.order.job_columns(which), ssn.tables.jobs.creation
    if columns is not None:
        return list(zip(*((-column).tolist() for column in (*columns, creation[which])), strict=True))

    def compare(left: int, right: int) -> int:
        return -ssn.order.compare_jobs(left, right) or int(np.sign(creation[right] - creation[left]))

    return list(map(cmp_to_key(compare), which.tolist()))


def _keys_of_queues(ssn: Session, job: int, which: AnyArray) -> list[Any]:
    """Return sort keys: smaller for jobs of queues whose victims go first, given the gang's queue."""
    queue, own = ssn.tables.jobs.queue, int(ssn.tables.jobs.queue[job])
    key = cmp_to_key(_compare_queues(ssn, own))
    known = {row: key(row) for row in distinct(queue[which]).tolist()}
    return [known[row] for row in queue[which].tolist()]


def _compare_queues(ssn: Session, own: int) -> Callable[[int, int], int]:
    """Return a comparison of queues by whose victims go first, given the gang's queue."""
    known: dict[tuple[int, int], int] = {}

    def goes_first(left: int, right: int) -> bool:
        said = ssn.ask(points.victim_queue_order, *(Queue(ssn.tables, row) for row in (left, right, own)))
        return (said or -ssn.order.compare_queues(left, right)) < 0

    # Asked in both directions, since a plugin's answers need not be antisymmetric. Contradictory answers count as
    # equal, as in Volcano.
    def compare(left: int, right: int) -> int:
        return 0 if left == right else goes_first(right, left) - goes_first(left, right)

    # A sort compares the queues of thousands of victim sets, and there are far fewer queues.
    def compare_once(left: int, right: int) -> int:
        if (left, right) not in known:
            known[left, right] = compare(left, right)
        return known[left, right]

    return compare_once


# -- what plugins allow


def _allowed(ssn: Session, context: EvictionContext, victim_sets: list[VictimSet], *, agreed: bool) -> list[VictimSet]:
    """Return the victim sets that plugins allow: of a safe set the allowed tasks, and a whole set only if all of its
    tasks are allowed."""
    rows = [row for each in victim_sets for row in each.rows]
    if not rows:
        return []
    tasks = TaskRows(ssn.tables, np.array(rows))
    mask = ssn.ask(points.evictable_agreed if agreed else points.unified_evictable, context, tasks)
    # The common case, in which no victim set must be divided.
    if mask.all():
        return victim_sets
    found, allowed = [], {row for row, may in zip(rows, mask.tolist(), strict=True) if may}
    for each in victim_sets:
        kept = tuple(row for row in each.rows if row in allowed)
        if len(kept) == len(each.rows):
            found.append(each)
        # A job that falls below its minimum is lost whole. If some of its tasks are protected, evicting the others
        # would break it and free less than the gain that was computed.
        elif kept and each.kind is VictimSetKind.SAFE:
            found.append(each._replace(rows=kept, freed=amount_of(ssn, kept)))
    return found
