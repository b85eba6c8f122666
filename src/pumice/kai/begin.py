"""Begin a session in KAI's language, before its plugins are opened."""

from __future__ import annotations

from pumice.columns.counting import RELEASING
from pumice.columns.placement import Placement
from pumice.columns.runs import TaskRun
from pumice.framework.cycle.session import Session
from pumice.kai.devices import open_devices
from pumice.model.status import TaskStatus

#: Seconds after its time of deletion for which a running pod counts as leaving. Source: KAI
#: --stuck-in-releasing-threshold.
STUCK_AFTER_S = 120.0


def begin(ssn: Session) -> None:
    """Mark the pods that are stuck in their deletion, and open the ledger of shared GPUs."""
    # In this order: the ledger counts devices by the states of tasks.
    _mark_stuck(ssn)
    open_devices(ssn)


def _mark_stuck(ssn: Session) -> None:
    """Move running pods whose deletion is overdue to the state in which nothing waits for what they hold."""
    tasks = ssn.tables.tasks
    for row in (tasks.alive & (tasks.status == RELEASING) & (tasks.node >= 0)).nonzero()[0].tolist():
        pod = tasks.pods[row]
        # Pods that never ran are removed by the API server, whatever their node does.
        if pod.phase == "Running" and pod.deletion is not None and pod.deletion + STUCK_AFTER_S < ssn.now:
            run = TaskRun(ssn.tables, Placement([row], [int(tasks.node[row])]))
            ssn.ledger.move(run, TaskStatus.STUCK)
