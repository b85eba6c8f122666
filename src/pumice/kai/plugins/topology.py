"""topology: groups of tasks within one domain of a Topology, or near each other. Source: KAI topology."""

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

#: A step of ten in the score of the preferred level.
SCORE = 10_000.0
_STEPS = 10
_ABSENT = 1000.0


class _Wish(NamedTuple):
    """Levels by their place: -1 is all of the tree, ``preferred`` None without."""

    required: int
    preferred: int | None

    @property
    def lowest(self) -> int:
        """The narrowest level that is asked for."""
        return self.required if self.preferred is None else self.preferred


@plugin("topology")
class TopologyPlugin:
    def __init__(self, ssn: Session) -> None:
        self.ssn, self._gpu = ssn, gpu_column(ssn.tables)

    @points.node_subsets
    def node_subsets(self, group: Group, within: Subset) -> list[Subset]:
        """Domains with room for all of the group, the narrowest first, of equals the fullest; none where the Topology
        or a level of it is not there."""
        wish = group.topology
        if wish is None:
            return [within]
        tree = label_tree(self.ssn, wish.topology)
        levels = _levels(tree, wish) if tree is not None else None
        if tree is None or levels is None:
            return []
        return _Search(self.ssn, tree, levels, group, within, self._gpu).subsets()


def _levels(tree: LabelTree, wish: TopologyConstraint) -> _Wish | None:
    """The levels of a wish; None where one of them is not in the tree."""
    asked = [label for label in (wish.required, wish.preferred) if label]
    if any(tree.level(label) < 0 for label in asked):
        return None
    required = tree.level(wish.required) if wish.required else -1
    return _Wish(required, tree.level(wish.preferred) if wish.preferred else None)


class _Search:
    """One group within some nodes."""

    def __init__(self, ssn: Session, tree: LabelTree, wish: _Wish, group: Group, within: Subset, gpu: int) -> None:
        self._ssn, self._tree, self._wish, self._group, self._within = ssn, tree, wish, group, within
        self._gpu = gpu
        tables = ssn.tables
        self._there: Bool = tree.domains[0] >= 0 if len(tree.levels) else np.zeros(len(tables.nodes.facts), dtype=bool)
        if within.nodes is not None:
            self._there = self._there & within.nodes
        self._requests: F64 = tables.classes.req[tables.tasks.cls[list(group.rows)]]
        self._total: F64 = self._requests.sum(axis=0)

    def subsets(self) -> list[Subset]:
        if not self._there.any():
            return []
        start, top = self._common()
        inside = self._there if start < 0 else self._there & (self._tree.domains[start] == top)
        if not self._has_room(inside):
            return []
        order = self._in_order(start, inside)
        score = self._score(order)
        found = []
        for level in range(self._wish.lowest, self._wish.required - 1, -1):
            if level < start:
                break
            for domain in order.get(level, [0] if level < 0 else ()):
                nodes = inside if level < 0 else inside & (self._tree.domains[level] == domain)
                if self._holds_group(nodes, level, domain) and self._has_room(nodes):
                    found.append(Subset(nodes, score))
        return found

    def _common(self) -> tuple[int, int]:
        """The narrowest domain that has all nodes in it, as its level (-1: the whole tree) and number; not below the
        preferred level."""
        last = len(self._tree.levels) - 1 if self._wish.preferred is None else self._wish.preferred
        level, domain = -1, 0
        for narrower in range(last + 1):
            numbers = self._tree.domains[narrower][self._there]
            if (numbers != numbers[0]).any():
                break
            level, domain = narrower, int(numbers[0])
        return level, domain

    def _has_room(self, nodes: Bool) -> bool:
        """Whether the group may fit on these nodes together. Equal kinds of tasks are counted node by node, by the
        largest request; others only as sums."""
        free = self._ssn.tables.nodes.future[nodes]
        if self._is_uniform():
            most = self._requests.max(axis=0)
            asked = most > 0
            fits = np.floor((free[:, asked] + EPS) / most[asked]).min(axis=1)
            return bool(np.maximum(fits, 0.0).sum() >= len(self._group.rows))
        return self._filled(free.sum(axis=0)) <= 1.0

    def _is_uniform(self) -> bool:
        scalars = self._requests[:, 2:-1] > 0
        return bool((scalars == scalars[0]).all())

    def _filled(self, free: F64) -> float:
        """The largest part of what is free that the group asks for; 1000 of something that is not there. Pods are not
        counted."""
        asked = self._total > 0
        asked[self._ssn.tables.axis.pods] = False
        part = np.full(len(free), 0.0)
        np.divide(self._total, free, out=part, where=asked & (free > 0))
        part[asked & (free <= 0)] = _ABSENT
        return float(part.max(initial=0.0))

    def _in_order(self, start: int, inside: Bool) -> dict[int, list[int]]:
        """By level below the start, down to the lowest that is asked for: its domains, siblings the fullest first."""
        found: dict[int, list[int]] = {}
        if start >= 0:
            found[start] = [int(self._tree.domains[start][inside][0])]
        for level in range(start + 1, self._wish.lowest + 1):
            numbers = self._tree.domains[level]
            children: dict[int, list[tuple[float, str, int]]] = {}
            for domain in distinct(numbers[inside]).tolist():
                filled = self._filled(self._ssn.tables.nodes.future[inside & (numbers == domain)].sum(axis=0))
                parent = self._tree.parents[level][domain]
                children.setdefault(parent, []).append((-filled, self._tree.ids[level][domain], domain))
            above = found.get(level - 1, [-1])
            found[level] = [domain for parent in above for *_, domain in sorted(children.get(parent, ()))]
        return found

    def _score(self, order: dict[int, list[int]]) -> F64 | None:
        """More for nodes in domains of the preferred level that come later in the order, which are emptier."""
        preferred = self._wish.preferred
        if preferred is None:
            return self._within.score
        domains = order.get(preferred, [])
        steps = np.zeros(len(self._tree.ids[preferred]) + 1)
        for i, domain in enumerate(domains):
            steps[domain] = SCORE * (_STEPS * (i + 1) // len(domains))
        found: F64 = steps[self._tree.domains[preferred]]
        return found

    def _holds_group(self, nodes: Bool, level: int, domain: int) -> bool:
        """Where tasks of the group are placed already: whether the domain is in one at the required level that holds
        some of them."""
        required = self._wish.required
        if required < 0 or not self._group.active:
            return True
        held: AnyArray = self._tree.domains[required][self._ssn.tables.tasks.node[list(self._group.active)]]
        return bool(np.isin(self._tree.domains[required][nodes], held).all())
