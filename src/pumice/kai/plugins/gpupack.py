"""gpupack: of a node's devices the fuller ones first. Source: KAI gpupack."""

from __future__ import annotations

from pumice.api import F64, Node, Session, Task, plugin
from pumice.kai import points


@plugin("gpupack")
@points.device_order
def gpupack(ssn: Session, task: Task, node: Node, used: F64) -> F64:
    """The part of each that is used. Shape (devices,)."""
    return used
