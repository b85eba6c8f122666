"""Decide which pods may run on nodes whose GPUs are split into MIG instances. Source: KAI
PredicateByNodeResourcesType.
"""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import Bool
from pumice.columns.views import TaskClass
from pumice.framework.cycle.session import Session
from pumice.kai.amounts import asks_for_gpus, gpu_column
from pumice.model.devices.gpu import MIG_PREFIX, MIG_STRATEGY_LABEL
from pumice.placing.derived import derived

_SINGLE, _MIXED = "single", "mixed"
#: A label code that no node has: -1 means that a node lacks the label.
_NONE = -2


class MigRules:
    """Nodes by MIG strategy, and nodes that run a pod with legacy MIG instances, which an annotation requests."""

    def __init__(self, ssn: Session) -> None:
        tables = ssn.tables
        strategy = derived(ssn).label(MIG_STRATEGY_LABEL)
        self._single: Bool = strategy.codes == strategy.code_of.get(_SINGLE, _NONE)
        self._mixed: Bool = strategy.codes == strategy.code_of.get(_MIXED, _NONE)
        self._legacy = np.zeros(len(strategy.codes), dtype=bool)
        self._gpu = gpu_column(tables)
        self._mig = [row for name, row in tables.axis.column.items() if name.startswith(MIG_PREFIX)]
        shares = [spec is not None and spec.gpu_share is not None for spec in tables.classes.specs]
        # The search walks all placed tasks; without GPU sharing it would find none.
        if any(shares):
            self._mark_legacy(ssn)
        #: Those nodes as a value, on which answers rest.
        self.legacy = self._legacy.tobytes()

    def _mark_legacy(self, ssn: Session) -> None:
        """Mark the nodes that run a pod with legacy MIG instances."""
        tasks, specs = ssn.tables.tasks, ssn.tables.classes.specs
        for row in (tasks.alive & (tasks.node >= 0)).nonzero()[0].tolist():
            share = specs[tasks.cls[row]].gpu_share
            if share is not None and share.legacy_mig:
                self._legacy[tasks.node[row]] = True

    def against(self, cls: TaskClass) -> Bool:
        """Return the nodes that pods of the class may not use. Shape (N,)."""
        share = cls.spec.gpu_share
        if share is not None and share.legacy_mig:
            # KAI places no pods with legacy MIG requests; it only accounts for those that run.
            return np.ones(len(self._legacy), dtype=bool)
        if any(cls.req[row] > 0 for row in self._mig):
            return ~self._mixed | self._legacy
        if self._gpu >= 0 and asks_for_gpus(cls, self._gpu):
            # Strategy mixed offers instances only. Strategy single shows instances as whole GPUs, which cannot be
            # divided further.
            return self._mixed | (self._single if share is not None else False)
        return np.zeros(len(self._legacy), dtype=bool)
