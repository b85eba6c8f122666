"""The ledger: moves tasks between states and updates the sums of their nodes, jobs and sub-jobs.

The store and sessions share this code. The store passes a writer without an undo log, a session passes its journal.
Which moves are legal in a session is defined by the policy language (``Accounting``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from pumice.algorithms.sums import sums_by
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

#: How many requests one task in a state adds to each book of its node: idle, used, releasing, pipelined, future.
#: Source: Volcano ``NodeInfo.AddTask`` and ``RemoveTask``.
BOOKS: F64 = np.zeros((STATUS_COUNT, 5))
for _status in TaskStatus:
    BOOKS[_status] = (-1, 1, 0, 0, -1)
BOOKS[TaskStatus.PENDING] = 0
BOOKS[TaskStatus.RELEASING] = (-1, 1, 1, 0, 0)
BOOKS[TaskStatus.PIPELINED] = (0, 0, 0, 1, -1)

#: By state before (the last index is that of a new task) and state after: the change of a job's counts.
_MOVED: I32 = np.zeros((STATUS_COUNT + 1, STATUS_COUNT, STATUS_COUNT), dtype=np.int32)
for _status in TaskStatus:
    _MOVED[:, _status, _status] += 1
    _MOVED[_status, :, _status] -= 1
# Lists of rows: two lookups in lists are faster than one index of two numbers into an array.
_MOVED_ONE = [list(after) for after in _MOVED]
#: By state (the last index is that of a new task): 1 if a task holds resources, and 1 if it is pending.
_HOLDS = [*(float(s in ALLOCATED_STATUSES) for s in TaskStatus), 0.0]
_WAITS = [*(int(s is TaskStatus.PENDING) for s in TaskStatus), 0]


class Accounting(Struct, frozen=True, dict=True):
    """The rules of a policy language for tasks.

    ``moves`` has, for each state, the states to which a session may move a task; any other move is an error of an
    action
    or a plugin. ``books`` (statuses, 5) is like ``BOOKS``. ``comes_back``: evicted tasks may stay after all, or be
    promised other nodes, in the same session.
    """

    moves: Mapping[TaskStatus, frozenset[TaskStatus]] = {}
    books: F64 = field(default_factory=lambda: BOOKS)
    comes_back: bool = False

    def also(self, other: Accounting) -> Accounting:
        """Return these rules with the moves of another language added, for sessions with actions of both."""
        if other is self:
            return self
        moves = {status: to | other.moves.get(status, frozenset()) for status, to in self.moves.items()}
        return replace(self, moves=moves, comes_back=self.comes_back or other.comes_back)

    @cached_property
    def legal(self) -> dict[int, frozenset[int]]:
        """``moves`` as plain numbers."""
        # Hashing an int takes a fraction of the time of hashing a member of an enumeration.
        return {int(status): frozenset(map(int, to)) for status, to in self.moves.items()}

    @cached_property
    def steps(self) -> list[list[F64 | None]]:
        """By state before and after: the change of a node's books in requests (5, 1), or None for no change."""
        # None and not zeros, so that a move between states with equal books (Allocated to Binding) writes nothing.
        return [
            [None if (after == before).all() else (after - before)[:, None] for after in self.books]
            for before in self.books
        ]


class Amounts(NamedTuple):
    """Sums over some tasks of one job: how many request nothing, how many of the others have no gate of their own, and
    the total of the requests (R,)."""

    empty: int
    waits: int
    total: F64


class Writes(Protocol):
    """What carries out writes: a session's journal, or the store's writer, which has no undo log."""

    def put(self, column: Column[AnyArray], index: Any, value: Any) -> None: ...
    def add(self, column: Column[AnyArray], index: Any, change: Any) -> None: ...


