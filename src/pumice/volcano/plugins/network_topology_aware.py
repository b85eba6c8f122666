"""network-topology-aware: place gangs inside few hypernodes. Source: Volcano network-topology-aware plugin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from pumice.algorithms.sums import sums_by
from pumice.api import (
    EPS,
    F64,
    FUTURE,
    I32,
    IDLE,
    PENDING,
    ROWS,
    USED,
    Bool,
    Job,
    NodeRows,
    Session,
    SubJob,
    Task,
    TaskRun,
    plugin,
    points,
)
from pumice.volcano.topology.rules import job_bound, sub_bound

NAME = "network-topology-aware"
MAX_SCORE = 100.0
PURPOSE_EVICT = "evict"
#: Columns that do not change within a session.
ROOM = (f"{NAME}.allocatable", f"{NAME}.idle", f"{NAME}.future")


@plugin(
    NAME,
    separator=".",
    spelled=(
        "hypernode.binpack.normal-pod.enable",
        "hypernode.binpack.normal-pod.fading",
        "hypernode.gradient.evict.max-hypernodes",
    ),
)
class NetworkTopologyAware:
    """Choose and score hypernodes. Sums over hypernodes have shape (H, R)."""

    def __init__(
        self,
        ssn: Session,
        *,
        weight: float = 1.0,
        hypernode_binpack_cpu: float = 1.0,
        hypernode_binpack_memory: float = 1.0,
        hypernode_binpack_resources: str = "",
        hypernode_binpack_resources_: Mapping[str, float] | None = None,
        hypernode_binpack_normal_pod_enable: bool = True,
        hypernode_binpack_normal_pod_fading: float = 0.8,
        hypernode_gradient_evict_max_hypernodes: int = 8,
    ) -> None:
        self.ssn = ssn
        self.tree = ssn.tables.tree
        self.weight = weight if weight >= 0 else 1.0
        self.normal_pods = hypernode_binpack_normal_pod_enable
        self.fading = hypernode_binpack_normal_pod_fading if hypernode_binpack_normal_pod_fading >= 0 else 0.8
        self.evict_max = hypernode_gradient_evict_max_hypernodes if hypernode_gradient_evict_max_hypernodes > 0 else 8
        self.dimension_weight = self._weights(
            hypernode_binpack_cpu,
            hypernode_binpack_memory,
            hypernode_binpack_resources,
            hypernode_binpack_resources_ or {},
        )
        # Quirk of Volcano, kept on purpose: of these sums only ``used`` follows placements; idle and future amounts
        # stay as they were when the session began.
        books, facts = ssn.tables.nodes.books, ssn.tables.nodes.facts
        self.allocatable = ssn.column(ROOM[0], values=self._sums(facts.allocatable))
        self.idle = ssn.column(ROOM[1], values=self._sums(books[:, IDLE]))
        self.future = ssn.column(ROOM[2], values=self._sums(books[:, FUTURE]))
        self.used = ssn.column(f"{NAME}.used", values=self._sums(books[:, USED]))

    def _weights(self, cpu: float, memory: float, names: str, each: Mapping[str, float]) -> F64:
        """Return the weight per dimension (R,), -1 for dimensions that do not count."""
        found = np.full(len(self.ssn.tables.axis), -1.0)
        found[0] = cpu if cpu >= 0 else 1.0
        found[1] = memory if memory >= 0 else 1.0
        for name in (part.strip() for part in names.split(",")):
            column = self.ssn.tables.axis.column.get(name)
            if column is not None:
                wanted = each.get(name, 1.0)
                found[column] = wanted if wanted >= 0 else 1.0
        return found

    def _sums(self, per_node: F64) -> F64:
        """Sum up amounts of nodes per hypernode. Shape (H, R)."""
        return np.array([per_node[rows].sum(axis=0) for rows in self.tree.nodes])

    # -- which hypernodes to try --------------------------------------------------------------------------------------

    @points.hyper_node_gradient_for_job(reads=(ROWS, *ROOM))
    def gradient_for_job(self, job: Job, start: int, purpose: str) -> list[list[int]] | None:
        """Return the hypernodes to try for a job, by tier."""
        bound = job_bound(self.ssn.tables, job.row)
        # A job without a topology may use the whole of the start.
        if bound is None:
            return [[start]]
        held = int(self.ssn.tables.jobs.hypernode[job.row])
        # By the job's minimum and not by all of its tasks: elastic ones may be placed elsewhere or later.
        return self._gradient(start, bound, held, self.ssn.tables.jobs.min_resources[job.row], purpose)

    @points.hyper_node_gradient_for_sub_job(reads=(ROWS, *ROOM))
    def gradient_for_sub_job(self, sub: SubJob, start: int, purpose: str) -> list[list[int]] | None:
        """Return the hypernodes to try for a sub-job, by tier."""
        bound = sub_bound(self.ssn.tables, sub.row)
        if bound is None:
            return [[start]]
        tasks = self.ssn.tables.tasks
        # Placed tasks already have their room.
        pending = sub.tasks[tasks.status[sub.tasks] == PENDING]
        needed = self.ssn.tables.classes.req[tasks.cls[pending]].sum(axis=0)
        return self._gradient(start, bound, sub.hypernode, needed, purpose)

    def _gradient(self, start: int, bound: int, held: int, needed: F64, purpose: str) -> list[list[int]] | None:
        """Return hypernodes below the start that may have enough room, by tier, the lowest first, or None if there is
        nothing to search."""
        tree = self.tree
        root = start if held < 0 else self._search_root(start, bound, held)
        if root < 0:
            return None
        below, frontier = [], [root]
        while frontier:
            below += frontier
            frontier = [child for h in frontier for child in tree.children[h].tolist()]
        rows = np.array(below)
        eligible = tree.tier[rows] <= bound
        # A job that already holds nodes must stay near them, whether the hypernode has room for its minimum or not.
        if held < 0:
            eligible &= self._enough(rows, needed, purpose)
        by_tier: dict[int, list[int]] = {}
        for row in rows[eligible].tolist():
            by_tier.setdefault(int(tree.tier[row]), []).append(row)
        # Low tiers first: the nearest domain that has room is preferred, and wider ones are tried only if none has.
        groups = [by_tier[tier] for tier in sorted(by_tier)]
        return self._fewer(groups) if purpose == PURPOSE_EVICT else groups

    def _enough(self, rows: I32, needed: F64, purpose: str) -> Bool:
        """Return True for hypernodes with room for the request. Shape (rows,)."""
        looked_at = needed > 0
        # CPU and memory are always compared, even if not requested, as in Volcano.
        looked_at[:2] = True

        def fits(room: F64) -> Bool:
            return np.asarray((~looked_at | (needed - room[rows] < EPS)).all(axis=1))

        if purpose == PURPOSE_EVICT:
            # For evictions everything allocatable counts, since running tasks may leave.
            return fits(self.allocatable.array)
        enough: Bool = fits(self.idle.array) | fits(self.future.array)
        return enough

    def _search_root(self, start: int, bound: int, held: int) -> int:
        """Return the smaller of the start and the widest allowed ancestor of ``held``, or -1 if neither contains the
        other."""
        tree = self.tree
        widest = -1
        for ancestor in tree.ancestors_of(held):
            if tree.tier[ancestor] <= bound:
                widest = ancestor
        if widest < 0:
            return -1
        if start in tree.ancestors_of(widest):
            return widest
        return start if widest in tree.ancestors_of(start) else -1

    def _fewer(self, groups: list[list[int]]) -> list[list[int]]:
        """Return a bounded number of hypernodes for eviction, wide ones first."""
        left, kept = self.evict_max, []
        # Evictions need room, and a wide hypernode has most victims to choose from.
        for group in reversed(groups):
            if left <= 0:
                break
            # Volcano takes the tail of the group that is cut.
            kept.append(group[-left:])
            left -= len(kept[-1])
        return kept

    # -- how good they are --------------------------------------------------------------------------------------------

    def _binpack(self, rows: I32, request: F64) -> F64:
        """Return the weighted share in use with the request in each hypernode, 0 to 1, and 0 where it does not fit.
        Shape (rows,)."""
        looked_at = (request >= EPS) & (self.dimension_weight >= 0)
        total_weight = self.dimension_weight[looked_at].sum()
        if total_weight <= 0:
            return np.zeros(len(rows))
        after = self.used.array[rows][:, looked_at] + request[looked_at]
        allocatable = self.allocatable.array[rows][:, looked_at]
        there = (allocatable > 0) & (self.dimension_weight[looked_at] > 0)
        parts = np.divide(after, allocatable, out=np.zeros_like(after), where=there) * self.dimension_weight[looked_at]
        overflow = ((after > allocatable) & there).any(axis=1)
        return np.where(overflow, 0.0, parts.sum(axis=1) / total_weight)

    @points.hyper_node_order(reads=(ROWS,))
    def hyper_node_order(self, sub: SubJob, hypernodes: I32) -> F64:
        """Return scores: fuller hypernodes first, among equals those that hold more of the job. Shape (rows,)."""
        tasks = self.ssn.tables.tasks
        # Of all tasks of the sub-job, also of those that are placed: Volcano counts these twice, in use and in the
        # request.
        request = self.ssn.tables.classes.req[tasks.cls[sub.tasks]].sum(axis=0)
        score = self._binpack(hypernodes, request)
        self._prefer_occupied(score, hypernodes, sub.job.row)
        return score * MAX_SCORE * self.weight

    def _prefer_occupied(self, score: F64, hypernodes: I32, job: int) -> None:
        """Add the share of the job's tasks in each hypernode, if several have the highest score."""
        best = np.flatnonzero(score == score.max())
        # Occupancy only breaks ties, as in Volcano.
        if len(best) < 2:
            return
        held = self._tasks_by_hypernode(job)
        if held is not None:
            score[best] += held[hypernodes[best]]

    def _tasks_by_hypernode(self, job: int) -> F64 | None:
        """Return the share of the job's tasks in each hypernode (H,), or None if none is placed."""
        tables = self.ssn.tables
        rows = tables.jobs.tasks[job]
        nodes = tables.tasks.node[rows]
        nodes = nodes[nodes >= 0]
        if not len(nodes):
            return None
        found = np.zeros(len(self.tree.names))
        ancestors = self.ancestors_of_node[nodes]
        np.add.at(found, ancestors[ancestors >= 0], 1.0 / len(rows))
        return found

    @points.batch_node_order(reads=(ROWS,))
    def near_its_gang(self, task: Task, nodes: NodeRows) -> F64 | float | None:
        """Return a higher score for nodes near what the gang holds, or None for tasks without topology. Shape
        (rows,)."""
        if self.ssn.tables.subs.topologies[task.sub_job.row] is None:
            return None
        leaves = self.tree.leaf_of[nodes.rows]
        if len(leaves) and (leaves == leaves[0]).all():
            # All candidates are in one hypernode, so one number serves all of them, and it cannot change the order.
            return float(self._nearness(task, leaves[:2])[0])
        return self._nearness(task, leaves)

    @points.batch_node_order(reads=(ROWS, f"{NAME}.used", ROOM[0]))
    def full_hypernodes(self, task: Task, nodes: NodeRows) -> F64 | None:
        """Return a higher score for nodes in full hypernodes, for tasks without topology. Shape (rows,)."""
        if not self.normal_pods or self.ssn.tables.subs.topologies[task.sub_job.row] is not None:
            return None
        return self._normal_pod(task, nodes)

    def _nearness(self, task: Task, leaves: I32) -> F64:
        """Return scores by distance. Shape (leaves,)."""
        held = task.job_hypernode
        if held < 0:
            return np.zeros(len(leaves))
        # All tasks of a gang ask about the same hypernode.
        scores = self.ssn.shared((NAME, "near", held), lambda: self._near(held))[leaves]
        self._prefer_occupied(scores, leaves, task.job.row)
        return scores * MAX_SCORE * self.weight

    def _near(self, held: int) -> F64:
        """Return how near each hypernode is to one: 1 for itself, and less the higher their common ancestor.
        Shape (H,)."""
        tree, lowest, highest = self.tree, int(self.tree.tiers[0]), int(self.tree.tiers[-1])
        # With one tier all others are equally far, and the formula below would divide by 0.
        if lowest == highest:
            return np.ones(len(tree))
        near: F64 = (highest - tree.tier[tree.meeting(held)]) / (highest - lowest)
        # By its tier, a hypernode above the lowest one would get less than 1 for itself.
        near[held] = 1.0
        return near

    def _normal_pod(self, task: Task, nodes: NodeRows) -> F64:
        """Return the binpack score of the hypernodes above each node, weighted by tier, higher tiers less.
        Shape (rows,)."""
        tree = self.tree
        binpack = self._binpack(np.arange(len(tree.names), dtype=np.int32), task.req)
        weight_of, weight_between = tier_weights(tree.tiers, self.fading)
        # Nodes of one lowest hypernode have the same score.
        score = np.full(len(tree.names), weight_between)
        # A node without a hypernode at a tier counts as full there, as in Volcano: -1 is the last element.
        fullness = np.append(binpack, 1.0)
        for above, weight in zip(self.above_by_tier, weight_of, strict=True):
            score += weight * fullness[above]
        score = score / (sum(weight_of) + weight_between) * MAX_SCORE * self.weight
        return score[tree.leaf_of[nodes.rows]]

    @cached_property
    def above_by_tier(self) -> list[I32]:
        """For each tier, ascending, the hypernode that contains each hypernode, or is it, -1 for none. Shapes (H,)."""
        return [self._at_tier(tier) for tier in self.tree.tiers]

    def _at_tier(self, tier: int) -> I32:
        """Return the hypernode of a tier that contains each hypernode, or is it, -1 for none. Shape (H,)."""
        ancestors = self.tree.ancestors
        matches = (ancestors >= 0) & (self.tree.tier[ancestors] == tier)
        first = matches.argmax(axis=1)
        return np.where(matches.any(axis=1), ancestors[np.arange(len(ancestors)), first], -1)

    @cached_property
    def ancestors_of_node(self) -> I32:
        """Every hypernode that contains each node (N, D), padded with -1."""
        return self.tree.ancestors[self.tree.leaf_of]

    # -- what moves ---------------------------------------------------------------------------------------------------

    @points.on_allocate
    def on_allocate(self, run: TaskRun) -> None:
        self._move(run, 1.0)

    @points.on_deallocate
    def on_deallocate(self, run: TaskRun) -> None:
        self._move(run, -1.0)

    def _move(self, run: TaskRun, sign: float) -> None:
        """Add tasks to the used amounts of all hypernodes above their nodes, or subtract them."""
        nodes, amounts = run.by_node(self.ssn.tables.classes.req)
        ancestors = self.ancestors_of_node[nodes]
        # The hypernodes above one node are distinct, so a plain add suffices.
        if ancestors.ndim == 1:
            self.ssn.journal.add(self.used, ancestors[ancestors >= 0], sign * amounts)
            return
        which, level = np.nonzero(ancestors >= 0)
        rows, place = np.unique(ancestors[which, level], return_inverse=True)
        of_each = np.broadcast_to(amounts, (len(ancestors), amounts.shape[-1]))
        self.ssn.journal.add(self.used, rows, sign * sums_by(place, of_each[which], len(rows)))


def tier_weights(tiers: Sequence[int], fading: float) -> tuple[list[float], float]:
    """Return ``fading ** tier``, scaled so that the largest is 1: for each of the ascending tiers, and summed up for
    all whole numbers between them."""
    # Scaling by the largest keeps the powers from overflowing.
    ratio, heaviest = (fading, tiers[0]) if fading <= 1 else (1 / fading, tiers[-1])
    of_tier = [ratio ** abs(tier - heaviest) for tier in tiers]
    between = 0.0
    for i in range(len(tiers) - 1):
        missing = tiers[i + 1] - tiers[i] - 1
        if missing:
            larger, smaller = max(of_tier[i : i + 2]), min(of_tier[i : i + 2])
            # A geometric series in closed form: the cost does not depend on the distance between tiers.
            between += (larger * ratio - smaller) / (1 - ratio) if ratio < 1 else missing
    return of_tier, between
