"""Define which status changes a session may make in Volcano's language."""

from __future__ import annotations

from pumice.columns.ledger import Accounting
from pumice.model.status import TaskStatus

#: Status changes that a session may make. Any other one is a bug in an action or a plugin, not bad input.
_MOVES: dict[TaskStatus, frozenset[TaskStatus]] = {
    TaskStatus.PENDING: frozenset({TaskStatus.ALLOCATED, TaskStatus.PIPELINED}),
    TaskStatus.ALLOCATED: frozenset({TaskStatus.BINDING, TaskStatus.PENDING}),
    TaskStatus.PIPELINED: frozenset({TaskStatus.PENDING}),
    # A binding may fail, or its pod be evicted before it has started.
    TaskStatus.BINDING: frozenset({TaskStatus.PENDING, TaskStatus.RELEASING}),
    TaskStatus.BOUND: frozenset({TaskStatus.RELEASING}),
    TaskStatus.RUNNING: frozenset({TaskStatus.RELEASING}),
    # Back to where an eviction found it, if that is undone. Volcano makes it Running in each case.
    TaskStatus.RELEASING: frozenset({TaskStatus.RUNNING, TaskStatus.BOUND, TaskStatus.BINDING}),
    TaskStatus.SUCCEEDED: frozenset(),
    TaskStatus.FAILED: frozenset(),
    TaskStatus.UNKNOWN: frozenset(),
    # KAI's alone: it stays as it is.
    TaskStatus.STUCK: frozenset(),
}

ACCOUNTING = Accounting(_MOVES)
