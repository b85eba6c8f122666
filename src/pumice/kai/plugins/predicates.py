"""predicates: what node objects decide about a pod: cordons, node selectors and affinity, taints. Source: KAI
predicates.

Whether requests fit is no filter: placing looks at that. Host ports, inter-pod affinity and volumes: not yet.
"""

from __future__ import annotations

from pumice.columns.dtypes import I32
from pumice.columns.rows import NodeRows
from pumice.columns.views import TaskClass
from pumice.framework.derived import derived
from pumice.framework.node_filters import STABLE_REASONS, stable_codes
from pumice.framework.plugin import plugin
from pumice.framework.point import ROWS
from pumice.framework.session import Session
from pumice.framework.verdict import Verdict
from pumice.kai import points

_WHY = tuple(() if reason is None else (reason,) for reason in STABLE_REASONS)


@plugin("predicates")
class Predicates:
    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn
        self._codes: dict[int, tuple[I32, bool]] = {}  # of a class, and whether any is against it

    @points.predicate(reads=(ROWS,))
    def node_filters(self, cls: TaskClass, nodes: NodeRows) -> Verdict | None:
        """The first filter that objects. Shape (rows,)."""
        known = self._codes.get(cls.row)
        if known is None:
            codes = stable_codes(derived(self.ssn), cls.spec, affinity=True, taints=True)
            known = self._codes[cls.row] = codes, bool(codes.any())
        codes, objects = known
        return Verdict(nodes.pick(codes), _WHY) if objects else None
