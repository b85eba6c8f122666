"""Define which status changes a session may make in KAI's language. Evicted tasks may get their node back, or another
one.
"""

from __future__ import annotations

from pumice.columns.ledger import Accounting
from pumice.model.status import TaskStatus

_HELD = (TaskStatus.ALLOCATED, TaskStatus.PIPELINED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING)
#: Status changes that a session may make. Any other one is a bug in an action or a plugin, not bad input.
_MOVES: dict[TaskStatus, frozenset[TaskStatus]] = {
    TaskStatus.PENDING: frozenset({TaskStatus.ALLOCATED, TaskStatus.PIPELINED}),
    TaskStatus.ALLOCATED: frozenset(
        {TaskStatus.BINDING, TaskStatus.PIPELINED, TaskStatus.RELEASING, TaskStatus.PENDING}
    ),
    # A later action of the session may take back what an earlier one promised, as an eviction.
    TaskStatus.PIPELINED: frozenset({TaskStatus.RELEASING}),
    TaskStatus.BINDING: frozenset({TaskStatus.RELEASING, TaskStatus.PENDING}),
    TaskStatus.BOUND: frozenset({TaskStatus.RELEASING}),
    TaskStatus.RUNNING: frozenset({TaskStatus.RELEASING}),
    # Back to any state in which it was before: a victim of a simulation may keep its node.
    TaskStatus.RELEASING: frozenset({*_HELD, TaskStatus.STUCK}),
    # Only the cluster can say that a pod in one of these states has gone or goes on.
    TaskStatus.SUCCEEDED: frozenset(),
    TaskStatus.FAILED: frozenset(),
    TaskStatus.UNKNOWN: frozenset(),
    TaskStatus.STUCK: frozenset(),
}

ACCOUNTING = Accounting(_MOVES, comes_back=True)
