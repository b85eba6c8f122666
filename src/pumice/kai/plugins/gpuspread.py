"""gpuspread: of a node's devices the emptier ones first. Source: KAI gpuspread."""

from __future__ import annotations

from pumice.api import F64, Node, Session, Task, plugin
from pumice.kai import points


@plugin("gpuspread")
@points.device_order
def gpuspread(ssn: Session, task: Task, node: Node, used: F64) -> F64:
    """The part of each that is free. Shape (devices,)."""
    return 1.0 - used
