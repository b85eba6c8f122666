"""dynamicresources: allocate resource claims, and keep each GPU claim within its queue. Source: KAI dynamicresources
plugin.
"""

from __future__ import annotations

import numpy as np

from pumice.api import ROWS, Bool, Code, FilterResult, NodeRows, Session, Task, TaskClass, Unfit, plugin
from pumice.kai import points
from pumice.kai.amounts import gpu_column
from pumice.model.devices.gpu import is_gpu
from pumice.model.pod import KAI_QUEUE_LABEL
from pumice.placing.claims.hooks import CLAIM_POINTS, claiming_in
from pumice.placing.claims.offers import offers_of
from pumice.placing.claims.questions import Claiming
from pumice.placing.claims.resolve import TEMPLATE

_OTHER_GPUS = Unfit("fractional/shared GPU pods are not yet supported on DRA-only nodes")


@plugin("dynamicresources", adds=CLAIM_POINTS)
class DynamicResources:
    """Register the filters of resource claims, and keep pods that share GPUs off nodes that offer them by claims."""

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn
        self._gpu = gpu_column(ssn.tables)
        self._by_claims = self._with_claimed_gpus()
        if self._by_claims is not None:
            ssn.column("dynamicresources.by_claims", "node", values=self._by_claims)
        # Most clusters have no claims and no resource slices. The hooks are then switched off, so these clusters pay
        # nothing.
        self.unused_hooks = ("keeps_apart",) if self._by_claims is None else ()
        claiming = claiming_in(ssn)
        if claiming is not None:
            claiming.register(ssn, _Refusing(ssn, claiming).refused)

    def _with_claimed_gpus(self) -> Bool | None:
        """Return the nodes that offer GPUs by claims, or None if there are no such nodes. Shape (N,)."""
        if self._gpu < 0 or not len(self.ssn.tables.slices):
            return None
        offers, found = offers_of(self.ssn), np.zeros(len(self.ssn.tables.nodes.facts), dtype=bool)
        # A slice may offer devices of no node of this snapshot, which then have node -1.
        there = offers.node[offers.gpus]
        found[there[there >= 0]] = True
        return found if found.any() else None

    @points.predicate(reads=(ROWS,))
    def keeps_apart(self, cls: TaskClass, nodes: NodeRows) -> FilterResult | None:
        """Reject nodes that offer GPUs by claims for pods that share GPUs. Shape (rows,)."""
        share = cls.spec.gpu_share
        if self._by_claims is None or share is None or not (share.fraction or share.memory_mib):
            return None
        # The same devices could otherwise be allocated twice: once in parts, once by claim. Whole GPUs have claims too.
        return FilterResult.of(~nodes.pick(self._by_claims), _OTHER_GPUS)


class _Refusing:
    """Find out whether the claims of a pod rule out all nodes."""

    def __init__(self, ssn: Session, claiming: Claiming) -> None:
        self.ssn, self._claiming = ssn, claiming

    def refused(self, task: Task) -> Unfit | None:
        """Return why the claims of a task rule out all nodes, or None."""
        return self._claiming.refused(task) or self._of_another_queue(task)

    def _of_another_queue(self, task: Task) -> Unfit | None:
        """Return why a claim that the pod names belongs to another queue, or None.

        A claim of GPUs belongs to the queue in its label. Claims that are made from a template belong to the pod, and
        need no label.
        """
        ledger, tables = self._claiming.ledger, self.ssn.tables
        pod, job = tables.tasks.pods[task.row], int(tables.tasks.job[task.row])
        queue = tables.queues.names[int(tables.jobs.queue[job])] if job >= 0 else ""
        named = {f"{pod.namespace}/{name}" for name in pod.spec.resource_claims if not name.startswith(TEMPLATE)}
        for number in ledger.of_task.get(task.row, ()) if named else ():
            claim = ledger.claims[number]
            of_gpus = any(is_gpu(name) for name, _ in claim.devices)
            # Pods of several queues may name one claim. Its label says which queue answers for the GPUs, so that no
            # queue uses those of another one without being charged.
            if claim.key in named and of_gpus and claim.labels.get(KAI_QUEUE_LABEL) != queue:
                return Unfit(f"resourceclaim {claim.key} is not labelled as queue {queue}'s", Code.UNRESOLVABLE)
        return None