class Ledger:
    """Moves tasks and keeps the sums that depend on their states.

    Tasks of one call must be of one sub-job and in one state. Calls that take rows without nodes require tasks of one
    class too.
    """

    __slots__ = ("_comes_back", "_moves", "_steps", "devices", "tables", "writer")

    def __init__(self, tables: Tables, writer: Writes, accounting: Accounting) -> None:
        self.tables = tables
        self.writer = writer
        self.devices: DeviceLedger | None = None  # set by languages in which pods share GPUs
        self._moves, self._steps, self._comes_back = accounting.legal, accounting.steps, accounting.comes_back

    def move(self, run: TaskRun, status: TaskStatus) -> None:
        """Move tasks to ``status`` on the nodes of the run (-1: none).

        A task that is on a node already must stay there or move to -1.

        Raises: AssertionError if the tasks are not of one sub-job and in one state, or the move is not legal.
        """
        tasks, put = self.tables.tasks, self.writer.put
        before = int(tasks.status[run.rows[0]])
        assert status in self._moves[before], (
            f"illegal move of {tasks.pods[run.rows[0]].key}: {TaskStatus(before).label} -> {status.label}"
        )
        assert run.is_of_one_part, f"tasks of several sub-jobs, or states, are moved with {tasks.pods[run.rows[0]].key}"
        step = self._steps[before][status]
        if step is not None or self.devices is not None:
            # A task that returns to pending is given with node -1, so its books are found by the node in its row.
            there = run if before == PENDING else TaskRun.where_they_are(self.tables, run.rows)
            if self.devices is not None:
                self.devices.moved(run.rows, there.nodes, before, int(status))
            if step is not None:
                self._book(there, step)
        put(tasks["status"], run.index, int(status))
        # Only moves from and to pending change the node. Other moves skip the write and its entry in the journal.
        if PENDING in (before, status):
            put(tasks["node"], run.index, run.nodes[0] if len(run) == 1 else run.nodes)
        if self._comes_back and status == RELEASING:
            put(tasks["was"], run.index, before)
        self._count(run.job, run.sub, before, status, len(run), lambda: self._amounts(run))

    def promise_another(self, run: TaskRun) -> None:
        """Promise other nodes, those of the run, to tasks that are being evicted."""
        # They stay in the books of the nodes that they leave: their pods hold resources there until they have ended.
        tasks, put = self.tables.tasks, self.writer.put
        assert run.is_of_one_part, f"tasks of several sub-jobs, or states, are moved with {tasks.pods[run.rows[0]].key}"
        put(tasks["leaving"], run.index, tasks.node[run.index])
        put(tasks["node"], run.index, run.nodes[0] if len(run) == 1 else run.nodes)
        put(tasks["status"], run.index, int(TaskStatus.PIPELINED))
        # On the new nodes they are booked like pending tasks that are pipelined, hence not the step from releasing.
        step = self._steps[PENDING][TaskStatus.PIPELINED]
        assert step is not None
        if self.devices is not None:
            self.devices.promised(run.rows, run.nodes)
        self._book(run, step)
        self._count(run.job, run.sub, RELEASING, TaskStatus.PIPELINED, len(run), lambda: self._amounts(run))

    def take_back_promise(self, row: int) -> None:
        """Undo ``promise_another`` for one task: it is being evicted from its own node, without a promise."""
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
        """Book pending tasks on nodes for a while, so that nodes for further tasks can be chosen."""
        # The status and the sums of jobs stay: they are not asked while nodes are chosen, and the caller rolls back.
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
        """Return the amounts of so many tasks like the one at ``row``."""
        tasks = self.tables.tasks
        empty = bool(tasks.best_effort[row])
        waits = not empty and tasks.gate[row] < GATED
        return Amounts(count * empty, count * waits, count * self.tables.classes.req[tasks.cls[row]])

    def enter(self, rows: Sequence[int]) -> TaskRun | None:
        """Add equal new tasks to all sums, in the state and on the nodes of their rows.

        Return those that are in the books of nodes now, or None.
        """
        status = int(self.tables.tasks.status[rows[0]])
        self.count(rows[0], status, len(rows))
        return self._book_where_they_are(rows, self._steps[PENDING][status])

    def leave(self, rows: Sequence[int]) -> TaskRun | None:
        """Remove equal tasks from all sums. Their rows stay as they are.

        Return those that were in the books of nodes, or None.
        """
        status = int(self.tables.tasks.status[rows[0]])
        self.count(rows[0], status, -len(rows))
        return self._book_where_they_are(rows, self._steps[status][PENDING])

    def shift(self, rows: Sequence[int], status: TaskStatus) -> TaskRun | None:
        """Move equal tasks to another state on their present nodes.

        Return those for which the books of nodes changed, or None.
        """
        # Legal moves are not checked: the store reports what has happened in the cluster.
        tasks, before = self.tables.tasks, int(self.tables.tasks.status[rows[0]])
        booked = self._book_where_they_are(rows, self._steps[before][status])
        self.writer.put(tasks["status"], rows if len(rows) > 1 else rows[0], int(status))
        row, count = rows[0], len(rows)
        self._count(int(tasks.job[row]), int(tasks.sub[row]), before, status, count, lambda: self._equal(row, count))
        return booked

    def _book_where_they_are(self, rows: Sequence[int], step: F64 | None) -> TaskRun | None:
        """Add ``step`` to the books of nodes for each of some equal tasks that is on a node, and return those tasks."""
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
        """Add tasks of any class and state to nodes whose books are empty. Sums of jobs are not changed."""
        # For new node facts, after which all books are made again: one write, instead of one for each task.
        tables, tasks = self.tables, self.tables.tasks
        books, nodes, width = tables.nodes["books"], len(tables.nodes.facts), len(tables.axis)
        totals = np.zeros((nodes, 5 * width))
        steps = np.array([np.zeros((5, 1)) if step is None else step for step in self._steps[PENDING]])
        # In slices, for each makes a temporary array (tasks, 5, R).
        for few in np.array_split(rows, len(rows) // 65_536 + 1):
            step, req = steps[tasks.status[few]], tables.classes.req[tasks.cls[few]]
            totals += sums_by(tasks.node[few], (step * req[:, None]).reshape(-1, 5 * width), nodes)
        self.writer.add(books, slice(None), totals.reshape(nodes, 5, width))

    def count(self, row: int, status: int, amount: int) -> None:
        """Add ``amount`` tasks (negative: remove) like the one at ``row``, in ``status``, to the sums of its job."""
        job, sub = int(self.tables.tasks.job[row]), int(self.tables.tasks.sub[row])
        self._count(job, sub, -1, status, amount, lambda: self._equal(row, amount))

    def _count(self, job: int, sub: int, before: int, after: int, tasks: int, amounts: Callable[[], Amounts]) -> None:
        """Move tasks between states in the sums of their job and sub-job. ``before`` is -1 for new tasks."""
        # ``amounts`` is a function because most moves (Binding to Bound, say) change counts only and do not need it.
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
