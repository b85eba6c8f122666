"""ray: start the head of a Ray cluster before its workers. Source: KAI ray plugin."""

from __future__ import annotations

import numpy as np

from pumice.api import ROWS, AnyArray, Session, TaskRows, plugin
from pumice.kai import points

#: Workers of a Ray cluster join it through its head, and do nothing until it runs.
TYPE_LABEL, HEAD = "ray.io/node-type", "head"


@plugin("ray")
@points.task_order(reads=(ROWS,))
def ray(ssn: Session, tasks: TaskRows) -> AnyArray:
    """Return the order key of tasks, lower first. Shape (rows,)."""
    return np.array([pod.labels.get(TYPE_LABEL) != HEAD for pod in tasks.pods])
