"""dynamicresources: claims of devices, and whose they may be. Source: KAI dynamicresources."""

from __future__ import annotations

import numpy as np

from pumice.api import ROWS, Bool, Code, FilterResult, NodeRows, Session, Task, TaskClass, Unfit, plugin
from pumice.kai import points
from pumice.kai.amounts import asks_for_gpus, gpu_column
from pumice.model.devices.gpu import is_gpu
from pumice.model.pod import KAI_QUEUE_LABEL
from pumice.placing.claims.hooks import CLAIM_POINTS, claiming_in
from pumice.placing.claims.offers import offers_of
from pumice.placing.claims.questions import Claiming
from pumice.placing.claims.resolve import TEMPLATE

_OTHER_GPUS = Unfit("node(s) offer their GPUs by claims only")


@plugin("dynamicresources", adds=CLAIM_POINTS)
class DynamicResources:
    """Where nobody claims anything and nothing is offered, nobody asks it."""

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn
        self._gpu = gpu_column(ssn.tables)
        self._by_claims = self._with_claimed_gpus()
        if self._by_claims is not None:
            ssn.column("dynamicresources.by_claims", "node", values=self._by_claims)
        self.unused_hooks = ("keeps_apart",) if self._by_claims is None else ()
        claiming = claiming_in(ssn)
        if claiming is not None:
            claiming.register(ssn, _Refusing(ssn, claiming).refused)

    def _with_claimed_gpus(self) -> Bool | None:
        """Nodes whose GPUs are there to be claimed (N,); None where there are none, or no others."""
        if self._gpu < 0 or not len(self.ssn.tables.slices):
            return None
        offers, found = offers_of(self.ssn), np.zeros(len(self.ssn.tables.nodes.facts), dtype=bool)
        there = offers.node[offers.gpus]
        found[there[there >= 0]] = True
        return found if found.any() else None

    @points.predicate(reads=(ROWS,))
    def keeps_apart(self, cls: TaskClass, nodes: NodeRows) -> FilterResult | None:
        """Pods that ask for GPUs as a resource do not go where they are claimed. Shape (rows,)."""
        if self._by_claims is None or not asks_for_gpus(cls, self._gpu):
            return None
        return FilterResult.of(~nodes.pick(self._by_claims), _OTHER_GPUS)


class _Refusing:
    """Why nodes are not looked at for a pod's claims."""

    def __init__(self, ssn: Session, claiming: Claiming) -> None:
        self.ssn, self._claiming = ssn, claiming

    def refused(self, task: Task) -> Unfit | None:
        """Why nodes are not looked at for its claims."""
        return self._claiming.refused(task) or self._of_another_queue(task)

    def _of_another_queue(self, task: Task) -> Unfit | None:
        """Claims of GPUs that a pod names are of one queue: that of their label."""
        ledger, tables = self._claiming.ledger, self.ssn.tables
        pod, job = tables.tasks.pods[task.row], int(tables.tasks.job[task.row])
        queue = tables.queues.names[int(tables.jobs.queue[job])] if job >= 0 else ""
        named = {f"{pod.namespace}/{name}" for name in pod.spec.resource_claims if not name.startswith(TEMPLATE)}
        for number in ledger.of_task.get(task.row, ()) if named else ():
            claim = ledger.claims[number]
            of_gpus = any(is_gpu(name) for name, _ in claim.devices)
            if claim.key in named and of_gpus and claim.labels.get(KAI_QUEUE_LABEL) != queue:
                return Unfit(f"resourceclaim {claim.key} is not labelled as queue {queue}'s", Code.UNRESOLVABLE)
        return None
