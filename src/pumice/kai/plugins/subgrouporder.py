"""subgrouporder: grow the pod set with the lowest share of its minimum first, and shrink it last. Source: KAI
subgrouporder plugin.
"""

from __future__ import annotations

from pumice.api import Session, plugin
from pumice.kai import points

#: Key of members without a minimum. They come after all others, so that what a gang needs grows first.
_OPTIONAL = 2.0**32


@plugin("subgrouporder")
@points.pod_set_order
def subgrouporder(ssn: Session, active: int, least: int) -> float:
    """Return -1 below the minimum, else what is reached as a share of the minimum; members without a minimum follow,
    the emptiest first."""
    if active < least:
        return -1.0
    return active / least if least else _OPTIONAL + active
