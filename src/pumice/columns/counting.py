"""What one row is, and the counting rules that jobs and sub-jobs share."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np

from pumice.columns.dtypes import I32
from pumice.columns.tables import Tables
from pumice.model.status import ALLOCATED_STATUSES, STATUS_COUNT, TaskStatus

#: As plain numbers, to compare arrays with: NumPy takes five times as long over a member of an enumeration.
PENDING, ALLOCATED = int(TaskStatus.PENDING), int(TaskStatus.ALLOCATED)
PIPELINED, RELEASING = int(TaskStatus.PIPELINED), int(TaskStatus.RELEASING)

#: Masks over states (statuses,), 0 or 1: what counts as ready, as holding resources, as active, as valid, as scheduled.
#: Source: Volcano.
READY = np.zeros(STATUS_COUNT, dtype=np.int32)
READY[[TaskStatus.BOUND, TaskStatus.BINDING, TaskStatus.RUNNING, TaskStatus.ALLOCATED, TaskStatus.SUCCEEDED]] = 1
HELD = np.zeros(STATUS_COUNT, dtype=np.int32)
HELD[list(ALLOCATED_STATUSES)] = 1
ACTIVE = HELD.copy()  # holds a place, or is promised one
ACTIVE[TaskStatus.PIPELINED] = 1
VALID = READY.copy()
VALID[[TaskStatus.PIPELINED, TaskStatus.PENDING]] = 1
SCHEDULED = np.zeros(STATUS_COUNT, dtype=np.int32)
SCHEDULED[[TaskStatus.RUNNING, TaskStatus.BOUND, TaskStatus.FAILED, TaskStatus.SUCCEEDED]] = 1


def _in_states(mask: I32) -> Callable[[list[int]], int]:
    """How many tasks are in the states of a mask, from the counts of one row by state, as a list: NumPy takes longer
    over so few."""
    of: Callable[[list[int]], tuple[int, ...]] = itemgetter(*mask.nonzero()[0].tolist())
    return lambda counts: sum(of(counts))


ready_in, scheduled_in = _in_states(READY), _in_states(SCHEDULED)


class Row:
    """One row of one table. It is false where there is none (row -1), and can be used as the index of an array that has
    a value for each row."""

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
    """The counting rules that jobs and sub-jobs share. Source: Volcano JobInfo and SubJobInfo."""

    __slots__ = ()

    @property
    def _table(self) -> Any:
        raise NotImplementedError

    @property
    def counts(self) -> I32:
        """Tasks by state, (statuses,)."""
        found: I32 = self._table.counts[self.row]
        return found

    @property
    def min_available(self) -> int:
        """How many of its tasks must be placed at least."""
        return int(self._table.min_available[self.row])

    @property
    def ready_count(self) -> int:
        """Bound, Binding, Running, Allocated and Succeeded."""
        return ready_in(self.counts.tolist())

    @property
    def waiting_count(self) -> int:
        """Tasks that are promised a place."""
        return int(self.counts[TaskStatus.PIPELINED])

    @property
    def best_effort_count(self) -> int:
        """Pending tasks that ask for nothing."""
        return int(self._table.best_effort[self.row])

    @property
    def is_ready(self) -> bool:
        """Whether its minimum is placed."""
        return self.missing_count <= 0

    @property
    def missing_count(self) -> int:
        """How many more tasks must be placed until the minimum is ready; <= 0 when it is."""
        table, row = self._table, self.row
        return int(table.min_available[row]) - ready_in(table.counts[row].tolist()) - int(table.best_effort[row])

    @property
    def is_pipelined(self) -> bool:
        """Whether its minimum is placed or promised a place."""
        return self.waiting_count + self.ready_count + self.best_effort_count >= self.min_available

    @property
    def is_starving(self) -> bool:
        """Whether its minimum is neither placed nor promised."""
        return self.waiting_count + self.ready_count < self.min_available
