"""nodegroup: choose which groups of nodes a queue uses, prefers or avoids, and how much it may hold of each.

Source: Volcano nodegroup plugin.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.api import (
    EPS,
    F64,
    HELD,
    I32,
    QUEUES,
    ROWS,
    AnyArray,
    Code,
    FilterResult,
    NodeRows,
    Question,
    Session,
    Task,
    TaskRun,
    Unfit,
    plugin,
    points,
)
from pumice.model.queue import NodeGroupAffinity, Queue
from pumice.placing.derived import derived
from pumice.volcano.queues.tree import QueueTree

GROUP_LABEL = "volcano.sh/nodegroup-name"
_NO_RULES = NodeGroupAffinity()
_WHY: tuple[tuple[Unfit, ...], ...] = (
    (),
    (Unfit("node group resource limit annotation invalid", Code.UNRESOLVABLE),),
    (Unfit("node group label not found", Code.UNRESOLVABLE),),
    (Unfit("node group affinity not specified", Code.UNRESOLVABLE),),
    (Unfit("node does not satisfy the node group affinity", Code.UNRESOLVABLE),),
    (Unfit("node group resource limit exceeded", Code.UNRESOLVABLE),),
)
_FITS, _INVALID, _NO_LABEL, _UNSPECIFIED, _UNSATISFIED, _EXCEEDED = range(6)
# Below 0, so that a node in an avoided group loses even against one that nothing speaks for.
_REQUIRED, _PREFERRED, _AVOIDED = 100.0, 50.0, -1.0


@plugin("nodegroup")
class NodeGroup:
    """Filter and score nodes by their group.

    ``strict`` off: queues without rules may use nodes without a group. ``enablePreferredOrder``: among preferred
    groups, earlier ones score higher. ``hierarchy``: the switch ``enableHierarchy``; a queue without rules has those
    of its nearest ancestor with rules.

    ``limits`` (P, R): what a queue may hold of a group, for each pair with a limit. ``allocated``: what it holds.
    """

    def __init__(
        self, ssn: Session, *, strict: bool = True, enablePreferredOrder: bool = False, hierarchy: bool = False
    ) -> None:
        self.ssn, self._strict, self._in_order, self._inherit = ssn, strict, enablePreferredOrder, hierarchy
        label = derived(ssn).label(GROUP_LABEL)
        # A node without the label has code -1, which reads the last entry of a row.
        self._groups, self._group_of = label.values, label.codes
        queues = ssn.tables.queues
        rules = self._rules()
        # A table by queue and group, because both are few: the hooks then only look up.
        self._code: I32 = np.array([*map(self._codes, [*queues.objs, None], rules)]).reshape(len(rules), -1)
        self._score: F64 = np.array([*map(self._scores, rules)]).reshape(len(rules), -1)
        self._pair_of, self.limits = self._pairs()
        self.allocated = ssn.column("nodegroup.allocated", values=self._held())
        # Without limits nothing is counted, so placements do not need to be followed.
        events: tuple[Question, ...] = () if len(self.limits) else (points.on_allocate, points.on_deallocate)
        self.unused_points = (*events, *(() if self._score.any() else (points.node_order,)))

    # -- what queues say ----------------------------------------------------------------------------------------------

    def _rules(self) -> list[NodeGroupAffinity]:
        """Return the rules of each queue, and last of tasks without a queue."""
        queues = self.ssn.tables.queues
        own = [_some(queue.affinity) for queue in queues.objs]
        if self._inherit:
            tree = QueueTree.of(queues)
            # From the root downwards, so that a parent's rules are settled before its children's.
            for row in (row for level in tree.levels for row in level.tolist()):
                if own[row] is None and tree.parent[row] >= 0:
                    own[row] = own[tree.parent[row]]
        return [*(rules or _NO_RULES for rules in own), _NO_RULES]

    def _codes(self, queue: Queue | None, rules: NodeGroupAffinity) -> list[int]:
        """Return why a queue may not use nodes of each group, and last nodes without a group, as codes."""
        # The annotation could not be read, so the queue gets no node at all: any other reading might exceed the limit
        # that was meant.
        if queue is not None and queue.group_limits is None:
            return [_INVALID] * (len(self._groups) + 1)
        without = _FITS if not self._strict and rules == _NO_RULES else _NO_LABEL
        return [*(self._code_of(group, rules) for group in self._groups), without]

    @staticmethod
    def _code_of(group: str, rules: NodeGroupAffinity) -> int:
        """Return why a queue may not use a group."""
        if rules == _NO_RULES:
            return _UNSPECIFIED
        wanted = group in rules.required or group in rules.preferred
        # In Volcano's order: a required anti-affinity excludes the group, but a preferred anti-affinity, evaluated
        # last, allows it again.
        allowed = group in rules.anti_preferred or (wanted and group not in rules.anti_required)
        return _FITS if allowed else _UNSATISFIED

    def _scores(self, rules: NodeGroupAffinity) -> list[float]:
        """Return the score of each group for a queue, and last of nodes without a group."""
        return [*(self._score_of(group, rules) for group in self._groups), 0.0]

    def _score_of(self, group: str, rules: NodeGroupAffinity) -> float:
        """Return the score of a group."""
        if group in rules.anti_preferred:
            return _AVOIDED
        score = _REQUIRED if group in rules.required else 0.0
        if group not in rules.preferred:
            return score
        place, count = rules.preferred.index(group), len(rules.preferred)
        return score + (_PREFERRED * (count - place) / count if self._in_order else _PREFERRED)

    def _pairs(self) -> tuple[I32, F64]:
        """Return the limit of each queue and group (Q + 1, groups + 1) as an index, -1 for none, and the limits."""
        queues, axis = self.ssn.tables.queues, self.ssn.tables.axis
        pair_of = np.full(self._code.shape, -1, dtype=np.int32)
        limits: list[F64] = []
        place = {group: at for at, group in enumerate(self._groups)}
        for row, queue in enumerate(queues.objs):
            for group, amounts in queue.group_limits or ():
                # inf: the queue has no limit for resources that the annotation does not name.
                limit = np.full(len(axis), np.inf)
                for name, amount in amounts:
                    if name in axis.column:
                        limit[axis.column[name]] = amount
                # A group without nodes holds nothing, so its limit has no effect.
                if group in place and np.isfinite(limit).any():
                    pair_of[row, place[group]] = len(limits)
                    limits.append(limit)
        return pair_of, np.array(limits).reshape(len(limits), len(axis))

    def _held(self) -> F64:
        """Return what queues hold of groups when the session begins. Shape (P, R)."""
        tables, held = self.ssn.tables, np.zeros_like(self.limits)
        tasks = tables.tasks
        if len(held):
            rows: AnyArray = np.flatnonzero((tasks.node >= 0) & (tasks.status >= 0) & (tasks.job >= 0))
            rows = rows[HELD[tasks.status[rows]].astype(bool)]
            pair = self._pair_of[tables.jobs.queue[tasks.job[rows]], self._group_of[tasks.node[rows]]]
            np.add.at(held, pair[pair >= 0], tables.classes.req[tasks.cls[rows[pair >= 0]]])
        return held

    # -- hooks --------------------------------------------------------------------------------------------------------

    @points.predicate(reads=(ROWS, "nodegroup.allocated", QUEUES))
    def predicate(self, task: Task, nodes: NodeRows) -> FilterResult | None:
        """Reject nodes of groups that the queue may not use, or of which it would hold more than its limit."""
        queue = task.queue.row
        by_group = self._code[queue].copy()
        pairs = self._pair_of[queue]
        limited = np.flatnonzero((pairs >= 0) & (by_group == _FITS))
        if len(limited):
            rows = pairs[limited]
            # Only what the task asks for: a group that is full of another resource may still take it.
            over = self.allocated.array[rows] + task.req - self.limits[rows] >= EPS
            by_group[limited[(over & (task.req >= EPS)).any(axis=1)]] = _EXCEEDED
        codes = nodes.pick(by_group[self._group_of])
        # With a limit, an answer is given even if it rejects no node. It says that the answer may change after one
        # more task.
        return FilterResult(codes, _WHY) if len(limited) or codes.any() else None

    @points.node_order(reads=(ROWS, QUEUES))
    def node_order(self, task: Task, nodes: NodeRows) -> F64 | None:
        """Return 100 for required groups, 50 for preferred ones, -1 for avoided ones. Shape (rows,)."""
        by_group = self._score[task.queue.row]
        return nodes.pick(by_group[self._group_of]) if by_group.any() else None

    @points.on_allocate
    def on_allocate(self, run: TaskRun) -> None:
        self._move(run, 1.0)

    @points.on_deallocate
    def on_deallocate(self, run: TaskRun) -> None:
        self._move(run, -1.0)

    def _move(self, run: TaskRun, sign: float) -> None:
        """Add tasks to what their queue holds of groups, or subtract them."""
        for pair, amount in self._amounts_by_limit(run):
            self.ssn.journal.add(self.allocated, pair, sign * amount)

    def _amounts_by_limit(self, run: TaskRun) -> Iterator[tuple[int, AnyArray]]:
        """Yield each limit that tasks affect, with their total request."""
        nodes, amounts = run.by_node(self.ssn.tables.classes.req)
        pairs = self._pair_of[run.queue, self._group_of[np.atleast_1d(nodes)]]
        amounts = np.broadcast_to(amounts, (len(pairs), self.limits.shape[1]))
        for pair in distinct(pairs[pairs >= 0]).tolist():
            yield pair, amounts[pairs == pair].sum(axis=0)


def _some(rules: NodeGroupAffinity | None) -> NodeGroupAffinity | None:
    """Return rules, or None if they are empty."""
    return None if rules == _NO_RULES else rules
