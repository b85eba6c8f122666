"""predicates: filter nodes like kube-scheduler. Source: Volcano predicates plugin, kube-scheduler 1.36.

Filters of a node alone are computed for a class: number of pods, cordons, node affinity, taints. Filters that read
other pods are computed for a task: host ports, inter-pod affinity, topology spread. Where neither a class nor a placed
pod has such terms, the second hook returns None for the class, and a gang is placed in one batch. Resources are
compared by the actions and not here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from pumice.api import (
    PODS,
    ROWS,
    Bool,
    ClassRows,
    Code,
    FilterInTurn,
    FilterResult,
    Filters,
    Node,
    NodeRows,
    Session,
    Task,
    TaskClass,
    TaskFilter,
    TaskRows,
    TaskRun,
    Unfit,
    gather,
    plugin,
    points,
)
from pumice.columns.placement import Placement
from pumice.placing.claims.hooks import CLAIM_POINTS, claiming_in
from pumice.placing.derived import derived
from pumice.placing.filters.nodes import STABLE_REASONS, Stable, names_conflict, stable_codes
from pumice.placing.filters.of_session import inter_pod_filter, port_filter, spread_filter
from pumice.placing.filters.pod_view import View
from pumice.placing.filters.pods import classes_where, has_pod_terms
from pumice.placing.volumes.filters import BINDING, LIMITS, VOLUME_POINTS, ZONE, register_volumes

TOO_MANY_PODS = Unfit("node(s) pod number exceeded")
NAMES_CONFLICT = Unfit("plugin NodeAffinity pre-predicates failed pod affinity terms conflict", Code.UNRESOLVABLE)

# Built once, with every combination of reasons: a filter then answers with an index per node and makes no objects.
_STABLE = tuple(() if reason is None else (reason,) for reason in STABLE_REASONS)
#: Reasons by stable code, plus ``_FULL`` for nodes with the largest number of pods.
_WHY = (*_STABLE, *((TOO_MANY_PODS, *reasons) for reasons in _STABLE))
_FULL = len(_STABLE)
#: Codes after which Volcano asks no further filter about the node.
_ENDS_SEARCH = (Code.ERROR, Code.UNRESOLVABLE, Code.SKIP, Code.WAIT)


class Filter(Protocol):
    """A filter that reads other pods, for one task, and for several that are placed one after the other."""

    def concerns(self, cls: int) -> bool: ...
    def filter_result(self, task: Task, nodes: NodeRows) -> FilterResult: ...
    def in_turn(self, tasks: TaskRows, nodes: NodeRows) -> FilterInTurn: ...


class PodFilters(TaskFilter):
    """Filters that read other pods, for the tasks of one class."""

    def __init__(self, filters: Sequence[Filter]) -> None:
        self._filters = filters

    def filter_result(self, task: Task, nodes: NodeRows) -> FilterResult:
        """Return the first filter that objects, and those after it that evictions can mend. Shape (rows,)."""
        return run_in_turn([each.filter_result(task, nodes) for each in self._filters], len(nodes))

    def in_turn(self, tasks: TaskRows, nodes: NodeRows) -> FilterInTurn:
        """Return an incremental filter for tasks of one class that are placed one after the other."""
        found = [each.in_turn(tasks, nodes) for each in self._filters]
        return Filters(found) if len(found) > 1 else found[0]


@plugin("predicates", adds=(*CLAIM_POINTS, *VOLUME_POINTS), separator=".")
class Predicates:
    """Filter nodes. Arguments named ``predicate.…Enable`` switch single filters off.

    ``predicate.CacheEnable`` has no effect: filters of a node are cached per class in any case, by what the pod asks
    for and not by a name in its template. The timeouts of ``volumebinding.…`` and ``dynamicresources.…`` have no
    effect: a cycle does not wait.
    """

    def __init__(
        self,
        ssn: Session,
        *,
        predicate_NodeAffinityEnable: bool = True,
        predicate_NodePortsEnable: bool = True,
        predicate_TaintTolerationEnable: bool = True,
        predicate_PodAffinityEnable: bool = True,
        predicate_NodeVolumeLimitsEnable: bool = True,
        predicate_VolumeZoneEnable: bool = True,
        predicate_PodTopologySpreadEnable: bool = True,
        predicate_VolumeBindingEnable: bool = True,
        predicate_DynamicResourceAllocationEnable: bool = True,
        predicate_CacheEnable: bool = False,
        volumebinding_bindTimeoutSeconds: int = 600,
        volumebinding_weight: int = 1,
        volumebinding_shape: Any = None,
        dynamicresources_filterTimeoutSeconds: int = 10,
    ) -> None:
        self.ssn = ssn
        self._affinity, self._taints = predicate_NodeAffinityEnable, predicate_TaintTolerationEnable
        self._ports, self._pods = predicate_NodePortsEnable, predicate_PodAffinityEnable
        self._spread = predicate_PodTopologySpreadEnable
        volume_filters = (
            (BINDING, predicate_VolumeBindingEnable),
            (ZONE, predicate_VolumeZoneEnable),
            (LIMITS, predicate_NodeVolumeLimitsEnable),
        )
        on = tuple(name for name, is_on in volume_filters if is_on)
        self._view, self._facts = View(ssn), derived(ssn)
        # Compared as a count: Volcano's MaxTaskNum takes part in no resource arithmetic.
        self._max_pods = ssn.tables.nodes.facts.max_pods
        self._cls = ssn.tables.tasks.cls
        _register_claims(ssn)
        register_volumes(ssn, on)

    # -- filters -------------------------------------------------------------------------------------------------------

    @points.pre_predicate
    def pre_filters(self, cls: TaskClass) -> Unfit | None:
        """Return why no node can take pods of the class, or None."""
        spec = cls.spec
        # Such terms name single nodes that exclude each other. A filter would answer for each node what is known before
        # any.
        if self._affinity and spec.affinity.node_required and names_conflict(spec):
            return NAMES_CONFLICT
        return None

    @points.predicate(reads=(ROWS,), several="open_nodes")
    def node_filters(self, cls: TaskClass, nodes: NodeRows) -> FilterResult | None:
        """Filter by the number of pods, and then by the first stable filter that rejects. Shape (rows,)."""
        codes, objects = self._stable_of(cls.row)
        # Pods of the view and not of the ledger: pipelined tasks count too, since they will be there. Source: Volcano
        # predicates.go.
        full = nodes.view_pods >= nodes.pick(self._max_pods)
        # A full node keeps its other reasons: preemption makes room for a pod, and cures no taint.
        if np.count_nonzero(full):
            return FilterResult(nodes.pick(codes) + _FULL * full, _WHY)
        return FilterResult(nodes.pick(codes), _WHY) if objects else None

    def open_nodes(self, classes: ClassRows, nodes: NodeRows) -> Bool | None:
        """Return True for nodes that neither rejects, for several classes, or None if they reject none.
        Shape (classes, rows)."""
        stable = [self._stable_of(cls) for cls in classes.rows.tolist()]
        has_place = nodes.view_pods < nodes.pick(self._max_pods)
        if any(objects for _, objects in stable):
            found: Bool = np.array([nodes.pick(codes) == 0 for codes, _ in stable]) & has_place
            return found
        # None spares the caller a mask over all nodes, in the common case that nothing is rejected.
        return None if has_place.all() else np.repeat(has_place[None], len(classes), axis=0)

    def _stable_of(self, cls: int) -> Stable:
        """Return the codes of stable filters for a class."""
        facts, affinity, taints = self._facts, self._affinity, self._taints

        def build() -> Stable:
            return stable_codes(facts, self.ssn.tables.classes.specs[cls], affinity=affinity, taints=taints)

        # By class first: a comparison of all terms of a spec costs more than the rest of the hook.
        return facts.of_class(("stable", affinity, taints), cls, build, size=len(facts))

    @points.predicate(reads=(ROWS, PODS))
    def pod_filters(self, cls: TaskClass) -> PodFilters | None:
        """Filter by host ports, inter-pod affinity and topology spread, as far as they concern the class."""
        filters = self._filters_of(cls.row)
        return PodFilters(filters) if filters else None

    @cached_property
    def _has_pod_terms(self) -> bool:
        """True if any class of tasks has pod affinity terms."""
        return bool(classes_where(self.ssn, "pod terms", has_pod_terms))

    def _filters_of(self, cls: int) -> tuple[Filter, ...]:
        """Return the filters that concern tasks of the class."""
        tables = self.ssn.tables
        spec = tables.classes.specs[cls]
        # Terms of placed pods repel others too, so once one class has terms, the filter may concern every class.
        pods_matter = self._pods and self._has_pod_terms
        # Building a filter indexes all pods of the cluster, so it is only built if a class needs it.
        if not (pods_matter or (self._ports and spec.host_ports) or (self._spread and spec.spread)):
            return ()
        # In kube-scheduler's order, in which reasons are listed.
        asked = ((self._ports, port_filter), (pods_matter, inter_pod_filter), (self._spread, spread_filter))
        filters: list[Filter] = [of(self.ssn) for on, of in asked if on]
        return tuple(each for each in filters if each.concerns(cls))

    # -- what if: within a trial, whose rollback takes the moves back --------------------------------------------------

    @points.simulate_remove_task
    def simulate_remove(self, task: Task, gone: Task, node: Node) -> Unfit | None:
        """Remove the task ``gone`` from the view until the trial is rolled back."""
        self._view.leave([gone.row])
        return None

    @points.simulate_add_task
    def simulate_add(self, task: Task, added: Task, node: Node) -> Unfit | None:
        """Add the task ``added`` to the view until the trial is rolled back."""
        self._view.enter(TaskRun(self.ssn.tables, Placement([added.row], [node.row])))
        return None

    @points.simulate_predicate(reads=(ROWS, PODS))
    def simulate_predicate(self, task: Task, node: Node) -> Unfit | None:
        """Return why inter-pod affinity rejects the node, or None."""
        if not self._pods:
            return None
        pods: Filter = inter_pod_filter(self.ssn)
        if not pods.concerns(int(self._cls[task.row])):
            return None
        # Quirk of Volcano, kept on purpose: of kube-scheduler's filters, a simulation asks this one only.
        filter_result = pods.filter_result(task, NodeRows(self.ssn.tables, np.array([node.row])))
        return next(iter(filter_result.why[filter_result.codes[0]]), None)

    # -- the view ------------------------------------------------------------------------------------------------------

    @points.on_allocate
    def on_allocate(self, run: TaskRun) -> None:
        self._view.enter(run)

    @points.on_deallocate
    def on_deallocate(self, run: TaskRun) -> None:
        self._view.leave(run.rows)


def _register_claims(ssn: Session) -> None:
    """Register the filter of resource claims, if the cluster has any."""
    claiming = claiming_in(ssn)
    # Most clusters have no claims, and then no task is asked about them.
    if claiming is None:
        return

    def refused(task: Task) -> Unfit | None:
        """Return why the claims of a task rule out all nodes, in Volcano's words, or None."""
        return claiming.refused(task, "plugin DynamicResources pre-predicates failed ")

    claiming.register(ssn, refused)


# Kube-scheduler stops at the first filter that rejects. Volcano goes on after a rejection that an eviction may cure,
# and its texts list all of these.
def run_in_turn(filter_results: Sequence[FilterResult], count: int) -> FilterResult:
    """Combine filters that run one after the other. After a reason that evictions cannot change, later filters are
    ignored on that node."""
    if len(filter_results) == 1:
        return filter_results[0]
    ended = np.zeros(count, dtype=bool)
    kept = []
    for filter_result in filter_results:
        kept.append(
            FilterResult(np.where(ended, 0, filter_result.codes), filter_result.why) if ended.any() else filter_result
        )
        ends = np.array([any(unfit.code in _ENDS_SEARCH for unfit in reasons) for reasons in filter_result.why])
        ended |= ends[filter_result.codes]
    return gather(kept, count)
