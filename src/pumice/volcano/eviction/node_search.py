"""Find nodes on which evictions can make room for a task, in the order in which they are tried.

What rules out a node for good is computed for a whole class, and what all candidates of a node hold is summed up in
advance, so that most hopeless nodes are ruled out before any plugin is asked about victims. Plugins vote about the
remaining nodes in batches: first one node, which usually suffices, then more and more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from pumice.columns.counting import PENDING
from pumice.columns.dtypes import I64, AnyArray, Bool
from pumice.columns.nodes import FUTURE
from pumice.columns.rows import Candidates, NodeRows, TaskRows
from pumice.columns.tasks import NO_GATE
from pumice.columns.views import Task
from pumice.framework.cycle.budget import Budget
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.combine import Named
from pumice.framework.plugin.filter_result import Code
from pumice.placing.batch import placing_of
from pumice.placing.feasibility import can_mend
from pumice.volcano import points
from pumice.volcano.eviction.candidates import Supply, amounts_by_node
from pumice.volcano.eviction.refuted_nodes import Votes
from pumice.volcano.topology.label_domains import held_domain

#: Nodes on which victims are sought in vain in one step, which takes about 25 µs.
NODES_A_STEP = 3
#: Steps of a job that begins, with its attempt within itself and the first class of its tasks; of each further class;
#: of a search that found no node; of each victim of a node after the first; and of a trial on a node in vain: there
#: enough would leave, and a filter refuses still.
JOB_STEPS, CLASS_STEPS, FAILURE_STEPS, MORE_VICTIMS_STEPS, IN_VAIN_STEPS = 26, 40, 60, 12, 5
#: Steps of each task that filters look at alone, beside these.
ALONE_STEPS = 50
#: Steps for which an account may draw on the reserve, for its first job and for each task of it.
_LEAST, _LEAST_FOR_TASK = 64, 64
#: Factor by which batches of nodes grow after the first node.
#: Most searches end at the first node. If not, many nodes are usually needed, and a call of the plugins costs about the
#: same for a few nodes more.
_MORE = 4


class VictimChoice(NamedTuple):
    """A node with room for the task once the ``victims``, by row, are gone."""

    node: int
    victims: list[int]


class EvictionStatistics(NamedTuple):
    """How plugins voted about victims.

    ``asked``: tasks that might be evicted. ``named``: tasks that plugins allow to be evicted. ``spared``: per plugin,
    how many it protects, and what protects them, such as budgets, in words. ``enough``: nodes on which the allowed
    tasks would free enough.
    """

    asked: int
    named: int
    spared: tuple[tuple[str, int, tuple[str, ...]], ...]
    enough: int


def begin_search(budget: Budget, task: Task, *, alone: bool = False) -> bool:
    """Take the steps of a task for which victims are sought. ``alone``: filters look at the single task, as those for
    terms about other pods do. Return False if they are not left."""
    # A task costs little after an equal one: what its class finds is known, and only changed nodes are looked at again.
    # By job, and not by account: which classes are known there depends on what is remembered of earlier cycles.
    job, cls = task.job.row, task.cls.row
    begins, new = budget.is_first((job,)), budget.is_first((job, cls))
    steps = 1 + (JOB_STEPS if begins else CLASS_STEPS if new else 0)
    # What filters say of it changes with each task that is placed, so it costs as much after an equal one.
    return budget.spend(steps + (ALONE_STEPS if alone else 0))


def least_steps(ssn: Session) -> Callable[[int], int]:
    """Return the steps that a job may need, by row, for an account that begins with it."""
    return lambda job: _LEAST + _LEAST_FOR_TASK * int(ssn.tables.jobs.size[job])


class NodeSearch:
    """The search for nodes for the tasks of one action.

    ``cached``: a node that fails for good for one task of a role is skipped for other tasks of that job and role.
    ``by_score``: nodes will be read in order of score.
    """

    def __init__(self, ssn: Session, *, cached: bool, by_score: bool) -> None:
        self._ssn, self._tables, self._cached, self._by_score = ssn, ssn.tables, cached, by_score
        self._failed: dict[tuple[int, int], Bool] = {}
        self._tried: set[int] = set()
        #: Filters looked at the last task alone for which nodes were sought.
        self.is_alone = False

    # -- nodes --------------------------------------------------------------------------------------------------------

    def reachable(self, task: Task) -> Bool:
        """Return the nodes for which evictions may help. Shape (N,)."""
        ssn, feasible, cls = self._ssn, placing_of(self._ssn).feasible, int(self._tables.tasks.cls[task.row])
        self._tried.add(task.row)
        # Scores need the full answer of the class, which then also gives the filters; otherwise filters alone are
        # cheaper.
        # A copy, because the mask belongs to the class and is narrowed here for one task.
        found = feasible.of(cls).allowed.copy() if self._by_score else feasible.mendable(cls).copy()
        if self._by_score and not found.all():
            found |= feasible.mendable(cls)
        filter_results = ssn.ask(points.task_filters, task, feasible.all_nodes)
        self.is_alone = bool(filter_results)
        if filter_results:
            found &= can_mend(filter_results, len(found))
        # Nodes of other schedulers' shards: what runs there is not this scheduler's to evict.
        if feasible.outside is not None:
            found &= ~feasible.outside
        job = int(self._tables.tasks.job[task.row])
        within = held_domain(ssn, job) if self._tables.jobs.has_topology[job] else None
        if within is not None:
            found &= within
        looked_at = self.not_given_up(task)
        if looked_at is not None:
            found &= looked_at
        role = int(self._tables.tasks.role[task.row])
        # Volcano's error cache: it applies to the role, whatever the next task asks for.
        if self._cached and role:
            key = int(self._tables.tasks.job[task.row]), role
            before = self._failed.get(key)
            failed = ~found if looked_at is None else ~found & looked_at
            if before is not None:
                found &= ~before
                failed |= before
            self._failed[key] = failed
        return found

    @staticmethod
    def cost(victims: Victims, reachable: Bool) -> int:
        """Return the steps of a search that found no node."""
        # Of all nodes where victims might have been enough, whether or not an equal task ruled them out before: what is
        # remembered saves work and no steps.
        return FAILURE_STEPS + int(np.count_nonzero(reachable & victims.could_hold())) // NODES_A_STEP

    def not_given_up(self, task: Task) -> Bool | None:
        """Return the nodes that no earlier action found unresolvable for the task (N,), or None for all nodes."""
        errors = self._ssn.trace.errors_of(int(self._tables.tasks.job[task.row])).get(task.row)
        if errors is None or errors.node_rows is None or errors.codes is None:
            return None
        # Source: Volcano FilterOutUnschedulableAndUnresolvableNodesForTask. No eviction mends a taint or a selector
        # that allocate has found against a node.
        given_up = errors.node_rows[errors.codes == Code.UNRESOLVABLE]
        if not len(given_up):
            return None
        found = np.ones(len(self._tables.nodes.facts), dtype=bool)
        found[given_up] = False
        return found

    def was_tried(self, task: Task) -> bool:
        """Return True if nodes have been examined for the task in this session."""
        job, trace = int(self._tables.tasks.job[task.row]), self._ssn.trace
        errors, last_trial = trace.errors_of(job).get(task.row), trace.undone_of(job)
        if task.row in self._tried or (errors is not None and not errors.skipped):
            return True
        return last_trial is not None and bool((last_trial.status[self._tables.jobs.tasks[job] == task.row] >= 0).any())

    def passes(self, task: Task, node: int) -> bool:
        """Return True if no filter rejects the node in its present state."""
        return bool(self.passing(task, np.array([node])).all())

    def passing(self, task: Task, nodes: AnyArray) -> Bool:
        """Return True for nodes that no filter rejects in their present state. Shape (nodes,)."""
        ssn, rows, found = self._ssn, NodeRows(self._tables, nodes), np.ones(len(nodes), dtype=bool)
        # Asked anew and not read from the class: evictions of this search have changed the node.
        for filter_result in ssn.ask(points.class_filters, task.cls, rows):
            found &= filter_result.codes == 0
        if found.any():
            for filter_result in ssn.ask(points.task_filters, task, rows):
                found &= filter_result.codes == 0
        return found

    def has_room(self, task: Task, node: int) -> bool:
        """Return True if the future idle resources of the node suffice."""
        # As a list: for one node this is faster than comparing arrays.
        future = self._tables.nodes.books[node, FUTURE].tolist()
        return all(future[d] > limit for d, limit in self._tables.classes.asked[self._tables.tasks.cls[task.row]])

    def may_take(self, task: Task) -> bool:
        """Return True if the queue of the task may take it."""
        # Volcano's reclaim does not ask, and may evict for a task that its queue then refuses (decision 0017).
        rows = TaskRows(self._tables, np.array([task.row]))
        return self._ssn.ask(points.tasks_allowed, task.queue, rows).tasks > 0

    def fits(self, task: Task, node: int) -> bool:
        """Return True if the task fits on the node as the session is now."""
        return self.has_room(task, node) and self.may_take(task) and self.passes(task, node)

    # -- in order -----------------------------------------------------------------------------------------------------

    def best_first(self, task: Task, mask: Bool) -> Iterator[I64]:
        """Yield nodes by falling score, own shard first, the first row of equal ones: one node, then growing
        batches."""
        placing, fit = placing_of(self._ssn), None
        for part in self.by_shard(mask):
            rows = part.nonzero()[0]
            fit = fit or placing.feasible.of(int(self._tables.tasks.cls[task.row]))
            score = placing.scores(task, fit, NodeRows(self._tables, rows))
            # The best node alone costs no sort, and usually it is enough.
            best = int(score.argmax())
            yield rows[best : best + 1]
            rest = (-score).argsort(kind="stable")
            yield from _growing(rows[rest[rest != best]])

    def in_row_order(self, mask: Bool) -> Iterator[I64]:
        """Yield nodes in row order, own shard first: one node, then growing batches."""
        for part in self.by_shard(mask):
            rows = part.nonzero()[0]
            yield rows[:1]
            yield from _growing(rows[1:])

    def by_shard(self, mask: Bool) -> Iterator[Bool]:
        """Yield the nodes of the own shard and then the others, if there are any."""
        own = placing_of(self._ssn).feasible.shard_mask
        parts = (mask,) if own is None else (mask & own, mask & ~own)
        return (part for part in parts if part.any())


class Victims:
    """Tasks that might be evicted for one task, and the ``votes`` of plugins about them.

    Candidates are those of ``supply`` without the tasks of one job, and only tasks without requests if the task has
    none. ``needs_any``: nodes without candidates are useless. ``only_below``: only tasks of lower priority.
    """

    def __init__(
        self,
        ssn: Session,
        task: Task,
        supply: Supply,
        votes: Votes,
        *,
        but_job: int = -1,
        only_best_effort: bool = False,
        needs_any: bool = False,
        only_below: bool = False,
    ) -> None:
        self._ssn, self._task, self._supply, self._votes = ssn, task, supply, votes
        self._but_job, self._only_best_effort, self._needs_any = but_job, only_best_effort, needs_any
        self._cls = int(ssn.tables.tasks.cls[task.row])
        self._refuted = supply.refuted(votes)
        self._below = task if only_below else None
        # What else tells two searches with equal votes apart; the job itself is covered by the task.
        self._offered = but_job >= 0, only_best_effort, needs_any, only_below

    def nodes(self) -> Bool:
        """Return the nodes on which victims may free enough. Shape (N,)."""
        found = self.could_hold()
        refuted = self._refuted.of(self._task, *self._offered)
        if refuted is not None:
            found &= ~refuted
        if self._needs_any:
            found &= self._supply.has_any()
        return found

    def could_hold(self) -> Bool:
        """Return the nodes that would have room for the task if all that might be evicted left. Shape (N,)."""
        return self._supply.could_hold(self._cls)

    def any_on(self, nodes: I64) -> bool:
        """Return True if any task on these nodes might be evicted."""
        return bool(self._supply.has_any()[nodes].any())

    def on(self, some: Iterable[I64]) -> Iterator[VictimChoice]:
        """Yield those of some nodes that have room once all victims that plugins name are gone."""
        for nodes in some:
            candidates = self.candidates(nodes)
            victims = self._ssn.ask(self._votes, self._task, candidates)
            enough = self._enough(nodes, candidates, victims)
            # Remembered for equal tasks, as long as what the votes read does not change.
            self._refuted.add(self._task, nodes[~enough], *self._offered)
            for nth in enough.nonzero()[0].tolist():
                there = slice(int(candidates.starts[nth]), int(candidates.starts[nth + 1]))
                yield VictimChoice(int(nodes[nth]), candidates.rows[there][victims[there]].tolist())

    def candidates(self, nodes: I64) -> Candidates:
        """Return the candidates on some nodes."""
        return self._supply.on(nodes, but_job=self._but_job, only_best_effort=self._only_best_effort, below=self._below)

    def statistics(self, nodes: I64) -> EvictionStatistics:
        """Return how plugins vote about the candidates on some nodes."""
        candidates = self.candidates(nodes)
        victims = self._ssn.ask(self._votes, self._task, candidates)
        spared = []
        for plugin, answer in self._ssn.hooks.each_answer(self._votes, self._task, candidates):
            if answer is not None:
                named: Bool = answer.victims if isinstance(answer, Named) else np.asarray(answer)
                protectors = self._protectors(plugin, candidates, named)
                spared.append((plugin, len(candidates) - int(named.sum()), protectors))
        enough = int(self._enough(nodes, candidates, victims).sum())
        return EvictionStatistics(len(candidates), int(victims.sum()), tuple(spared), enough)

    def _protectors(self, plugin: str, candidates: Candidates, named: Bool) -> tuple[str, ...]:
        """Return what protects the candidates that a plugin does not name, if the plugin says so."""
        ask = getattr(self._ssn.hooks.plugin(plugin), "protectors", None)
        if ask is None or named.all():
            return ()
        return tuple(ask(TaskRows(self._ssn.tables, candidates.rows[~named])))

    def _enough(self, nodes: I64, candidates: Candidates, victims: Bool) -> Bool:
        """Return the nodes that have enough room once the victims are gone. Shape (nodes,)."""
        future = self._ssn.tables.nodes.books[nodes, FUTURE]
        if np.count_nonzero(victims):
            # In place: indexing with an array has made a copy.
            future += amounts_by_node(candidates, victims)
        found = candidates.starts[1:] > candidates.starts[:-1] if self._needs_any else np.ones(len(nodes), dtype=bool)
        for dimension, limit in self._ssn.tables.classes.asked[self._cls]:
            found &= future[:, dimension] > limit
        return found


def _growing(rows: I64) -> Iterator[I64]:
    """Yield rows in growing batches."""
    start, width = 0, _MORE
    while start < len(rows):
        yield rows[start : start + width]
        start, width = start + width, width * _MORE


# -- tasks


def waiting_tasks(ssn: Session, job: int) -> list[int]:
    """Return pending tasks of a job without gates, in order."""
    tasks, rows = ssn.tables.tasks, ssn.tables.jobs.tasks[job]
    found: list[int] = ssn.order.sorted_tasks(
        rows[(tasks.status[rows] == PENDING) & (tasks.gate[rows] == NO_GATE)]
    ).tolist()
    return found
