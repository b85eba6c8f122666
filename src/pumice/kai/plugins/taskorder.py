"""taskorder: order tasks by label ``kai.scheduler/task-priority``, larger first, tasks without the label last. Source:
KAI taskorder plugin.
"""

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
    """Return the order key of tasks, lower first. Shape (rows,)."""
    labels = [pod.labels.get(KAI_TASK_PRIORITY_LABEL, "") for pod in tasks.pods]
    # A label that is not a whole number counts as missing. The pattern bounds its length, so that float() never
    # overflows.
    return np.array([-float(text) if _WHOLE.fullmatch(text) else np.inf for text in labels])
