"""The books: every move of a task between states, with what it means for its node, its job and its sub-job.

Store and session move tasks through the same code; the store with a writer that just writes, the session through its
journal. Which moves a session may make is its dialect's to say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from pumice.columns.column import Column
from pumice.columns.counting import PENDING, RELEASING
from pumice.columns.dtypes import F64, I32, AnyArray
from pumice.columns.placement import Placement
from pumice.columns.runs import TaskRun
from pumice.columns.tables import Tables
from pumice.columns.tasks import GATED
from pumice.model.status import ALLOCATED_STATUSES, STATUS_COUNT, TaskStatus

if TYPE_CHECKING:
    from pumice.columns.gpus.devices import DeviceLedger

#: What one task in a state does to its node: idle, used, releasing, pipelined, future (rows of ``NodeTable.books``),
#: in requests. Source: Volcano node accounting (AddTask, RemoveTask).
BOOKS: F64 = np.zeros((STATUS_COUNT, 5))
for _status in TaskStatus:
    BOOKS[_status] = (-1, 1, 0, 0, -1)
BOOKS[TaskStatus.PENDING] = 0
BOOKS[TaskStatus.RELEASING] = (-1, 1, 1, 0, 0)
BOOKS[TaskStatus.PIPELINED] = (0, 0, 0, 1, -1)

#: By state before (last: from nowhere) and after: what one task that moves does to the counts of its job.
_MOVED: I32 = np.zeros((STATUS_COUNT + 1, STATUS_COUNT, STATUS_COUNT), dtype=np.int32)
for _status in TaskStatus:
    _MOVED[:, _status, _status] += 1
    _MOVED[_status, :, _status] -= 1
_MOVED_ONE = [list(after) for after in _MOVED]
#: By state, and last from nowhere: whether a task holds resources, and whether it waits.
_HOLDS = [*(float(s in ALLOCATED_STATUSES) for s in TaskStatus), 0.0]
_WAITS = [*(int(s is TaskStatus.PENDING) for s in TaskStatus), 0]


class Accounting(Struct, frozen=True, dict=True):
    """What a dialect says about its tasks. ``moves``: the states that a session may move a task to, by its present one;
    a move that is not in it is an error of an action or a plugin. ``books`` (statuses, 5): as ``BOOKS``.
    ``comes_back``: whether evicted tasks may stay after all, or be promised other nodes."""

    moves: Mapping[TaskStatus, frozenset[TaskStatus]] = {}
    books: F64 = field(default_factory=lambda: BOOKS)
    comes_back: bool = False

    def also(self, other: Accounting) -> Accounting:
        """With the moves of another dialect besides, for sessions whose actions are of both."""
        if other is self:
            return self
        moves = {status: to | other.moves.get(status, frozenset()) for status, to in self.moves.items()}
        return replace(self, moves=moves, comes_back=self.comes_back or other.comes_back)

    @cached_property
    def legal(self) -> dict[int, frozenset[int]]:
        """The moves as numbers, which are quicker to look up."""
        return {int(status): frozenset(map(int, to)) for status, to in self.moves.items()}

    @cached_property
    def steps(self) -> list[list[F64 | None]]:
        """By state before and after: what one task that moves does to its node's books (5, 1); None: nothing."""
        return [
            [None if (after == before).all() else (after - before)[:, None] for after in self.books]
            for before in self.books
        ]


class Amounts(NamedTuple):
    """Of some tasks of one job: how many ask for nothing, how many others no gate holds, and what all ask for together
    (R,)."""

    empty: int
    waits: int
    total: F64


class Writes(Protocol):
    """Who carries out a write: a session's journal, or the store's writer, which remembers nothing."""

    def put(self, column: Column[AnyArray], index: Any, value: Any) -> None: ...
    def add(self, column: Column[AnyArray], index: Any, change: Any) -> None: ...


