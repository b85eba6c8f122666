"""nodeavailability: prefer nodes where a task can start at once over nodes where resources are being released. Source:
KAI nodeavailability plugin.
"""

from __future__ import annotations

import numpy as np

from pumice.api import F64, IDLE, ROWS, NodeRows, Session, TaskClass, plugin
from pumice.kai import points

#: More than numa, resourcetype and nodeplacement add together, which is 119 at most: an immediate start comes before a
#: well filled node. Below gpusharingorder (10,000).
SCORE = 1000.0


@plugin("nodeavailability")
@points.node_order(reads=(ROWS,))
def nodeavailability(ssn: Session, cls: TaskClass, nodes: NodeRows) -> F64:
    """Return 1,000 for nodes where the task fits the idle resources, else 0. Shape (rows,)."""
    room, devices = nodes.has_room(cls.row, IDLE), ssn.ledger.devices
    share = devices.share_of(cls.row) if devices is not None else None
    if devices is not None and share is not None:
        room = room & (devices.count(share, nodes.rows, soon=False) >= share.devices)
    return np.where(room, SCORE, 0.0)
