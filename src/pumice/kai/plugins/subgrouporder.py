"""subgrouporder: grow the pod set with the lowest share of its minimum first, and shrink it last. Source: KAI
subgrouporder plugin.
"""

from __future__ import annotations

from pumice.api import Session, plugin
from pumice.kai import points


@plugin("subgrouporder")
@points.pod_set_order
def subgrouporder(ssn: Session, active: int, least: int) -> float:
    """Return the active tasks of a pod set as a share of its minimum."""
    return active / max(least, 1)
