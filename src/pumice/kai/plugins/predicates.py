"""predicates: filter nodes by cordons, node selectors and affinity, taints, MIG, host ports and inter-pod affinity.
Source: KAI predicates plugin.

Requests are not checked here but by the placement. Resource claims are checked by the plugin dynamicresources.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pumice.api import (
    PODS,
    ROWS,
    AnyArray,
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
from pumice.placing.filters.nodes import STABLE_REASONS, Stable, stable_codes
from pumice.placing.filters.of_session import inter_pod_filter, port_filter
from pumice.placing.filters.pod_view import View
from pumice.placing.filters.pods import classes_where, has_pod_terms
from pumice.placing.volumes.filters import BINDING, VOLUME_POINTS, register_volumes

#: Pods with claims stay pending without the plugin: ignoring their claims could give devices away twice.
CLAIMED = Unfit("claims of devices need the plugin dynamicresources", Code.UNRESOLVABLE)
NO_GPUS = Unfit("no node has GPUs that could be shared", Code.UNRESOLVABLE)

_WRONG_KIND = Unfit("node(s) have another kind of GPU devices than the pod asks for")
_WHY = (*(() if reason is None else (reason,) for reason in STABLE_REASONS), (_WRONG_KIND,))


@plugin("predicates", adds=VOLUME_POINTS)
class Predicates:
    """Register the filters of nodes and pods."""

    def __init__(self, ssn: Session) -> None:
        self.ssn, self._facts = ssn, derived(ssn)
        self._mig = MigRules(ssn)
        register_volumes(ssn, (BINDING,))
        # These filters are asked per task, and the events per placement. Sessions without host ports and pod affinity
        # skip both.
        if classes_where(ssn, "pod terms", has_pod_terms) or classes_where(ssn, "host ports", has_host_ports):
            self._add_pod_filters()

    def _add_pod_filters(self) -> None:
        """Register the filters that read other pods, and the events that keep their pod counts up to date."""
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
        """Filter nodes by host ports and then by inter-pod affinity. Shape (rows,)."""
        cls = int(self.ssn.tables.tasks.cls[task.row])
        filter_results = [each.filter_result(task, nodes) for each in self._filters if each.concerns(cls)]
        return gather(filter_results, len(nodes)) if filter_results else None

    @points.pre_predicate
    def not_yet(self, cls: TaskClass) -> Unfit | None:
        """Return why no node can take pods of the class, or None."""
        spec = cls.spec
        if spec.missing_config_maps:
            return Unfit(f"Missing required configmaps: [{' '.join(spec.missing_config_maps)}]", Code.UNRESOLVABLE)
        # Here and not node by node, so that the reason names the annotation that is wrong, and no eviction is tried for
        # it.
        if spec.gpu_share is not None and spec.gpu_share.problem:
            return Unfit(spec.gpu_share.problem, Code.UNRESOLVABLE)
        if asks_for_parts(spec) and self.ssn.ledger.devices is None:
            return NO_GPUS
        if spec.resource_claims and self.ssn.hooks.plugin("dynamicresources") is None:
            return CLAIMED
        return None

    def figures(self) -> Mapping[str, AnyArray]:
        """Return what is free of each GPU that pods share, in thousandths, 0 for others (N, S); none without such
        pods."""
        devices = self.ssn.ledger.devices
        return {} if devices is None else {"node.gpu_parts": devices.free()}

    # -- nodes ---------------------------------------------------------------------------------------------------------

    @points.predicate(reads=(ROWS,))
    def node_filters(self, cls: TaskClass, nodes: NodeRows) -> FilterResult | None:
        """Filter nodes by facts that do not change within a session; the first reason counts. Shape (rows,)."""
        facts, legacy = self._facts, self._mig.legacy
        codes, objects = facts.of_class("node filters", cls.row, lambda: self._reasons(cls), legacy, size=len(facts))
        return FilterResult(nodes.pick(codes), _WHY) if objects else None

    def _reasons(self, cls: TaskClass) -> Stable:
        """Return the reason by which each node is rejected."""
        codes = stable_codes(self._facts, cls.spec, affinity=True, taints=True).codes
        # A node has one reason; MIG is given only where no other filter rejects the node.
        codes = np.where(self._mig.against(cls) & (codes == 0), len(_WHY) - 1, codes).astype(np.int32)
        return Stable(codes, bool(codes.any()))


def asks_for_parts(spec: PodSpec) -> bool:
    """Return True if a pod asks for parts of GPUs."""
    return spec.gpu_share is not None and (spec.gpu_share.fraction > 0 or spec.gpu_share.memory_mib > 0)


def has_host_ports(spec: PodSpec) -> bool:
    """Return True if a pod uses ports of its node."""
    return bool(spec.host_ports)
