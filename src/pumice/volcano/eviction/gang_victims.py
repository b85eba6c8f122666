"""Victims of a whole gang in one domain, in bundles: of each job what it can spare, and the rest of what it has there.
Source: Volcano's gang evictions (spec 03 §6.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import cmp_to_key
from typing import Any, NamedTuple

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.counting import READY
from pumice.columns.dtypes import EPS, F64, I64, AnyArray, Bool
from pumice.columns.rows import TaskRows
from pumice.columns.views import Job, Queue
from pumice.framework.cycle.session import Session
from pumice.model.pod import PREEMPTABLE_KEY, is_true
from pumice.model.workloads.podgroup import PodGroup
from pumice.volcano import points
from pumice.volcano.eviction.context import EvictionContext, EvictionKind
from pumice.volcano.gangs.readiness import sub_missing


class VictimSetKind(IntEnum):
    """``SAFE``: the job stays ready, or is not so anyway. ``WHOLE``: it breaks."""

    SAFE = 0
    WHOLE = 1


class VictimSet(NamedTuple):
    """Tasks of one job that are evicted together. ``freed`` (R,): what they ask for. ``gain``: how much of what is
    asked for that is, over how much of it is lost all over the cluster; infinite where nothing more is lost."""

    kind: VictimSetKind
    job: int
    rows: tuple[int, ...]
    freed: F64
    gain: float


def bundles_of(
    ssn: Session, context: EvictionContext, candidates: TaskRows, need: F64, *, whole: bool, agreed: bool = False
) -> list[VictimSet]:
    """Bundles of a domain, the first one to be evicted first. ``candidates``: who may be thought of there at all.
    ``need`` (R,): what the gang asks for. Not ``whole``: no job is broken. ``agreed``: no plugin's vote is lost
    (decision 0018)."""
    found = _in_order(ssn, context.kind, context.job.row, list(_split(ssn, candidates, need)))
    found = _allowed(ssn, context, found, agreed=agreed)
    return [bundle for bundle in found if whole or bundle.kind is VictimSetKind.SAFE]


def may_be_evicted(group: PodGroup) -> bool:
    """Whether a gang eviction may touch the job: unless its PodGroup says otherwise."""
    mark = group.annotations.get(PREEMPTABLE_KEY, group.labels.get(PREEMPTABLE_KEY))
    return mark is None or is_true(mark)


# -- what a job can spare


def _split(ssn: Session, candidates: TaskRows, need: F64) -> Iterator[VictimSet]:
    tables = ssn.tables
    job = candidates.job
    order = np.lexsort((_by_uid(ssn)[candidates.rows], candidates.priority, job))
    may = {j: may_be_evicted(tables.jobs.groups[j]) for j in distinct(job).tolist()}
    order = order[[may[j] for j in job[order].tolist()]]
    rows, job = candidates.rows[order], job[order]
    if not len(rows):
        return
    whole = ~_can_go(ssn, rows, job)
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


def _by_uid(ssn: Session) -> I64:
    """Smaller for the smaller UID, of tasks that ran on a node when somebody first asked in the session. Shape (T,)."""

    def build() -> I64:
        tasks = ssn.tables.tasks
        rows = (tasks.alive & (tasks.node >= 0)).nonzero()[0].tolist()
        found = np.zeros(tasks.capacity, dtype=np.int64)
        found[sorted(rows, key=lambda row: tasks.pods[row].uid)] = np.arange(len(rows))
        return found

    return ssn.shared(_by_uid, build)


def _can_go(ssn: Session, rows: AnyArray, job: AnyArray) -> Bool:
    """Which tasks, those of a job side by side, can go, one after the other, so that their jobs stay ready; all of a
    job that is not. Shapes (rows,) -> (rows,)."""
    jobs = ssn.tables.jobs
    which, starts, lengths = np.unique(job, return_index=True, return_counts=True)
    surplus = jobs.counts[which] @ READY - jobs.min_available[which]
    nth = np.arange(len(rows)) - np.repeat(starts, lengths)
    found: Bool = np.repeat(surplus < 0, lengths) | (nth < np.repeat(surplus, lengths))
    for j, start, length in zip(which.tolist(), starts.tolist(), lengths.tolist(), strict=True):
        if jobs.has_policy[j] or jobs.role_min[j]:
            of_job = rows[start : start + length].tolist()
            safe = _spare(ssn, j, of_job)
            found[start : start + length] = [row in safe for row in of_job]
    return found


def _spare(ssn: Session, row: int, rows: Sequence[int]) -> set[int]:
    """Which of a job's tasks can go, one after the other, so that it stays ready; all where it is not."""
    tables, job = ssn.tables, Job(ssn.tables, row)
    surplus = int(job.counts @ READY) - job.min_available
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
        if surplus <= 0 or of_role.get(role, 1) <= 0 or not groups.can_spare(sub):
            continue
        safe.add(task)
        surplus -= 1
        if role in of_role:
            of_role[role] -= 1
        groups.take_from(sub)
    return safe


