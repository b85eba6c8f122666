"""nodeavailability: nodes on which a task can start at once before those that others are about to leave. Source: KAI
nodeavailability."""

from __future__ import annotations

import numpy as np

from pumice.api import F64, IDLE, ROWS, NodeRows, Session, TaskClass, plugin
from pumice.kai import points

SCORE = 100.0


@plugin("nodeavailability")
@points.node_order(reads=(ROWS,))
def nodeavailability(ssn: Session, cls: TaskClass, nodes: NodeRows) -> F64:
    """100 where it fits what is idle. Shape (rows,)."""
    room, devices = nodes.has_room(cls.row, IDLE), ssn.ledger.devices
    share = devices.share_of(cls.row) if devices is not None else None
    if devices is not None and share is not None:
        room = room & (devices.count(share, nodes.rows, soon=False) >= share.devices)
    return np.where(room, SCORE, 0.0)
