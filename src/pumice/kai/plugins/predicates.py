"""predicates: what node objects decide about a pod: cordons, node selectors and affinity, taints, MIG. Source: KAI
predicates.

Whether requests fit is no filter: placing looks at that. What needs claims of
dynamic resources, host ports or other pods: not yet, and so nowhere.
"""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import I32
from pumice.columns.rows import NodeRows
from pumice.columns.views import TaskClass
from pumice.framework.derived import derived
from pumice.framework.node_filters import STABLE_REASONS, stable_codes
from pumice.framework.plugin import plugin
from pumice.framework.point import ROWS
from pumice.framework.session import Session
from pumice.framework.verdict import Code, Unfit, Verdict
from pumice.kai import points
from pumice.kai.mig import MigRules

#: What this version cannot place, and so places nowhere: to leave it out of account would give devices away twice.
CLAIMED = Unfit("claims of dynamic resources are not looked at yet", Code.UNRESOLVABLE)
POD_TERMS = Unfit("terms about other pods are not looked at yet", Code.UNRESOLVABLE)

_WRONG_KIND = Unfit("node(s) have another kind of GPU devices than the pod asks for")
_WHY = (*(() if reason is None else (reason,) for reason in STABLE_REASONS), (_WRONG_KIND,))


@plugin("predicates")
class Predicates:
    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn
        self._mig = MigRules(ssn)
        self._codes: dict[int, tuple[I32, bool]] = {}  # of a class, and whether any is against it

    @points.pre_predicate
    def not_yet(self, cls: TaskClass) -> Unfit | None:
        """Why no node may take it, whatever there is."""
        spec = cls.spec
        if spec.gpu_share is not None and spec.gpu_share.problem:
            return Unfit(spec.gpu_share.problem, Code.UNRESOLVABLE)
        if spec.resource_claims:
            return CLAIMED
        if spec.affinity.pod_required or spec.affinity.anti_required or spec.host_ports:
            return POD_TERMS
        return None

    @points.predicate(reads=(ROWS,))
    def node_filters(self, cls: TaskClass, nodes: NodeRows) -> Verdict | None:
        """The first filter that objects. Shape (rows,)."""
        known = self._codes.get(cls.row)
        if known is None:
            codes = stable_codes(derived(self.ssn), cls.spec, affinity=True, taints=True)
            against = self._mig.against(cls)
            codes = np.where(against & (codes == 0), len(_WHY) - 1, codes).astype(np.int32)
            known = self._codes[cls.row] = codes, bool(codes.any())
        codes, objects = known
        return Verdict(nodes.pick(codes), _WHY) if objects else None