class _GroupSurplus:
    """How many sub-jobs of each policy can break. One that is not ready is broken already."""

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
        """Whether a task of the sub-job can go."""
        if not self._matters or sub in self._broken:
            return True
        return sub in self._gid and self._surplus.get(self._gid[sub], 1) > 0

    def take_from(self, sub: int) -> None:
        """A task of the sub-job goes."""
        if self._matters and sub not in self._broken:
            self._broken.add(sub)
            gid = self._gid[sub]
            if gid in self._surplus:
                self._surplus[gid] -= 1


def amount_of(ssn: Session, rows: Iterable[int] | AnyArray) -> F64:
    """What tasks ask for together (R,)."""
    tables = ssn.tables
    found: F64 = tables.classes.req[tables.tasks.cls[np.array(list(rows), dtype=np.int64)]].sum(axis=0)
    return found


def _gains(ssn: Session, job: AnyArray, whole: Bool, freed: F64, need: F64) -> list[float]:
    """The gain of each bundle: its job, whether it breaks it, and what it frees. Shapes (bundles,), (bundles, R)."""
    found, asked = np.full(len(job), np.inf), need >= EPS
    if not whole.any() or not asked.any():
        return found.tolist()
    tables = ssn.tables
    each = [tables.jobs.tasks[j] for j in job[whole].tolist()]
    starts = np.cumsum([0, *map(len, each[:-1])])
    lost = np.add.reduceat(tables.classes.req[tables.tasks.cls[np.concatenate(each)]], starts)
    lost, local = (np.ascontiguousarray(amounts[:, asked]) for amounts in (lost, freed[whole]))
    gained = np.minimum(local, need[asked]) / need[asked]
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = gained.sum(axis=1) / (lost / need[asked]).sum(axis=1)
    found[whole] = np.where(lost.any(axis=1), gain, np.inf)
    return found.tolist()


# -- in which order


def _in_order(ssn: Session, kind: EvictionKind, job: int, bundles: list[VictimSet]) -> list[VictimSet]:
    """Safe ones first; then by job, the one that would go last (or by queue, with the gang's own in mind); then by
    gain; of equal ones by name."""
    if not bundles:
        return []
    which = distinct([bundle.job for bundle in bundles])
    keys = _keys_of_jobs(ssn, which) if kind is EvictionKind.GANG_PREEMPT else _keys_of_queues(ssn, job, which)
    whom, uids = dict(zip(which.tolist(), keys, strict=True)), ssn.tables.jobs.uids
    return sorted(bundles, key=lambda bundle: (bundle.kind, whom[bundle.job], -bundle.gain, uids[bundle.job]))


def _keys_of_jobs(ssn: Session, which: AnyArray) -> list[Any]:
    """Smaller for the job that would go last, as plugins say; else for the younger one."""
    columns, creation = ssn.order.job_columns(which), ssn.tables.jobs.creation
    if columns is not None:
        return list(zip(*((-column).tolist() for column in (*columns, creation[which])), strict=True))

    def compare(left: int, right: int) -> int:
        return -ssn.order.compare_jobs(left, right) or int(np.sign(creation[right] - creation[left]))

    return list(map(cmp_to_key(compare), which.tolist()))


def _keys_of_queues(ssn: Session, job: int, which: AnyArray) -> list[Any]:
    """Smaller for jobs of the queue whose victims go first, with that of the gang in mind."""
    queue, own = ssn.tables.jobs.queue, int(ssn.tables.jobs.queue[job])
    key = cmp_to_key(_compare_queues(ssn, own))
    known = {row: key(row) for row in distinct(queue[which]).tolist()}
    return [known[row] for row in queue[which].tolist()]


def _compare_queues(ssn: Session, own: int) -> Callable[[int, int], int]:
    def goes_first(left: int, right: int) -> bool:
        said = ssn.ask(points.victim_queue_order, *(Queue(ssn.tables, row) for row in (left, right, own)))
        return (said or -ssn.order.compare_queues(left, right)) < 0

    def compare(left: int, right: int) -> int:
        return 0 if left == right else goes_first(right, left) - goes_first(left, right)

    return compare


# -- what plugins allow


def _allowed(ssn: Session, context: EvictionContext, bundles: list[VictimSet], *, agreed: bool) -> list[VictimSet]:
    """Of a safe bundle what plugins let go; a whole one only if that is all of it."""
    rows = [row for bundle in bundles for row in bundle.rows]
    if not rows:
        return []
    tasks = TaskRows(ssn.tables, np.array(rows))
    mask = ssn.ask(points.evictable_agreed if agreed else points.unified_evictable, context, tasks)
    if mask.all():
        return bundles
    found, allowed = [], {row for row, may in zip(rows, mask.tolist(), strict=True) if may}
    for bundle in bundles:
        kept = tuple(row for row in bundle.rows if row in allowed)
        if len(kept) == len(bundle.rows):
            found.append(bundle)
        elif kept and bundle.kind is VictimSetKind.SAFE:
            found.append(bundle._replace(rows=kept, freed=amount_of(ssn, kept)))
    return found
