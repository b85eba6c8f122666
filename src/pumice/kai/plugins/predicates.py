"""predicates: what node objects decide about a pod: cordons, node selectors and affinity, taints. Source: KAI
predicates.

Whether requests fit is no filter: placing looks at that. Host ports, inter-pod affinity and volumes: not yet.
"""

from __future__ import annotations

import numpy as np

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
@points.predicate(reads=(ROWS,))
def predicates(ssn: Session, cls: TaskClass, nodes: NodeRows) -> Verdict | None:
    """The first filter that objects. Shape (rows,)."""
    codes = stable_codes(derived(ssn), cls.spec, affinity=True, taints=True)
    picked = nodes.pick(codes)
    return Verdict(picked, _WHY) if np.any(picked) else None
