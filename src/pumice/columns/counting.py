"""Handles to one row, and the counting rules that jobs and sub-jobs have in common."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np

from pumice.columns.dtypes import I32
from pumice.columns.tables import Tables
from pumice.model.status import ALLOCATED_STATUSES, STATUS_COUNT, TaskStatus

#: Plain ints for comparisons with arrays: NumPy takes five times as long with a member of an enumeration.
PENDING, ALLOCATED = int(TaskStatus.PENDING), int(TaskStatus.ALLOCATED)
PIPELINED, RELEASING = int(TaskStatus.PIPELINED), int(TaskStatus.RELEASING)
STUCK = int(TaskStatus.STUCK)

#: Masks over states (statuses,), 0 or 1: which states count as ready, as holding resources, as active (holding or
#: promised a place), as valid, as scheduled. int32 and not bool, so that ``counts @ mask`` adds up.
#: Source: Volcano ``JobInfo`` (ReadyTaskNum, ValidTaskNum), and ``ScheduledStatus`` for the last.
READY = np.zeros(STATUS_COUNT, dtype=np.int32)
# With SUCCEEDED: a gang whose first pods have finished is not short of them.
READY[[TaskStatus.BOUND, TaskStatus.BINDING, TaskStatus.RUNNING, TaskStatus.ALLOCATED, TaskStatus.SUCCEEDED]] = 1
HELD = np.zeros(STATUS_COUNT, dtype=np.int32)
HELD[list(ALLOCATED_STATUSES)] = 1
ACTIVE = HELD.copy()
ACTIVE[TaskStatus.PIPELINED] = 1
VALID = READY.copy()
# A waiting pod may still be placed, so only pods that have failed or are leaving make a gang incomplete.
VALID[[TaskStatus.PIPELINED, TaskStatus.PENDING]] = 1
SCHEDULED = np.zeros(STATUS_COUNT, dtype=np.int32)
SCHEDULED[[TaskStatus.RUNNING, TaskStatus.BOUND, TaskStatus.FAILED, TaskStatus.SUCCEEDED]] = 1


def _in_states(mask: I32) -> Callable[[list[int]], int]:
    """Return a function from one row's counts by state to the number of tasks in the states of a mask."""
    # On a list: for a dozen numbers NumPy's overhead for each call is longer than the sum.
    of: Callable[[list[int]], tuple[int, ...]] = itemgetter(*mask.nonzero()[0].tolist())
    return lambda counts: sum(of(counts))


ready_in, scheduled_in = _in_states(READY), _in_states(SCHEDULED)


class Row:
    """A handle to one row of one table.

    It is false if there is no such row (-1), and can index an array that has one value for each row.
    """

    # No cached values: a handle may be kept while the session writes, and has to show the row as it is then.

    __slots__ = ("row", "tables")

    def __init__(self, tables: Tables, row: int) -> None:
        self.tables = tables
        self.row = row

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.row == other.row

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.row))

    def __bool__(self) -> bool:
        return self.row >= 0

    def __index__(self) -> int:
        return self.row

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self, 'key', self.row)!r})"


class Counters(Row):
    """The counting rules that jobs and sub-jobs have in common. Source: Volcano ``JobInfo`` and ``SubJobInfo``."""

    __slots__ = ()

    @property
    def _table(self) -> Any:
        raise NotImplementedError

    @property
    def counts(self) -> I32:
        """The number of tasks in each state. Shape (statuses,)."""
        found: I32 = self._table.counts[self.row]
        return found

    @property
    def min_available(self) -> int:
        """The least number of tasks that must be placed together."""
        return int(self._table.min_available[self.row])

    @property
    def ready_count(self) -> int:
        """The number of tasks that are Bound, Binding, Running, Allocated or Succeeded."""
        return ready_in(self.counts.tolist())

    @property
    def valid_count(self) -> int:
        """The number of tasks that are ready, promised a place, or pending."""
        return int(self.counts @ VALID)

    @property
    def waiting_count(self) -> int:
        """The number of tasks that are promised a place (Pipelined)."""
        return int(self.counts[TaskStatus.PIPELINED])

    @property
    def best_effort_count(self) -> int:
        """The number of pending tasks that request nothing."""
        return int(self._table.best_effort[self.row])

    @property
    def is_ready(self) -> bool:
        """True if the minimum is placed."""
        return self.missing_count <= 0

    @property
    def missing_count(self) -> int:
        """The number of tasks that must still be placed to reach the minimum; 0 or less if it is reached."""
        # Tasks that request nothing count as placed: they fit on any node. Source: Volcano ``JobInfo.IsReady``.
        table, row = self._table, self.row
        return int(table.min_available[row]) - ready_in(table.counts[row].tolist()) - int(table.best_effort[row])

    @property
    def is_pipelined(self) -> bool:
        """True if the minimum is placed or promised a place."""
        return self.waiting_count + self.ready_count + self.best_effort_count >= self.min_available

    @property
    def is_starving(self) -> bool:
        """True if the minimum is neither placed nor promised a place."""
        # Without tasks that request nothing, unlike ``is_pipelined``. Source: Volcano ``JobInfo.IsStarving``.
        return self.waiting_count + self.ready_count < self.min_available
