"""gpuspread: prefer the emptier GPUs of a node. Source: KAI gpuspread plugin."""

from __future__ import annotations

from pumice.api import F64, Node, Session, Task, plugin
from pumice.kai import points


@plugin("gpuspread")
@points.device_order
def gpuspread(ssn: Session, task: Task, node: Node, used: F64) -> F64:
    """Return the free share of each device. Shape (devices,)."""
    # ``used`` is 0 for a whole GPU, so a pod shares a GPU only if the node has no whole one left.
    return 1.0 - used
