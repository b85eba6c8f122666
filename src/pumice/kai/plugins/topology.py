"""topology: keep groups of tasks within one domain of a Topology, or near each other. Source: KAI topology plugin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.api import EPS, F64, AnyArray, Bool, Session, plugin
from pumice.kai import points
from pumice.kai.amounts import gpu_column
from pumice.kai.engine.groups import Group, Subset
from pumice.kai.label_trees import LabelTree, label_tree
from pumice.model.workloads.gang import TopologyConstraint

#: Score of one of the ten steps of the preferred level.
SCORE = 100_000.0
_STEPS = 10
#: Ratio of a request to a resource that the domain does not have. Source: KAI topology plugin.
_ABSENT = 1000.0


class _Constraint(NamedTuple):
    """A topology constraint with levels as indexes. ``required`` -1 is the whole tree; ``preferred`` is None if not
    set."""

    required: int
    preferred: int | None

    @property
    def lowest(self) -> int:
        """The narrowest level in the constraint."""
        return self.required if self.preferred is None else self.preferred


@plugin("topology")
class TopologyPlugin:
    """Offer the domains of a Topology as node subsets."""

    def __init__(self, ssn: Session) -> None:
        self.ssn, self._gpu = ssn, gpu_column(ssn.tables)

    @points.node_subsets
    def node_subsets(self, group: Group, within: Subset) -> list[Subset]:
        """Return domains with room for the whole group, the narrowest first, and the fullest first within a level.

        The answer is empty if the Topology or one of the levels does not exist.
        """
        constraint = group.topology
        if constraint is None:
            return [within]
        tree = label_tree(self.ssn, constraint)
        levels = _levels(tree, constraint) if tree is not None else None
        if tree is None or levels is None:
            return []
        search = _Search(self.ssn, tree, levels, group, within, self._gpu)
        if within.nodes is not None or group.active:
            return search.subsets()
        # Equal gangs, of whichever queue, find no domain as long as nothing moves.
        tables, memo = self.ssn.tables, self.ssn.memo
        kinds = tables.classes.identities(tables.tasks.cls[list(group.rows)]).tobytes()
        question, nodes = ("no domain", tree.topology, levels, kinds), tables.nodes
        rests_on = nodes.facts.version, nodes["books"].version
        found = [] if memo.recall(question, rests_on) else search.subsets()
        if not found:
            memo.keep(question, rests_on, True)
        return found


def _levels(tree: LabelTree, constraint: TopologyConstraint) -> _Constraint | None:
    """Return the levels of a constraint, or None if one of them is not in the tree."""
    named = [label for label in (constraint.required, constraint.preferred) if label]
    if any(tree.level(label) < 0 for label in named):
        return None
    required = tree.level(constraint.required) if constraint.required else -1
    return _Constraint(required, tree.level(constraint.preferred) if constraint.preferred else None)


class _Search:
    """The search for domains for one group within a node subset."""

    def __init__(
        self, ssn: Session, tree: LabelTree, constraint: _Constraint, group: Group, within: Subset, gpu: int
    ) -> None:
        self._ssn, self._tree, self._constraint, self._group, self._within = ssn, tree, constraint, group, within
        self._gpu = gpu
        tables = ssn.tables
        # A node that lacks the label of any level is outside the topology.
        self._in_topology: Bool = (
            tree.domains[0] >= 0 if len(tree.levels) else np.zeros(len(tables.nodes.facts), dtype=bool)
        )
        if within.nodes is not None:
            self._in_topology = self._in_topology & within.nodes
        self._requests: F64 = tables.classes.req[tables.tasks.cls[list(group.rows)]]
        self._total: F64 = self._requests.sum(axis=0)

    def subsets(self) -> list[Subset]:
        """Return the domains with room, in the order in which they are tried."""
        if not self._in_topology.any():
            return []
        start, top = self._common()
        inside = self._in_topology if start < 0 else self._in_topology & (self._tree.domains[start] == top)
        # All other domains lie within this one, so none has room if it has none.
        if not self._takes_group(inside, -1)[0]:
            return []
        # Narrow domains first: the group should spread no wider than it must.
        levels = range(self._constraint.lowest, max(start, self._constraint.required) - 1, -1)
        takes = [self._takes_group(inside, level) for level in levels]
        # Before domains are put in order, which takes longer.
        if not any(each.any() for each in takes):
            return []
        order = self._in_order(start, inside)
        score = self._score(order)
        found = []
        for level, taking in zip(levels, takes, strict=True):
            numbers = self._numbers(level)[0]
            for domain in order.get(level, [0] if level < 0 else ()):
                if taking[domain]:
                    found.append(Subset(inside & (numbers == domain), score))
        return found

    def _common(self) -> tuple[int, int]:
        """Return the narrowest domain that contains all nodes, as level (-1: the whole tree) and number. The level is
        not below the preferred one."""
        last = len(self._tree.levels) - 1 if self._constraint.preferred is None else self._constraint.preferred
        level, domain = -1, 0
        for narrower in range(last + 1):
            numbers = self._tree.domains[narrower][self._in_topology]
            if (numbers != numbers[0]).any():
                break
            level, domain = narrower, int(numbers[0])
        return level, domain

    def _numbers(self, level: int) -> tuple[AnyArray, int]:
        """Return the domain of each node at a level (N,), and how many domains there are. Level -1 is one domain."""
        if level < 0:
            return np.zeros(len(self._in_topology), dtype=np.int32), 1
        return self._tree.domains[level], len(self._tree.ids[level])

    def _takes_group(self, inside: Bool, level: int) -> Bool:
        """Return which domains of a level may have room for the group together, on the nodes inside, and are near what
        the group already has. Shape (domains,)."""
        numbers, count = self._numbers(level)
        # All domains at once: there may be one for each node, and a tenant chooses how often this is asked.
        if self._is_uniform():
            takes = self._places(inside, numbers, count) >= len(self._group.rows)
        else:
            takes = self._filled(self._free(inside, numbers, count)) <= 1.0
        required = self._constraint.required
        if level >= 0 and required >= 0 and self._group.active:
            # A domain of the required level that already holds tasks of the group is the only one that may take more.
            at_required = self._tree.domains[required]
            occupied = at_required[self._ssn.tables.tasks.node[list(self._group.active)]]
            elsewhere = inside & ~np.isin(at_required, occupied)
            takes &= np.bincount(numbers[elsewhere], minlength=count) == 0
        found: Bool = takes
        return found

    def _places(self, inside: Bool, numbers: AnyArray, count: int) -> F64:
        """Return how many tasks of one kind fit in each domain. Shape (count,)."""
        # Counted per node with the largest request, which sees fragmentation. Tasks of different kinds are only
        # compared as sums. Source: KAI topology plugin.
        most = self._requests.max(axis=0)
        asked = most > 0
        free = self._ssn.tables.nodes.future[inside]
        fits = np.floor((free[:, asked] + EPS) / most[asked]).min(axis=1)
        return np.bincount(numbers[inside], np.maximum(fits, 0.0), count).astype(np.float64, copy=False)

    def _free(self, inside: Bool, numbers: AnyArray, count: int) -> F64:
        """Return what each domain has idle or releasing. Shape (count, R)."""
        free, where = self._ssn.tables.nodes.future[inside], numbers[inside]
        return np.stack([np.bincount(where, weights=column, minlength=count) for column in free.T], axis=1)

    def _is_uniform(self) -> bool:
        """Return True if all tasks ask for the same extended resources."""
        scalars = self._requests[:, 2:-1] > 0
        return bool((scalars == scalars[0]).all())

    def _filled(self, free: F64) -> F64:
        """Return the largest ratio of request to free amount over all resources, 1000 for a resource with nothing
        free. ``free`` (domains, R). Shape (domains,)."""
        asked = self._total > 0
        # Pod slots are not counted, as in KAI.
        asked[self._ssn.tables.axis.pods] = False
        part = np.zeros(free.shape)
        np.divide(np.broadcast_to(self._total, free.shape), free, out=part, where=asked & (free > 0))
        part[asked & (free <= 0)] = _ABSENT
        found: F64 = part.max(axis=1, initial=0.0)
        return found

    def _in_order(self, start: int, inside: Bool) -> dict[int, list[int]]:
        """Return the domains by level, from the start down to the lowest level in the constraint, the fullest siblings
        first."""
        found: dict[int, list[int]] = {}
        if start >= 0:
            found[start] = [int(self._tree.domains[start][inside][0])]
        for level in range(start + 1, self._constraint.lowest + 1):
            numbers = self._tree.domains[level]
            filled = self._filled(self._free(inside, *self._numbers(level))).tolist()
            children: dict[int, list[tuple[float, str, int]]] = {}
            for domain in distinct(numbers[inside]).tolist():
                parent = self._tree.parents[level][domain]
                children.setdefault(parent, []).append((-filled[domain], self._tree.ids[level][domain], domain))
            # Siblings stay together in the order of their parents, as a walk of the tree would list them.
            above = found.get(level - 1, [-1])
            found[level] = [domain for parent in above for *_, domain in sorted(children.get(parent, ()))]
        return found

    def _score(self, order: dict[int, list[int]]) -> F64 | None:
        """Return a score that is higher for domains of the preferred level that come later in the order. Shape (N,)."""
        preferred = self._constraint.preferred
        if preferred is None:
            return self._within.score
        domains = order.get(preferred, [])
        # One entry more than domains, which stays 0: nodes outside the topology have domain -1 and so read the last
        # entry.
        steps = np.zeros(len(self._tree.ids[preferred]) + 1)
        for i, domain in enumerate(domains):
            # Whole steps, as in KAI: of more than ten domains, neighbours in the order share a step, and other scores
            # choose among them.
            steps[domain] = SCORE * (_STEPS * (i + 1) // len(domains))
        found: F64 = steps[self._tree.domains[preferred]]
        return found
