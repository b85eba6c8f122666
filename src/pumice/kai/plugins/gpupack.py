"""gpupack: prefer the fuller GPUs of a node. Source: KAI gpupack plugin."""

from __future__ import annotations

from pumice.api import F64, Node, Session, Task, plugin
from pumice.kai import points


@plugin("gpupack")
@points.device_order
def gpupack(ssn: Session, task: Task, node: Node, used: F64) -> F64:
    """Return the used share of each device. Shape (devices,)."""
    # ``used`` is 0 for a whole GPU: it is opened only if no shared one fits, and stays free for pods that need all of
    # it.
    return used
