"""ray: the head of a Ray cluster before its workers. Source: KAI ray."""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.columns.rows import TaskRows
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.plugin import plugin
from pumice.framework.plugin.point import ROWS
from pumice.kai import points

TYPE_LABEL, HEAD = "ray.io/node-type", "head"


@plugin("ray")
@points.task_order(reads=(ROWS,))
def ray(ssn: Session, tasks: TaskRows) -> AnyArray:
    """Shape (rows,)."""
    return np.array([pod.labels.get(TYPE_LABEL) != HEAD for pod in tasks.pods])
