"""kubeflow: masters and launchers of Kubeflow's jobs before their workers. Source: KAI kubeflow."""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.columns.rows import TaskRows
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.plugin import plugin
from pumice.framework.plugin.point import ROWS
from pumice.kai import points

ROLE_LABEL = "training.kubeflow.org/job-role"
FIRST = frozenset({"master", "launcher"})


@plugin("kubeflow")
@points.task_order(reads=(ROWS,))
def kubeflow(ssn: Session, tasks: TaskRows) -> AnyArray:
    """Shape (rows,)."""
    return np.array([pod.labels.get(ROLE_LABEL, "").lower() not in FIRST for pod in tasks.pods])
