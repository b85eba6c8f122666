"""The books: every move of a task between states, with what it means for its node, its job and its sub-job.

Store and session move tasks through the same code; the store with a writer that just writes, the session through its
journal. Source: Volcano node accounting (AddTask, RemoveTask) and job indexes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from pumice.columns.counting import PENDING
from pumice.columns.dtypes import F64, I32, AnyArray
from pumice.columns.journal import ChangeLog
from pumice.columns.tables import Tables
from pumice.columns.tasks import GATED
from pumice.model.status import ALLOCATED_STATUSES, LEGAL_MOVES, STATUS_COUNT, TaskStatus

#: What one task in a state does to its node: idle, used, releasing, pipelined, future (rows of ``NodeTable.books``),
#: in requests.
_BOOKS: F64 = np.zeros((STATUS_COUNT, 5))
for _status in TaskStatus:
    _BOOKS[_status] = (-1, 1, 0, 0, -1)
_BOOKS[TaskStatus.PENDING] = 0
_BOOKS[TaskStatus.RELEASING] = (-1, 1, 1, 0, 0)
_BOOKS[TaskStatus.PIPELINED] = (0, 0, 0, 1, -1)
_CHANGES_BOOKS = [[bool((after != before).any()) for after in _BOOKS] for before in _BOOKS]
#: By state before (last: from nowhere) and after: what one task that moves does to the counts of its job.
_MOVED: I32 = np.zeros((STATUS_COUNT + 1, STATUS_COUNT, STATUS_COUNT), dtype=np.int32)
for _status in TaskStatus:
    _MOVED[:, _status, _status] += 1
    _MOVED[_status, :, _status] -= 1
_HOLDS = [float(s in ALLOCATED_STATUSES) for s in TaskStatus]
_LEGAL = [[TaskStatus(b) in LEGAL_MOVES[TaskStatus(a)] for b in range(STATUS_COUNT)] for a in range(STATUS_COUNT)]


def tally(rows: Sequence[int]) -> tuple[list[int], F64]:
    """Distinct rows in order of appearance, and how often each appears. Faster than ``np.unique`` for a gang."""
    times: dict[int, int] = {}
    for row in rows:
        times[row] = times.get(row, 0) + 1
    return list(times), np.array(list(times.values()), dtype=np.float64)


class Writer(Protocol):
    """Who carries out a write: the journal, or a writer that does not remember."""

    def put(self, array: AnyArray, index: Any, value: Any) -> None: ...
    def add(self, array: AnyArray, index: Any, change: Any) -> None: ...
    def touch(self, log: ChangeLog, rows: list[int]) -> None: ...


class DirectWriter:
    """Writes and forgets: for the store, where events are facts and nobody reads a log of changes."""

    def put(self, array: AnyArray, index: Any, value: Any) -> None:
        array[index] = value

    def add(self, array: AnyArray, index: Any, change: Any) -> None:
        array[index] += change

    def touch(self, log: ChangeLog, rows: list[int]) -> None:
        """A store lives for months: a log that nobody reads must not grow with it."""


class Ledger:
    """Moves tasks and keeps every sum that follows from it."""

    __slots__ = ("tables", "writer")

    def __init__(self, tables: Tables, writer: Writer) -> None:
        self.tables = tables
        self.writer = writer

    def move(self, rows: Sequence[int], status: TaskStatus, nodes: Sequence[int]) -> None:
        """Move tasks of one sub-job, one class and one present state to ``status`` on ``nodes`` (-1: none), one node a
        task.

        A task that is on a node already must stay there or go to -1. Raises: AssertionError for a move that the table
        of legal moves does not have.
        """
        tasks = self.tables.tasks
        first = rows[0]
        before = int(tasks.status[first])
        assert _LEGAL[before][status], (
            f"illegal move of {tasks.pods[first].key}: {TaskStatus(before).label} -> {status.label}"
        )
        index: Any = np.array(rows) if len(rows) > 1 else first
        if _CHANGES_BOOKS[before][status]:
            where = nodes if before == PENDING else tasks.node[list(rows)].tolist()
            self._node_books(int(tasks.cls[first]), _BOOKS[status] - _BOOKS[before], where)
        self.writer.put(tasks.status, index, status)
        if PENDING in (before, status):
            self.writer.put(tasks.node, index, nodes if len(rows) > 1 else nodes[0])
        self._count(first, before, status, len(rows))

    def enter(self, row: int, status: TaskStatus, node: int) -> None:
        """Book a task that was not there before, in any state."""
        tasks = self.tables.tasks
        self.writer.put(tasks.status, row, status)
        self.writer.put(tasks.node, row, node)
        self.count(row, status, 1)
        if node >= 0:
            self._node_books(int(tasks.cls[row]), _BOOKS[status], [node])

    def rebook(self, row: int, node: int) -> None:
        """Book a task on a node of a fresh node table; its job's sums stand as they are."""
        tasks = self.tables.tasks
        self.writer.put(tasks.node, row, node)
        if node >= 0:
            self._node_books(int(tasks.cls[row]), _BOOKS[int(tasks.status[row])], [node])

    def leave(self, row: int) -> None:
        """Take a task out of every book."""
        tasks = self.tables.tasks
        status, node = int(tasks.status[row]), int(tasks.node[row])
        self.count(row, status, -1)
        if node >= 0:
            self._node_books(int(tasks.cls[row]), -_BOOKS[status], [node])

    def _node_books(self, cls: int, change: F64, where: Sequence[int]) -> None:
        books, step = self.tables.nodes.books, change[:, None] * self.tables.classes.req[cls]
        if len(where) == 1:
            self.writer.add(books, where[0], step)
            self.writer.touch(self.tables.nodes.changed, [where[0]])
            return
        distinct, times = tally(where)
        self.writer.add(books, np.array(distinct), times[:, None, None] * step)
        self.writer.touch(self.tables.nodes.changed, distinct)

    def count(self, row: int, status: int, amount: int) -> None:
        """Add ``amount`` tasks like the one at ``row`` in ``status`` to the sums of its job and sub-job."""
        self._count(row, -1, status, amount)

    def _count(self, row: int, before: int, after: int, amount: int) -> None:
        """Move ``amount`` tasks like the one at ``row`` between states in the sums of their job; -1: from nowhere."""
        tasks, jobs, subs, add = self.tables.tasks, self.tables.jobs, self.tables.subs, self.writer.add
        job, sub = int(tasks.job[row]), int(tasks.sub[row])
        if job < 0:
            return
        moved = amount * _MOVED[before][after]
        add(jobs.counts, job, moved)
        add(subs.counts, sub, moved)
        holds = _HOLDS[after] - (_HOLDS[before] if before >= 0 else 0.0)
        if holds:
            add(jobs.allocated, job, holds * amount * self.tables.classes.req[tasks.cls[row]])
        waiting = (after == PENDING) - (before == PENDING)
        if not waiting:
            return
        if tasks.best_effort[row]:
            add(jobs.best_effort, job, waiting * amount)
            add(subs.best_effort, sub, waiting * amount)
        elif tasks.gate[row] < GATED:
            add(jobs.waits, job, waiting * amount)
