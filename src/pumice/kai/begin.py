"""Begin a session in KAI's language, before its plugins are opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pumice.columns.counting import RELEASING
from pumice.columns.placement import Placement
from pumice.columns.runs import TaskRun
from pumice.framework.cycle.session import Session
from pumice.kai.devices import open_devices
from pumice.model.quantity import duration_or_none
from pumice.model.status import TaskStatus

#: Section of a policy file, with the duration after its time of deletion for which a running pod counts as leaving.
#: KAI has a flag for it, stuck-in-releasing-threshold; here it is part of what a cycle is run again from.
STUCK, _THRESHOLD = "stuckInReleasing", "threshold"
#: Its default, in seconds.
STUCK_AFTER_S = 120.0


def stuck_problems(section: Mapping[str, object]) -> Iterator[str]:
    """Yield a message for each wrong entry of the section ``stuckInReleasing``."""
    for key, value in section.items():
        if key != _THRESHOLD:
            yield f"{key}: unknown key, wanted {_THRESHOLD}"
        elif (seconds := duration_or_none(value)) is None or seconds < 0:
            yield f"{key}: found {value!r:.80}, wanted a duration such as 2m"


def begin(ssn: Session) -> None:
    """Mark the pods that are stuck in their deletion, and open the ledger of shared GPUs."""
    # In this order: the ledger counts devices by the states of tasks.
    _mark_stuck(ssn)
    open_devices(ssn)


def _mark_stuck(ssn: Session) -> None:
    """Move running pods whose deletion is overdue to the state in which nothing waits for what they hold."""
    tasks, threshold = ssn.tables.tasks, duration_or_none(ssn.policy.section(STUCK).get(_THRESHOLD))
    # A wrong entry was reported when the file was read.
    after = STUCK_AFTER_S if threshold is None else max(threshold, 0.0)
    for row in (tasks.alive & (tasks.status == RELEASING) & (tasks.node >= 0)).nonzero()[0].tolist():
        pod = tasks.pods[row]
        # Pods that never ran are removed by the API server, whatever their node does.
        if pod.phase == "Running" and pod.deletion is not None and pod.deletion + after < ssn.now:
            run = TaskRun(ssn.tables, Placement([row], [int(tasks.node[row])]))
            ssn.ledger.move(run, TaskStatus.STUCK)
