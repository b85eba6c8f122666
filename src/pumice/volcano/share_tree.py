"""Hierarchical dominant resource fairness: queues as a tree of weighted nodes, jobs as its leaves.

Source: Volcano drf with enableHierarchy (spec 04 §6); H-DRF (Bhattacharya et al., SoCC'13).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pumice.algorithms.shares import EPS, dominant_share
from pumice.columns.column import Column
from pumice.columns.dtypes import F64, Bool
from pumice.columns.rows import Candidates
from pumice.columns.views import Queue, Task
from pumice.framework.session import Session
from pumice.model.status import TaskStatus

PATH, WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
DEPTH_MAX = 64


@dataclass(slots=True)
class _Node:
    weight: float = 1.0
    children: dict[str, _Node] = field(default_factory=dict)
    jobs: list[int] = field(default_factory=list)
    allocated: F64 = field(default_factory=lambda: np.zeros(0))
    share: float = 0.0
    saturated: bool = False


class ShareTree:
    """``allocated`` (J, R) is the plugin's live column: the tree is evaluated anew where its version is another one
    than last time."""

    def __init__(self, ssn: Session, allocated: Column[F64]) -> None:
        self._ssn = ssn
        self._allocated = allocated
        self._root = _Node()
        self._path: dict[int, list[_Node]] = {}
        names = ssn.tables.queues.names
        for queue in sorted(range(len(names)), key=names.__getitem__):
            self._path[queue] = self._nodes_of(ssn.tables.queues.objs[queue].annotations)
        self._request = allocated.array + _pending_by_job(ssn)
        for job in ssn.live_jobs.tolist():
            self._path[int(ssn.tables.jobs.queue[job])][-1].jobs.append(job)
        self._version = -1  # of what was evaluated last

    def _nodes_of(self, annotations: Mapping[str, str]) -> list[_Node]:
        """A queue's nodes from the root down. Where queues do not agree on the weight of a node that they share, it is
        that of the first one by name."""
        names = annotations.get(PATH, "root").split("/")[:DEPTH_MAX]
        weights = annotations.get(WEIGHTS, "").split("/")
        path = [self._root]
        for i, name in enumerate(names[1:], start=1):
            weight = _weight(weights[i]) if i < len(weights) else 1.0
            path.append(path[-1].children.setdefault(name, _Node(weight)))
        return path

    def compare(self, left: Queue, right: Queue) -> int:
        """Saturated later, else the smaller share per weight first, level by level down both paths."""
        if self._version != self._allocated.version:
            self.evaluate(self._allocated.array)
            self._version = self._allocated.version
        return self._compare(left.row, right.row)

    def _compare(self, left: int, right: int) -> int:
        a, b = self._path[left], self._path[right]
        depth = min(len(a), len(b))
        for i in range(depth):
            if a[i].saturated != b[i].saturated:
                return 1 if a[i].saturated else -1
            x, y = a[i].share / a[i].weight, b[i].share / b[i].weight
            if x != y:
                return -1 if x < y else 1
        return 0

    def reclaimable(self, reclaimer: Task, candidates: Candidates) -> Bool:
        """Candidates whose queue would come after the reclaimer's with the reclaimer placed and the candidate gone.
        Shape (rows,)."""
        own, allocated, self._version = reclaimer.job, self._allocated.array.copy(), -1
        allocated[own.row] += reclaimer.req
        victims = np.zeros(len(candidates), dtype=bool)
        known: dict[tuple[int, int], bool] = {}  # equal tasks of a job leave the same behind
        kinds = zip(candidates.job.tolist(), candidates.classes, strict=True)
        for i, (kind, queue, req) in enumerate(zip(kinds, candidates.queue.tolist(), candidates.req, strict=True)):
            if kind not in known:
                held = allocated[kind[0]].copy()
                allocated[kind[0]] -= req
                self.evaluate(allocated)
                known[kind] = self._compare(own.queue, queue) < 0
                allocated[kind[0]] = held
            victims[i] = known[kind]
        return victims

    def evaluate(self, allocated: F64) -> None:
        """Shares and saturation of every node, from the leaves up, for jobs that hold so much (J, R)."""
        total = self._ssn.total
        demanding = allocated[self._ssn.live_jobs].sum(axis=0) < total
        self._evaluate(self._root, allocated, demanding)

    def _evaluate(self, node: _Node, held: F64, demanding: Bool) -> None:
        total = self._ssn.total
        parts: list[tuple[F64, float, bool]] = []
        for child in node.children.values():
            self._evaluate(child, held, demanding)
            parts.append((child.allocated, child.share, child.saturated))
        for job in node.jobs:
            share = float(dominant_share(held[job], total))
            parts.append((held[job], share, self._saturated(held[job], self._request[job], demanding)))
        least = min([1.0, *(share for _, share, full in parts if not full and share != 0)])
        node.allocated = np.zeros(len(total))
        for allocated, share, full in parts:
            if share != 0:
                node.allocated += allocated if full else allocated * (least / share)
        node.share = float(dominant_share(node.allocated, total))
        node.saturated = all(full for _, _, full in parts)

    @staticmethod
    def _saturated(allocated: F64, request: F64, demanding: Bool) -> bool:
        """Whether a job has all it asked of something it holds, or holds something of which nothing is left."""
        there = (allocated >= EPS) & (request != 0)
        return bool((there & ((allocated >= request) | ~demanding)).any())


def _weight(text: str) -> float:
    try:
        return max(1.0, float(text))
    except ValueError:
        return 1.0


def _pending_by_job(ssn: Session) -> F64:
    """What a job's tasks that hold nothing ask for (J, R); with what is held it makes the job's total request."""
    tables = ssn.tables
    found = np.zeros_like(tables.jobs.allocated)
    status = tables.tasks.status
    rows = np.flatnonzero((status >= 0) & (tables.tasks.job >= 0))
    held = np.isin(status[rows], [TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING])
    rows = rows[~held]
    np.add.at(found, tables.tasks.job[rows], tables.classes.req[tables.tasks.cls[rows]])
    return found
