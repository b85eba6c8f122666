"""Which tasks use a claim, and how many of them are placed.

Thousands of pods may name one claim, and each question about one of them counts the others. So it counts arrays.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import numpy as np

from pumice.columns.dtypes import I64, AnyArray, Bool
from pumice.columns.tables import Tables
from pumice.model.devices.claims import ResourceClaim
from pumice.model.status import TaskStatus

# As plain numbers, since NumPy takes long to compare with members of an enumeration.
RELEASING, PIPELINED = int(TaskStatus.RELEASING), int(TaskStatus.PIPELINED)
_PLACED = (TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING)
_IS_PLACED = np.array([status in _PLACED for status in TaskStatus])
_IS_LEAVING = np.array([status in (RELEASING, PIPELINED) for status in TaskStatus])


class ClaimUsers:
    """The tasks that use each of ``claims``. ``of_task``: the claims of each task that has any. ``of_group``: claims
    that belong to a group of pods. Claims are indices into ``claims``."""

    def __init__(
        self,
        tables: Tables,
        claims: Sequence[ResourceClaim],
        of_task: Mapping[int, tuple[int, ...]],
        of_group: Container[int],
    ) -> None:
        self._tables, self._claims, self._of_group = tables, claims, of_group
        users: list[list[int]] = [[] for _ in claims]
        for row, numbers in of_task.items():
            for number in numbers:
                users[number].append(row)
        self._rows: list[I64] = [np.array(rows, dtype=np.int64) for rows in users]
        self._others: dict[int, int] = {}

    def is_placed(self, row: int) -> bool:
        """Return True if a task is placed or pipelined."""
        status = int(self._tables.tasks.status[row])
        return status == PIPELINED or bool(_IS_PLACED[status])

    def reserved(self, number: int) -> int:
        """Return how many pods a claim is reserved for, including those of this session."""
        # Reserved for the group, however many pods it has.
        if number in self._of_group:
            return 1
        if number not in self._others:
            pods = self._tables.tasks.pods
            there = {pods[row].uid for row in self._rows[number].tolist()}
            # Pods of the session are counted by their status; the API server's list may still name those that have
            # left it.
            self._others[number] = sum(uid not in there for uid in self._claims[number].reserved_for)
        status = self._tables.tasks.status[self._rows[number]]
        return int(np.count_nonzero(_IS_PLACED[status] | (status == PIPELINED))) + self._others[number]

    def are_leaving(self, number: int) -> bool:
        """Return True if some task is about to leave, and all others have no place."""
        rows = self._rows[number]
        return bool(_IS_LEAVING[self._tables.tasks.status[rows]].any()) and not self._stay(rows).any()

    def stay_without(self, row: int, number: int) -> bool:
        """Return True if a task other than this one is placed and not about to leave."""
        rows = self._rows[number]
        return bool((self._stay(rows) & (rows != row)).any())

    def is_alone(self, row: int, number: int) -> bool:
        """Return True if a claim is for one task alone, which is not placed."""
        rows = self._rows[number]
        return (
            len(rows) == 1
            and int(rows[0]) == row
            and number not in self._of_group
            and not self._claims[number].reserved_for
            and int(self._tables.tasks.status[row]) not in (RELEASING, PIPELINED)
        )

    def _stay(self, rows: AnyArray) -> Bool:
        """Return which tasks are placed and not about to leave. Shape (rows,)."""
        tasks = self._tables.tasks
        status = tasks.status[rows]
        found: Bool = _IS_PLACED[status] | ((status == PIPELINED) & (tasks.leaving[rows] < 0))
        return found
