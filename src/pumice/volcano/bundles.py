"""Victims of a whole gang in one domain, in bundles: of each job what it can spare, and the rest of what it has there.
Source: Volcano's gang evictions (spec 03 §6.3)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import cmp_to_key
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from pumice.columns.counting import READY
from pumice.columns.dtypes import EPS, F64, AnyArray
from pumice.columns.rows import TaskRows
from pumice.columns.views import Job, Queue
from pumice.framework.session import Session
from pumice.model.pod import PREEMPTABLE_KEY, is_true
from pumice.model.podgroup import PodGroup
from pumice.volcano import points
from pumice.volcano.eviction import EvictionContext, EvictionKind
from pumice.volcano.readiness import sub_missing


class BundleKind(IntEnum):
    """``SAFE``: the job stays ready, or is not so anyway. ``WHOLE``: it breaks."""

    SAFE = 0
    WHOLE = 1


class Bundle(NamedTuple):
    """Tasks of one job that are evicted together. ``gain``: how much of what is asked for they free, over how much of
    it is lost all over the cluster; infinite where nothing more is lost."""

    kind: BundleKind
    job: int
    rows: tuple[int, ...]
    gain: float


def bundles_of(
    ssn: Session, kind: EvictionKind, job: int, hypernode: int, candidates: TaskRows, need: F64, *, whole: bool
) -> list[Bundle]:
    """Bundles of a domain, the first one to be evicted first. ``candidates``: who may be thought of there at all.
    ``need`` (R,): what the gang asks for. Not ``whole``: no job is broken."""
    found = list(_split(ssn, candidates, need))
    found.sort(key=_order(ssn, kind, job))
    found = _allowed(ssn, EvictionContext(kind, Job(ssn.tables, job), hypernode=hypernode), found, need)
    found.sort(key=_order(ssn, kind, job))
    return [bundle for bundle in found if whole or bundle.kind is BundleKind.SAFE]


def may_be_evicted(group: PodGroup) -> bool:
    """Whether a gang eviction may touch the job: unless its PodGroup says otherwise."""
    mark = group.annotations.get(PREEMPTABLE_KEY, group.labels.get(PREEMPTABLE_KEY))
    return mark is None or is_true(mark)


# -- what a job can spare


def _split(ssn: Session, candidates: TaskRows, need: F64) -> Iterator[Bundle]:
    tables = ssn.tables
    pods, priority = tables.tasks.pods, tables.tasks.priority
    order = np.lexsort((candidates.rows, candidates.job))
    pairs = zip(candidates.job[order].tolist(), candidates.rows[order].tolist(), strict=True)
    for job, each in groupby(pairs, key=lambda pair: pair[0]):
        if not may_be_evicted(tables.jobs.groups[job]):
            continue
        rows = sorted((row for _, row in each), key=lambda row: (int(priority[row]), pods[row].uid))
        safe = _spare(ssn, job, rows)
        rest = [row for row in rows if row not in safe]
        if safe:
            yield _bundle(ssn, BundleKind.SAFE, job, [row for row in rows if row in safe], need)
        if rest:
            yield _bundle(ssn, BundleKind.WHOLE, job, rest, need)


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


def _bundle(ssn: Session, kind: BundleKind, job: int, rows: Sequence[int], need: F64) -> Bundle:
    lost = amount_of(ssn, ssn.tables.jobs.tasks[job]) if kind is BundleKind.WHOLE else None
    return Bundle(kind, job, tuple(rows), _gain(amount_of(ssn, rows), lost, need))


def amount_of(ssn: Session, rows: Iterable[int] | AnyArray) -> F64:
    """What tasks ask for together (R,)."""
    tables = ssn.tables
    found: F64 = tables.classes.req[tables.tasks.cls[np.array(list(rows), dtype=np.int64)]].sum(axis=0)
    return found


def _gain(local: F64, lost: F64 | None, need: F64) -> float:
    asked = need >= EPS
    if lost is None or not lost[asked].any():
        return math.inf
    gained = np.minimum(local[asked], need[asked]) / need[asked]
    return float(gained.sum() / (lost[asked] / need[asked]).sum())


# -- in which order


def _order(ssn: Session, kind: EvictionKind, job: int) -> Callable[[Bundle], Any]:
    """Safe ones first; then by job, the one that would go last (or by queue, with the gang's own in mind); then by
    gain; of equal ones by names."""
    by_whom = _by_job if kind is EvictionKind.GANG_PREEMPT else _by_queue

    def compare(left: Bundle, right: Bundle) -> int:
        said = left.kind - right.kind or by_whom(ssn, job, left.job, right.job)
        if said:
            return said
        if left.gain != right.gain:
            return -1 if left.gain > right.gain else 1
        a, b = _names(ssn, left), _names(ssn, right)
        return (a > b) - (a < b)

    return cmp_to_key(compare)


def _by_job(ssn: Session, job: int, left: int, right: int) -> int:
    if left == right:
        return 0
    jobs, said = ssn.tables.jobs, ssn.order.compare_jobs(left, right)
    if said or jobs.creation[left] == jobs.creation[right]:
        return -said
    return -1 if jobs.creation[left] > jobs.creation[right] else 1


def _by_queue(ssn: Session, job: int, left: int, right: int) -> int:
    queue = ssn.tables.jobs.queue
    if queue[left] == queue[right]:
        return 0
    a, b, own = (Queue(ssn.tables, int(queue[row])) for row in (left, right, job))
    ahead = _goes_first(ssn, a, b, own)
    behind = _goes_first(ssn, b, a, own)
    return 0 if ahead == behind else (-1 if ahead else 1)


def _goes_first(ssn: Session, left: Queue, right: Queue, own: Queue) -> bool:
    said = ssn.ask(points.victim_queue_order, left, right, own)
    return (said or -ssn.order.compare_queues(left.row, right.row)) < 0


def _names(ssn: Session, bundle: Bundle) -> tuple[str, str, int]:
    first = min(ssn.tables.tasks.pods[row].uid for row in bundle.rows)
    return ssn.tables.jobs.uids[bundle.job], first, len(bundle.rows)


# -- what plugins allow


def _allowed(ssn: Session, context: EvictionContext, bundles: list[Bundle], need: F64) -> list[Bundle]:
    """Of a safe bundle what plugins let go; a whole one only if that is all of it."""
    rows = [row for bundle in bundles for row in bundle.rows]
    if not rows:
        return []
    mask = ssn.ask(points.unified_evictable, context, TaskRows(ssn.tables, np.array(rows)))
    allowed = {row for row, may in zip(rows, mask.tolist(), strict=True) if may}
    found = []
    for bundle in bundles:
        kept = [row for row in bundle.rows if row in allowed]
        if len(kept) == len(bundle.rows):
            found.append(bundle)
        elif kept and bundle.kind is BundleKind.SAFE:
            found.append(_bundle(ssn, bundle.kind, bundle.job, kept, need))
    return found
