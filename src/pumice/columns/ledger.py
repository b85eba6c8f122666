"""The books: every move of a task between states, with what it means for its node, its job and its sub-job.

Store and session move tasks through the same code; the store with a writer that just writes, the session through its
journal. Source: Volcano node accounting (AddTask, RemoveTask) and job indexes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

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
_MOVED_ONE = [list(after) for after in _MOVED]
_HOLDS = [float(s in ALLOCATED_STATUSES) for s in TaskStatus]
_LEGAL = [[TaskStatus(b) in LEGAL_MOVES[TaskStatus(a)] for b in range(STATUS_COUNT)] for a in range(STATUS_COUNT)]


class Tally(NamedTuple):
    """Which rows appear, in order of first appearance, as a list and as an array, and the ``times`` of each; None:
    once."""

    rows: list[int]
    where: AnyArray
    times: F64 | None

    def of_each(self, change: F64) -> F64:
        """What ``change`` for each appearance makes of every row, to be added to arrays of rows of its shape."""
        return change if self.times is None else self.times.reshape(-1, *(1,) * change.ndim) * change


def tally(rows: Sequence[int]) -> Tally:
    """Count rows. Faster than ``np.unique`` for a gang."""
    times: dict[int, int] = {}
    for row in rows:
        times[row] = times.get(row, 0) + 1
    distinct = list(times)
    once = len(distinct) == len(rows)
    return Tally(distinct, np.array(distinct), None if once else np.array(list(times.values()), dtype=np.float64))


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

    __slots__ = ("_booked", "tables", "writer")

    def __init__(self, tables: Tables, writer: Writer) -> None:
        self.tables = tables
        self.writer = writer
        self._booked: dict[tuple[int, int, int], F64] = {}  # what a task of a class that moves does to its node

    def move(self, rows: Sequence[int], status: TaskStatus, nodes: Sequence[int], tallied: Tally | None = None) -> None:
        """Move tasks of one sub-job, one class and one present state to ``status`` on ``nodes`` (-1: none), one node a
        task. ``tallied``: the nodes, where a pending task's are tallied already.

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
            step = self._step(before, status, int(tasks.cls[first]))
            if before == PENDING:
                self._book(step, nodes, tallied)
            else:
                self._book(step, tasks.node[index].tolist() if len(rows) > 1 else [int(tasks.node[first])])
        self.writer.put(tasks.status, index, int(status))
        if PENDING in (before, status):
            self.writer.put(tasks.node, index, nodes if len(rows) > 1 else nodes[0])
        self._count(first, before, status, len(rows))

    def enter(self, row: int, status: TaskStatus, node: int) -> None:
        """Book a task that was not there before, in any state."""
        tasks = self.tables.tasks
        self.writer.put(tasks.status, row, int(status))
        self.writer.put(tasks.node, row, node)
        self.count(row, status, 1)
        if node >= 0:
            self._book(self._step(PENDING, status, int(tasks.cls[row])), [node])

    def rebook(self, row: int, node: int) -> None:
        """Book a task on a node of a fresh node table; its job's sums stand as they are."""
        tasks = self.tables.tasks
        self.writer.put(tasks.node, row, node)
        if node >= 0:
            self._book(self._step(PENDING, int(tasks.status[row]), int(tasks.cls[row])), [node])

    def leave(self, row: int) -> None:
        """Take a task out of every book."""
        tasks = self.tables.tasks
        status, node = int(tasks.status[row]), int(tasks.node[row])
        self.count(row, status, -1)
        if node >= 0:
            self._book(self._step(status, PENDING, int(tasks.cls[row])), [node])

    def _step(self, before: int, after: int, cls: int) -> F64:
        """What a task of the class that moves does to the books of its node (5, R); one that is Pending does nothing
        there."""
        step = self._booked.get((before, after, cls))
        if step is None:
            step = (_BOOKS[after] - _BOOKS[before])[:, None] * self.tables.classes.req[cls]
            self._booked[before, after, cls] = step
        return step

    def _book(self, step: F64, where: Sequence[int], tallied: Tally | None = None) -> None:
        nodes, writer = self.tables.nodes, self.writer
        if len(where) == 1:
            writer.add(nodes.books, where[0], step)
            writer.touch(nodes.changed, [where[0]])
            return
        if tallied is None:
            tallied = tally(where)
        writer.add(nodes.books, tallied.where, tallied.of_each(step))
        writer.touch(nodes.changed, tallied.rows)

    def count(self, row: int, status: int, amount: int) -> None:
        """Add ``amount`` tasks like the one at ``row`` in ``status`` to the sums of its job and sub-job."""
        self._count(row, -1, status, amount)

    def _count(self, row: int, before: int, after: int, amount: int) -> None:
        """Move ``amount`` tasks like the one at ``row`` between states in the sums of their job; -1: from nowhere."""
        tasks, jobs, subs, add = self.tables.tasks, self.tables.jobs, self.tables.subs, self.writer.add
        job, sub = int(tasks.job[row]), int(tasks.sub[row])
        if job < 0:
            return
        moved = _MOVED_ONE[before][after]
        if amount != 1:
            moved = amount * moved
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
