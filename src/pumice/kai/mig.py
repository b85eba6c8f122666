"""Which pods go to nodes whose GPUs are cut into MIG instances. Source: KAI PredicateByNodeResourcesType."""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import Bool
from pumice.columns.views import TaskClass
from pumice.framework.cycle.session import Session
from pumice.kai.amounts import asks_for_gpus, gpu_column
from pumice.model.devices.gpu import MIG_PREFIX, MIG_STRATEGY_LABEL
from pumice.placing.derived import derived

_SINGLE, _MIXED = "single", "mixed"
_NONE = -2  # the code of what no node says


class MigRules:
    """Nodes by their strategy, and those with a pod that has instances of the old kind, which an annotation names."""

    def __init__(self, ssn: Session) -> None:
        tables = ssn.tables
        strategy = derived(ssn).label(MIG_STRATEGY_LABEL)
        self._single: Bool = strategy.codes == strategy.code_of.get(_SINGLE, _NONE)
        self._mixed: Bool = strategy.codes == strategy.code_of.get(_MIXED, _NONE)
        self._old = np.zeros(len(strategy.codes), dtype=bool)
        self._gpu = gpu_column(tables)
        self._mig = [row for name, row in tables.axis.column.items() if name.startswith(MIG_PREFIX)]
        shares = [spec is not None and spec.gpu_share is not None for spec in tables.classes.specs]
        if any(shares):
            self._find_old(ssn)

    def _find_old(self, ssn: Session) -> None:
        tasks, specs = ssn.tables.tasks, ssn.tables.classes.specs
        for row in (tasks.alive & (tasks.node >= 0)).nonzero()[0].tolist():
            share = specs[tasks.cls[row]].gpu_share
            if share is not None and share.legacy_mig:
                self._old[tasks.node[row]] = True

    def against(self, cls: TaskClass) -> Bool:
        """Nodes that no pod of the class may go to (N,)."""
        share = cls.spec.gpu_share
        if share is not None and share.legacy_mig:
            return np.ones(len(self._old), dtype=bool)
        if any(cls.req[row] > 0 for row in self._mig):
            return ~self._mixed | self._old
        if self._gpu >= 0 and asks_for_gpus(cls, self._gpu):
            return self._mixed | (self._single if share is not None else False)
        return np.zeros(len(self._old), dtype=bool)
