"""Hierarchical dominant resource fairness: a tree of weighted queues with jobs as leaves.

Source: Volcano drf plugin with enableHierarchy; H-DRF (Bhattacharya et al., SoCC'13).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from pumice.algorithms.shares import EPS, dominant_share
from pumice.algorithms.sums import sums_by
from pumice.columns.column import Column
from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.rows import Candidates
from pumice.columns.views import Queue, Task
from pumice.framework.cycle.session import Session
from pumice.model.status import TaskStatus

PATH, WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
DEPTH_MAX = 64


class _Level(NamedTuple):
    """Nodes of one depth and what is below them.

    ``here``: nodes of this depth that count. ``nodes`` and ``jobs``: their children, jobs as positions among the live
    ones. ``parent``: the parent of each child, first of the nodes and then of the jobs.
    """

    here: AnyArray
    nodes: AnyArray
    jobs: AnyArray
    parent: AnyArray


class ShareTree:
    """The tree of queues. ``allocated`` (J, R) is the plugin's live column; shares are computed again when its version
    changes.

    Nodes are numbered, 0 is the root; ``parent`` (nodes,). A node without jobs below it does not count: it has no
    share and is not saturated. ``request`` (jobs, R) is of the live jobs, in order.
    """

    def __init__(self, ssn: Session, allocated: Column[F64]) -> None:
        self._allocated = allocated
        self._number: dict[tuple[int, str], int] = {}
        self._parents, self._weights = [-1], [1.0]
        queues = ssn.tables.queues
        self._path: list[list[int]] = [[] for _ in queues.names]
        for queue in sorted(range(len(queues)), key=queues.names.__getitem__):
            self._path[queue] = self._nodes_of(queues.objs[queue].annotations)
        self.total, self.parent, self._jobs = ssn.total, np.array(self._parents), ssn.live_jobs
        leaves = np.array([path[-1] for path in self._path], dtype=np.int64)
        self._leaf_of = leaves[ssn.tables.jobs.queue[self._jobs]] if len(leaves) else self._jobs
        self._levels = self._by_level(self._leaf_of)
        self.request = (allocated.array + _pending_by_job(ssn))[self._jobs]
        self._filled: tuple[int, F64, Bool] | None = None  # version last evaluated, shares, saturation

    def _nodes_of(self, annotations: Mapping[str, str]) -> list[int]:
        """Return the nodes of a queue from the root down."""
        # Bounded, because an annotation may have any length.
        names = annotations.get(PATH, "root").split("/")[:DEPTH_MAX]
        weights = annotations.get(WEIGHTS, "").split("/")
        path = [0]
        for i, name in enumerate(names[1:], start=1):
            node = self._number.setdefault((path[-1], name), len(self._parents))
            # Queues that share a node may give it different weights. The first queue by name decides; Volcano takes
            # the first in the order of a Go map.
            if node == len(self._parents):
                self._parents.append(path[-1])
                self._weights.append(_weight(weights[i]) if i < len(weights) else 1.0)
            path.append(node)
        return path

    def _by_level(self, node_of_job: AnyArray) -> list[_Level]:
        """Return the levels, the deepest first."""
        parents = self.parent
        counts, depth = np.zeros(len(parents), dtype=bool), np.zeros(len(parents), dtype=np.int64)
        # A parent is numbered before its children, so one pass in order suffices.
        for node, parent in enumerate(self._parents[1:], start=1):
            depth[node] = depth[parent] + 1
        counts[node_of_job] = True
        for node in range(len(parents) - 1, 0, -1):
            counts[parents[node]] |= counts[node]
        levels = []
        for above in range(int(depth.max()), -1, -1):
            nodes = (counts & (depth == above + 1)).nonzero()[0]
            jobs = (depth[node_of_job] == above).nonzero()[0]
            here = (counts & (depth == above)).nonzero()[0]
            levels.append(_Level(here, nodes, jobs, np.concatenate((parents[nodes], node_of_job[jobs]))))
        self._counts = counts
        return levels

    def right_below(self, node: int) -> tuple[AnyArray, AnyArray]:
        """Return the children of a node: nodes that count, and positions of jobs."""
        return ((self.parent == node) & self._counts).nonzero()[0], (self._leaf_of == node).nonzero()[0]

    # -- questions ----------------------------------------------------------------------------------------------------

    def compare(self, left: Queue, right: Queue) -> int:
        """Compare two queues level by level: unsaturated before saturated, then smaller share per weight."""
        if self._filled is None or self._filled[0] != self._allocated.version:
            held = self._allocated.array[self._jobs]
            found = self.evaluate(held, held.sum(axis=0) < self.total)
            self._filled = self._allocated.version, found.share, found.full
        return self.order(left.row, right.row, *self._filled[1:])

    def order(self, left: int, right: int, share: F64, full: Bool) -> int:
        """Compare two queues, given the share and the saturation of each node."""
        for a, b in zip(self._path[left], self._path[right], strict=False):
            # Saturation goes first, as in H-DRF: a queue with nothing more to ask for must not hold back the others.
            if full[a] != full[b]:
                return 1 if full[a] else -1
            x, y = share[a] / self._weights[a], share[b] / self._weights[b]
            if x != y:
                return -1 if x < y else 1
        return 0

    def reclaimable(self, reclaimer: Task, candidates: Candidates) -> Bool:
        """Return the candidates whose queue would come after the reclaimer's, once the reclaimer is placed and the
        candidate gone. Shape (rows,)."""
        own, held = reclaimer.job, self._allocated.array[self._jobs]
        place = np.searchsorted(self._jobs, candidates.job)
        # ``held`` is a copy, since it was indexed with an array, so the live column stays as it is.
        held[np.searchsorted(self._jobs, own.row)] += reclaimer.req
        trial = _Trial(self, held)
        # Each candidate is tested alone, so equal tasks of equal jobs share an answer.
        answers: dict[tuple[int, int, bytes, bytes], bool] = {}
        found = []
        each = zip(place.tolist(), candidates.queue.tolist(), candidates.classes, candidates.req, strict=True)
        for job, queue, cls, req in each:
            kind = queue, cls, held[job].tobytes(), self.request[job].tobytes()
            if kind not in answers:
                answers[kind] = self.order(own.queue.row, queue, *trial.without(job, self._path[queue], req)) < 0
            found.append(answers[kind])
        return np.array(found, dtype=bool)

    # -- shares -------------------------------------------------------------------------------------------------------

    def evaluate(self, held: F64, demanding: Bool) -> _Filled:
        """Return shares and saturation of every node, given what live jobs hold (jobs, R)."""
        total, nodes = self.total, len(self.parent)
        job_share, job_full = dominant_share(held, total), self.saturated_jobs(held, self.request, demanding)
        amounts, share, full = np.zeros((nodes, len(total))), np.zeros(nodes), np.zeros(nodes, dtype=bool)
        for level in self._levels:
            parts = _Parts(
                np.concatenate((amounts[level.nodes], held[level.jobs])),
                np.concatenate((share[level.nodes], job_share[level.jobs])),
                np.concatenate((full[level.nodes], job_full[level.jobs])),
            )
            filled = parts.filled(level.parent, nodes)
            here = level.here
            amounts[here], full[here] = filled.amounts[here], filled.full[here]
            share[here] = dominant_share(amounts[here], total)
        return _Filled(amounts, share, full, job_share, job_full)

    @staticmethod
    def saturated_jobs(held: F64, request: F64, demanding: Bool) -> Bool:
        """Return the jobs that have all that they asked of a resource, or that hold a resource of which nothing is
        left. Shape (jobs,)."""
        # Quirk of Volcano, kept on purpose: only resources that a job holds are examined, so a job that holds nothing
        # is never saturated.
        there = (held >= EPS) & (request != 0)
        return np.asarray((there & ((held >= request) | ~demanding)).any(axis=-1))


class _Filled(NamedTuple):
    """Every node with all below it: ``amounts`` (nodes, R), ``share`` and ``full`` (nodes,), and the last two of
    jobs."""

    amounts: F64
    share: F64
    full: Bool
    job_share: F64
    job_full: Bool


class _Sums(NamedTuple):
    """Amounts and saturation of nodes."""

    amounts: F64
    full: Bool


class _Parts(NamedTuple):
    """Children of nodes: amounts (parts, R), share, and whether each is saturated."""

    amounts: F64
    share: F64
    full: Bool

    def filled(self, parent: AnyArray, nodes: int) -> _Sums:
        """Combine the children of each node. ``parent`` (parts,). Shapes (nodes, …)."""
        counts = self.share != 0
        free = counts & ~self.full
        # H-DRF: children that are not saturated are scaled down to the smallest share among them, so that a child with
        # a large share does not hold back its siblings.
        least, full = np.ones(nodes), np.ones(nodes, dtype=bool)
        np.minimum.at(least, parent[free], self.share[free])
        full[parent[~self.full]] = False
        scale = np.where(free, least[parent] / np.where(counts, self.share, 1.0), 1.0) * counts
        return _Sums(sums_by(parent, self.amounts * scale[:, None], nodes), full)


class _Trial:
    """The tree without one task. Only nodes above the task are computed again, unless the set of exhausted resources
    changes."""

    def __init__(self, tree: ShareTree, held: F64) -> None:
        self._tree, self._held, self._sum, self._total = tree, held, held.sum(axis=0), tree.total
        self._filled: dict[bytes, _Filled] = {}
        self._below: dict[int, tuple[AnyArray, AnyArray]] = {}

    def without(self, job: int, path: list[int], req: F64) -> tuple[F64, Bool]:
        """Return shares and saturation of every node without a task that asks for ``req``. ``job``: its position among
        the live ones."""
        tree, demanding = self._tree, self._sum - req < self._total
        # Which resources are exhausted affects the saturation of every job, so there is a full evaluation for each
        # such set.
        base = self._filled.get(demanding.tobytes())
        if base is None:
            base = self._filled[demanding.tobytes()] = tree.evaluate(self._held, demanding)
        held = self._held[job] - req
        amount, part = held, float(dominant_share(held, self._total))
        is_full = bool(tree.saturated_jobs(held, tree.request[job], demanding))
        share, full, changed = base.share.copy(), base.full.copy(), len(base.share) + job
        for node in reversed(path):
            nodes, jobs = self._right_below(node)
            # Jobs are numbered after nodes, so that one number tells which child has changed.
            places = np.concatenate((nodes, jobs + len(base.share))) == changed
            parts = _Parts(
                np.where(places[:, None], amount, np.concatenate((base.amounts[nodes], self._held[jobs]))),
                np.where(places, part, np.concatenate((base.share[nodes], base.job_share[jobs]))),
                np.where(places, is_full, np.concatenate((base.full[nodes], base.job_full[jobs]))),
            )
            filled = parts.filled(np.zeros(len(places), dtype=np.int64), 1)
            amount, part = filled.amounts[0], float(dominant_share(filled.amounts[0], self._total))
            is_full, changed = bool(filled.full[0]), node
            share[node], full[node] = part, is_full
        return share, full

    def _right_below(self, node: int) -> tuple[AnyArray, AnyArray]:
        """Return the children of a node, cached."""
        found = self._below.get(node)
        if found is None:
            found = self._below[node] = self._tree.right_below(node)
        return found


def _weight(text: str) -> float:
    """Read a weight: at least 1, and 1 if it is invalid, as in Volcano."""
    try:
        return max(1.0, float(text))
    except ValueError:
        return 1.0


def _pending_by_job(ssn: Session) -> F64:
    """Return what tasks that hold nothing ask for, by job; with what is held it makes the total request. Shape (J,
    R)."""
    tables = ssn.tables
    found = np.zeros_like(tables.jobs.allocated)
    status = tables.tasks.status
    rows = np.flatnonzero((status >= 0) & (tables.tasks.job >= 0))
    held = np.isin(status[rows], [TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING])
    # With releasing and pipelined tasks: they hold nothing here, but what they ask for belongs to the request.
    rows = rows[~held]
    np.add.at(found, tables.tasks.job[rows], tables.classes.req[tables.tasks.cls[rows]])
    return found