class Ledger:
    """Moves tasks and keeps every sum that follows from it. Tasks that are given together are of one sub-job and in one
    state; rows without nodes are equal, of one class too."""

    __slots__ = ("_comes_back", "_moves", "_steps", "devices", "tables", "writer")

    def __init__(self, tables: Tables, writer: Writes, accounting: Accounting) -> None:
        self.tables = tables
        self.writer = writer
        self.devices: DeviceLedger | None = None  # a language that shares GPUs opens it
        self._moves, self._steps, self._comes_back = accounting.legal, accounting.steps, accounting.comes_back

    def move(self, run: TaskRun, status: TaskStatus) -> None:
        """Move tasks, which are all of one sub-job and in one state, to ``status`` on the nodes of the run (-1: none).
        A task that is on a node already must stay there or go to -1.

        Raises: AssertionError for tasks that are not, or a move that the dialect does not have.
        """
        tasks, put = self.tables.tasks, self.writer.put
        before = int(tasks.status[run.rows[0]])
        assert status in self._moves[before], (
            f"illegal move of {tasks.pods[run.rows[0]].key}: {TaskStatus(before).label} -> {status.label}"
        )
        assert run.is_of_one_part, f"tasks of several sub-jobs, or states, are moved with {tasks.pods[run.rows[0]].key}"
        step = self._steps[before][status]
        if step is not None or self.devices is not None:
            there = run if before == PENDING else TaskRun.where_they_are(self.tables, run.rows)
            if self.devices is not None:
                self.devices.moved(run.rows, there.nodes, before, int(status))
            if step is not None:
                self._book(there, step)
        put(tasks["status"], run.index, int(status))
        if PENDING in (before, status):
            put(tasks["node"], run.index, run.nodes[0] if len(run) == 1 else run.nodes)
        if self._comes_back and status == RELEASING:
            put(tasks["was"], run.index, before)
        self._count(run.job, run.sub, before, status, len(run), lambda: self._amounts(run))

    def promise_another(self, run: TaskRun) -> None:
        """Promise tasks that leave their nodes those of the run. They stay in the books of the nodes that they
        leave."""
        tasks, put = self.tables.tasks, self.writer.put
        assert run.is_of_one_part, f"tasks of several sub-jobs, or states, are moved with {tasks.pods[run.rows[0]].key}"
        put(tasks["leaving"], run.index, tasks.node[run.index])
        put(tasks["node"], run.index, run.nodes[0] if len(run) == 1 else run.nodes)
        put(tasks["status"], run.index, int(TaskStatus.PIPELINED))
        step = self._steps[PENDING][TaskStatus.PIPELINED]
        assert step is not None
        if self.devices is not None:
            self.devices.promised(run.rows, run.nodes)
        self._book(run, step)
        self._count(run.job, run.sub, RELEASING, TaskStatus.PIPELINED, len(run), lambda: self._amounts(run))

    def take_back_promise(self, row: int) -> None:
        """A task that was promised another node only leaves its own again."""
        tasks, put = self.tables.tasks, self.writer.put
        step = self._steps[TaskStatus.PIPELINED][PENDING]
        assert step is not None
        run = TaskRun(self.tables, Placement([row], [int(tasks.node[row])]))
        if self.devices is not None:
            self.devices.promise_taken_back(row)
        self._book(run, step)
        put(tasks["node"], row, int(tasks.leaving[row]))
        put(tasks["leaving"], row, -1)
        put(tasks["status"], row, RELEASING)
        self._count(run.job, run.sub, TaskStatus.PIPELINED, RELEASING, 1, lambda: self._amounts(run))

    def hold(self, run: TaskRun) -> None:
        """Put pending tasks on their nodes and book them there only, for as long as it takes to choose nodes for
        others."""
        self.writer.put(self.tables.tasks["node"], run.index, run.nodes[0] if len(run) == 1 else run.nodes)
        step = self._steps[PENDING][TaskStatus.ALLOCATED]
        if step is not None:
            self._book(run, step)

    def _amounts(self, run: TaskRun) -> Amounts:
        if len(run.classes) == 1:
            return self._equal(run.rows[0], len(run))
        tasks = self.tables.tasks
        empty = tasks.best_effort[run.index]
        waits = ~empty & (tasks.gate[run.index] < GATED)
        return Amounts(int(empty.sum()), int(waits.sum()), run.total)

    def _equal(self, row: int, count: int) -> Amounts:
        """The amounts of so many tasks like the one at ``row``."""
        tasks = self.tables.tasks
        empty = bool(tasks.best_effort[row])
        waits = not empty and tasks.gate[row] < GATED
        return Amounts(count * empty, count * waits, count * self.tables.classes.req[tasks.cls[row]])

    def enter(self, rows: Sequence[int]) -> TaskRun | None:
        """Book equal tasks that were not there before, in the state and on the nodes that their rows say. Answers which
        of them the books of nodes have now, None: none."""
        status = int(self.tables.tasks.status[rows[0]])
        self.count(rows[0], status, len(rows))
        return self._book_where_they_are(rows, self._steps[PENDING][status])

    def leave(self, rows: Sequence[int]) -> TaskRun | None:
        """Take equal tasks out of every book; their rows stay as they are. Answers which of them books of nodes had,
        None: none."""
        status = int(self.tables.tasks.status[rows[0]])
        self.count(rows[0], status, -len(rows))
        return self._book_where_they_are(rows, self._steps[status][PENDING])

    def shift(self, rows: Sequence[int], status: TaskStatus) -> TaskRun | None:
        """Move equal tasks to another state, whatever the dialect's moves, on the nodes where they are. Answers of
        which of them the books of nodes say something else now, None: of none."""
        tasks, before = self.tables.tasks, int(self.tables.tasks.status[rows[0]])
        booked = self._book_where_they_are(rows, self._steps[before][status])
        self.writer.put(tasks["status"], rows if len(rows) > 1 else rows[0], int(status))
        row, count = rows[0], len(rows)
        self._count(int(tasks.job[row]), int(tasks.sub[row]), before, status, count, lambda: self._equal(row, count))
        return booked

    def _book_where_they_are(self, rows: Sequence[int], step: F64 | None) -> TaskRun | None:
        """Add ``step`` for each of some equal tasks to the books of its node, if it is on one; and answer those."""
        if step is None:
            return None
        run = TaskRun.on_nodes(self.tables, rows, self.tables.tasks.node[list(rows)])
        if not run:
            return None
        self._book(run, step)
        return run

    def _book(self, run: TaskRun, step: F64) -> None:
        nodes, amounts = run.by_node(self.tables.classes.req)
        self.writer.add(self.tables.nodes["books"], nodes, step * amounts[..., None, :])

    def rebook(self, rows: AnyArray) -> None:
        """Book all of these tasks, of whatever kind, on nodes whose books are empty; jobs' sums stand."""
        tables, tasks = self.tables, self.tables.tasks
        books, totals = tables.nodes["books"], np.zeros_like(tables.nodes.books)
        steps = np.array([np.zeros((5, 1)) if step is None else step for step in self._steps[PENDING]])
        for few in np.array_split(rows, len(rows) // 65_536 + 1):
            step, req = steps[tasks.status[few]], tables.classes.req[tasks.cls[few]]
            np.add.at(totals, tasks.node[few], step * req[:, None])
        self.writer.add(books, slice(None), totals)

    def count(self, row: int, status: int, amount: int) -> None:
        """Add ``amount`` tasks like the one at ``row`` in ``status`` to the sums of its job and sub-job."""
        job, sub = int(self.tables.tasks.job[row]), int(self.tables.tasks.sub[row])
        self._count(job, sub, -1, status, amount, lambda: self._equal(row, amount))

    def _count(self, job: int, sub: int, before: int, after: int, tasks: int, amounts: Callable[[], Amounts]) -> None:
        """Move tasks between states in the sums of their job; -1: from nowhere."""
        jobs, subs, add = self.tables.jobs, self.tables.subs, self.writer.add
        if job < 0:
            return
        moved = _MOVED_ONE[before][after]
        if tasks != 1:
            moved = tasks * moved
        add(jobs["counts"], job, moved)
        add(subs["counts"], sub, moved)
        holds, waiting = _HOLDS[after] - _HOLDS[before], _WAITS[after] - _WAITS[before]
        if not holds and not waiting:
            return
        empty, waits, total = amounts()
        if holds:
            add(jobs["allocated"], job, holds * total)
        if waiting and empty:
            add(jobs["best_effort"], job, waiting * empty)
            add(subs["best_effort"], sub, waiting * empty)
        if waiting and waits:
            add(jobs["waits"], job, waiting * waits)
