"""taskorder: tasks with a larger label ``kai.scheduler/task-priority`` first, those without one last. Source: KAI
taskorder."""

from __future__ import annotations

import re

import numpy as np

from pumice.api import ROWS, AnyArray, Session, TaskRows, plugin
from pumice.kai import points
from pumice.model.pod import KAI_TASK_PRIORITY_LABEL

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


@plugin("taskorder")
@points.task_order(reads=(ROWS,))
def taskorder(ssn: Session, tasks: TaskRows) -> AnyArray:
    """Shape (rows,)."""
    labels = [pod.labels.get(KAI_TASK_PRIORITY_LABEL, "") for pod in tasks.pods]
    return np.array([-float(text) if _WHOLE.fullmatch(text) else np.inf for text in labels])
