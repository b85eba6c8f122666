"""gpuspread: of a node's devices the emptier ones first. Source: KAI gpuspread."""

from __future__ import annotations

from pumice.columns.dtypes import F64
from pumice.columns.views import Node, Task
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.plugin import plugin
from pumice.kai import points


@plugin("gpuspread")
@points.device_order
def gpuspread(ssn: Session, task: Task, node: Node, used: F64) -> F64:
    """The part of each that is free. Shape (devices,)."""
    return 1.0 - used
