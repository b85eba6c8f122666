"""kubeflow: start masters and launchers of Kubeflow jobs before their workers. Source: KAI kubeflow plugin."""

from __future__ import annotations

import numpy as np

from pumice.api import ROWS, AnyArray, Session, TaskRows, plugin
from pumice.kai import points

ROLE_LABEL = "training.kubeflow.org/job-role"
#: Without its master or launcher the workers of a job have nothing to do. In a gang that is placed pod by pod the order
#: decides which pods get the room that there is.
FIRST = frozenset({"master", "launcher"})


@plugin("kubeflow")
@points.task_order(reads=(ROWS,))
def kubeflow(ssn: Session, tasks: TaskRows) -> AnyArray:
    """Return the order key of tasks, lower first. Shape (rows,)."""
    return np.array([pod.labels.get(ROLE_LABEL, "").lower() not in FIRST for pod in tasks.pods])
