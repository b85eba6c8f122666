"""subgrouporder: pod sets that are less full, measured by their minimum, grow first and shrink last. Source: KAI
subgrouporder."""

from __future__ import annotations

from pumice.api import Session, plugin
from pumice.kai import points


@plugin("subgrouporder")
@points.pod_set_order
def subgrouporder(ssn: Session, active: int, least: int) -> float:
    return active / max(least, 1)
