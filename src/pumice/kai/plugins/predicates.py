"""predicates: what nodes, and the pods on them, decide about a pod: cordons, selectors and affinity, taints, MIG, host
ports, inter-pod affinity. Source: KAI predicates.

Whether requests fit is no filter: placing looks at that. Claims of devices are ``dynamicresources``' to look at.
"""

from __future__ import annotations

import numpy as np

from pumice.api import (
    I32,
    PODS,
    ROWS,
    Code,
    FilterResult,
    NodeRows,
    PodSpec,
    Session,
    Task,
    TaskClass,
    TaskRun,
    Unfit,
    gather,
    plugin,
)
from pumice.kai import points
from pumice.kai.mig import MigRules
from pumice.placing.derived import derived
from pumice.placing.filters.nodes import STABLE_REASONS, stable_codes
from pumice.placing.filters.of_session import inter_pod_filter, port_filter
from pumice.placing.filters.pod_view import View
from pumice.placing.filters.pods import classes_where, has_pod_terms
from pumice.placing.volumes.filters import BINDING, VOLUME_POINTS, register_volumes

#: What this version cannot place, and so places nowhere: to leave it out of account would give devices away twice.
CLAIMED = Unfit("claims of devices need the plugin dynamicresources", Code.UNRESOLVABLE)
NO_GPUS = Unfit("no node has GPUs that could be shared", Code.UNRESOLVABLE)

_WRONG_KIND = Unfit("node(s) have another kind of GPU devices than the pod asks for")
_WHY = (*(() if reason is None else (reason,) for reason in STABLE_REASONS), (_WRONG_KIND,))


@plugin("predicates", adds=VOLUME_POINTS)
class Predicates:
    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn
        self._mig = MigRules(ssn)
        self._codes: dict[int, tuple[I32, bool]] = {}  # of a class, and whether any is against it
        register_volumes(ssn, (BINDING,))
        if classes_where(ssn, "pod terms", has_pod_terms) or classes_where(ssn, "host ports", has_host_ports):
            self._look_at_pods()

    def _look_at_pods(self) -> None:
        """Nobody else pays for filters that look at single tasks, and for keeping in step what they look at."""
        ssn, view = self.ssn, View(self.ssn)
        self._filters = (port_filter(ssn), inter_pod_filter(ssn))

        def on_allocate(run: TaskRun) -> None:
            view.enter(run)

        def on_deallocate(run: TaskRun) -> None:
            view.leave(run.rows)

        ssn.add(points.predicate, self.pod_filters, (ROWS, PODS))
        ssn.add(points.on_allocate, on_allocate)
        ssn.add(points.on_deallocate, on_deallocate)

    def pod_filters(self, task: Task, nodes: NodeRows) -> FilterResult | None:
        """Host ports, then inter-pod affinity, as far as they matter to the task's class. Shape (rows,)."""
        cls = int(self.ssn.tables.tasks.cls[task.row])
        filter_results = [each.filter_result(task, nodes) for each in self._filters if each.concerns(cls)]
        return gather(filter_results, len(nodes)) if filter_results else None

    @points.pre_predicate
    def not_yet(self, cls: TaskClass) -> Unfit | None:
        """Why no node may take it, whatever there is."""
        spec = cls.spec
        if spec.gpu_share is not None and spec.gpu_share.problem:
            return Unfit(spec.gpu_share.problem, Code.UNRESOLVABLE)
        if asks_for_parts(spec) and self.ssn.ledger.devices is None:
            return NO_GPUS
        if spec.resource_claims and self.ssn.hooks.plugin("dynamicresources") is None:
            return CLAIMED
        return None

    # -- nodes ---------------------------------------------------------------------------------------------------------

    @points.predicate(reads=(ROWS,))
    def node_filters(self, cls: TaskClass, nodes: NodeRows) -> FilterResult | None:
        """The first filter that objects. Shape (rows,)."""
        known = self._codes.get(cls.row)
        if known is None:
            codes = stable_codes(derived(self.ssn), cls.spec, affinity=True, taints=True).codes
            against = self._mig.against(cls)
            codes = np.where(against & (codes == 0), len(_WHY) - 1, codes).astype(np.int32)
            known = self._codes[cls.row] = codes, bool(codes.any())
        codes, objects = known
        return FilterResult(nodes.pick(codes), _WHY) if objects else None


def asks_for_parts(spec: PodSpec) -> bool:
    """Whether a pod asks for parts of GPUs."""
    return spec.gpu_share is not None and (spec.gpu_share.fraction > 0 or spec.gpu_share.memory_mib > 0)


def has_host_ports(spec: PodSpec) -> bool:
    """Whether a pod takes ports of its node."""
    return bool(spec.host_ports)
