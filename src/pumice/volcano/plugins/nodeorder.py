"""nodeorder: score nodes like kube-scheduler. Source: Volcano nodeorder plugin, kube-scheduler 1.36.

Scores of a node alone are computed for a class: how full it would be, and which images it has. Scores that are scaled
over candidates, or that count other pods, are computed for a task. If such a score is one number for all candidates,
that number is returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pumice.api import (
    F64,
    I64,
    PODS,
    ROWS,
    AnyArray,
    ClassRows,
    NodeRows,
    PodSpec,
    ScoreInTurn,
    Session,
    Task,
    TaskClass,
    TaskRows,
    TaskScore,
    WeightedSum,
    plugin,
    points,
)
from pumice.placing.derived import Derived, derived
from pumice.placing.filters.of_session import inter_pod_score
from pumice.placing.filters.pods import classes_where, has_pod_terms, pod_index
from pumice.volcano.scorers.allocation import Allocation
from pumice.volcano.scorers.images import image_scores, known_images
from pumice.volcano.scorers.terms import avoided_count, preferred_weight, scaled

if TYPE_CHECKING:
    from pumice.volcano.scorers.spread import SpreadScore


class _Score(Protocol):
    """A score of candidates, for one task, and for several that are placed one after the other."""

    def score(self, task: Task, nodes: NodeRows) -> F64: ...
    def in_turn(self, tasks: TaskRows, nodes: NodeRows) -> ScoreInTurn: ...


class _PodScore(_Score, Protocol):
    """A score that counts other pods, if the terms of a class ask for it."""

    def concerns(self, cls: int) -> bool: ...


class _Parts(TaskScore):
    """Scores of the candidates with their weights, on top of a number for every node."""

    def __init__(self, same: float, parts: Sequence[tuple[_Score, int]]) -> None:
        self._same, self._parts = same, parts

    def score(self, task: Task, nodes: NodeRows) -> F64:
        total: Any = self._same
        for part, weight in self._parts:
            total = total + weight * part.score(task, nodes)
        found: F64 = total
        return found

    def in_turn(self, tasks: TaskRows, nodes: NodeRows) -> ScoreInTurn:
        return WeightedSum(self._same, [(part.in_turn(tasks, nodes), weight) for part, weight in self._parts])


class Plan(NamedTuple):
    """What is scored for a class: a number for every node, and scores of candidates with their weights.

    ``same`` None: nothing was scored. ``parts`` empty: ``same`` is the whole answer for every task of the class.
    """

    same: float | None
    parts: tuple[tuple[_Score, int], ...]


@plugin("nodeorder", separator=".")
class NodeOrder:
    """Score nodes. Each argument is the weight of one of kube-scheduler's scores (0 to 100 per node); 0 leaves it
    out."""

    def __init__(
        self,
        ssn: Session,
        *,
        # The weights of kube-scheduler's default profile. MostAllocated is not in it, hence 0.
        leastrequested_weight: int = 1,
        mostrequested_weight: int = 0,
        balancedresource_weight: int = 1,
        nodeaffinity_weight: int = 2,
        podaffinity_weight: int = 2,
        tainttoleration_weight: int = 3,
        imagelocality_weight: int = 1,
        podtopologyspread_weight: int = 2,
    ) -> None:
        self.ssn = ssn
        self._facts: Derived = derived(ssn)
        self.allocation = Allocation(
            ssn.tables, self._facts, leastrequested_weight, mostrequested_weight, balancedresource_weight
        )
        self._node_affinity, self._taints = nodeaffinity_weight, tainttoleration_weight
        self._pod_affinity, self._spread = podaffinity_weight, podtopologyspread_weight
        self._images = imagelocality_weight
        # Few snapshots list images, and a hook that scores every node 0 would still cost a pass over the nodes.
        self.unused_points = () if imagelocality_weight and known_images(self._facts) else (points.node_order,)

    @points.node_order
    def image_locality(self, cls: TaskClass, nodes: NodeRows) -> F64:
        """Return the ImageLocality score. Shape (rows,)."""
        return nodes.pick(image_scores(self._facts, cls.spec)) * self._images

    @points.batch_node_order(reads=(ROWS,), several="rooms")
    def room(self, cls: TaskClass, nodes: NodeRows) -> F64:
        """Return LeastAllocated, MostAllocated and BalancedAllocation. Shape (rows,)."""
        # At the point for batches as in Volcano, although no score here needs other nodes: sums of floats run in its
        # order.
        return self.allocation(cls, nodes)

    def rooms(self, classes: ClassRows, nodes: NodeRows) -> F64:
        """Return LeastAllocated, MostAllocated and BalancedAllocation for several classes. Shape (classes, rows)."""
        return self.allocation.of_several(classes, nodes)

    @points.batch_node_order(reads=(ROWS, PODS))
    def among_candidates(self, cls: TaskClass) -> _Parts | float | None:
        """Return preferred node affinity, taints to avoid, preferred pod affinity and topology spread."""
        same, parts = self._plan(cls.row)
        return _Parts(same or 0.0, parts) if parts else same

    def _plan(self, cls: int) -> Plan:
        """Return the plan of a class."""
        spec, question = self.ssn.tables.classes.specs[cls], ("plan", self._taints, self._node_affinity)

        def build() -> Plan:
            # Keyed by what the plan reads of the pod, so that classes that differ only in their requests share a plan.
            terms = spec.tolerations, spec.affinity.node_preferred
            return self._facts.get((*question, *terms), lambda: self._by_nodes(spec))

        # By class first: a comparison of all terms of a spec costs more than the rest of the hook.
        plan = self._facts.of_class(question, cls, build)
        # The part that rests on node objects is cached across sessions; the part about pods holds for this session
        # only.
        if self._has_pod_terms or spec.spread:
            return plan._replace(parts=(*plan.parts, *self._by_pods(cls, spec)))
        return plan

    def _by_nodes(self, spec: PodSpec) -> Plan:
        """Return the plan as far as node objects decide."""
        same: float | None = None
        parts: list[tuple[_Score, int]] = []
        for raw, everywhere, weight, reverse in self._by_node_objects(spec):
            if everywhere is None:
                # Scaled by the largest value among the candidates, so the score of a node changes with the nodes beside
                # it.
                parts.append((_Scaled(raw, reverse), weight))
            else:
                same = (same or 0.0) + weight * everywhere
        return Plan(same, tuple(parts))

    @cached_property
    def _has_pod_terms(self) -> bool:
        """True if any class of tasks has pod affinity terms."""
        return bool(classes_where(self.ssn, "pod terms", has_pod_terms))

    def _by_pods(self, cls: int, spec: PodSpec) -> Iterator[tuple[_Score, int]]:
        """Yield the scores that count other pods and concern the class, with their weights."""
        if self._pod_affinity and self._has_pod_terms:
            affinity: _PodScore = inter_pod_score(self.ssn)
            if affinity.concerns(cls):
                yield affinity, self._pod_affinity
        if self._spread and spec.spread:
            spread: _PodScore = _spread_score(self.ssn)
            if spread.concerns(cls):
                yield spread, self._spread

    def _by_node_objects(self, spec: PodSpec) -> Iterator[tuple[I64, float | None, int, bool]]:
        """Yield raw scores by node objects, their scaled value if it is one number for any candidates, the weight, and
        whether less is better."""
        if self._taints:
            yield *avoided_count(self._facts, spec), self._taints, True
        if self._node_affinity and spec.affinity.node_preferred:
            yield *preferred_weight(self._facts, spec), self._node_affinity, False


class _Scaled:
    """Scale ``raw`` (N,), which depends on node objects only, over the candidates."""

    def __init__(self, raw: I64, reverse: bool) -> None:
        self._raw, self._reverse = raw, reverse

    def score(self, task: Task, nodes: NodeRows) -> F64:
        return scaled(nodes.pick(self._raw), reverse=self._reverse)

    def in_turn(self, tasks: TaskRows, nodes: NodeRows) -> ScoreInTurn:
        return _ScaledInTurn(nodes.pick(self._raw), self._reverse, len(tasks))


class _ScaledInTurn(ScoreInTurn):
    """The scaled score for tasks placed one after the other, which placements do not change."""

    def __init__(self, raw: I64, reverse: bool, count: int) -> None:
        self.count, self._raw, self._reverse = count, raw, reverse

    def score(self, step: int, places: AnyArray) -> F64:
        return scaled(self._raw[places], reverse=self._reverse)

    def placed(self, step: int, place: int) -> bool:
        # Placements change no node object, so no score has to be computed again.
        return False


def _spread_score(ssn: Session) -> SpreadScore:
    """Return the score of topology spread constraints."""
    # Imported late: few clusters have such constraints.
    from pumice.volcano.scorers.spread import SpreadScore

    return ssn.shared(SpreadScore, lambda: SpreadScore(pod_index(ssn)))
