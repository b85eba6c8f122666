"""Rows of a table together, for hooks that answer for many at once: read by name as arrays. No setters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pumice.columns.counting import READY
from pumice.columns.dtypes import F64, I64, AnyArray, Bool
from pumice.columns.ledger import Tally, tally
from pumice.columns.nodes import FUTURE, IDLE, USED, NodeFacts
from pumice.columns.tables import Tables
from pumice.columns.views import Node


class NodeRows:
    """Some rows of the node table, as arrays. Shape (rows,) or (rows, R).

    With ``after`` the rows are as they would be after that many more tasks of a class were placed on each: a hook over
    rows cannot tell the difference, which is what lets a whole gang be placed with one call.
    """

    __slots__ = ("_after", "_by_amount", "_cls", "rows", "tables")

    def __init__(self, tables: Tables, rows: AnyArray, *, after: F64 | None = None, cls: int = -1) -> None:
        self.tables = tables
        self.rows = rows
        self._after = after
        self._cls = cls
        self._by_amount: F64 | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_real(self) -> bool:
        """Whether these are the rows as they are now."""
        return self._after is None

    def __iter__(self) -> Iterator[Node]:
        """One handle a row; only for rows as they are now."""
        assert self.is_real
        return (Node(self.tables, row) for row in self.rows.tolist())

    @property
    def facts(self) -> NodeFacts:
        return self.tables.nodes.facts

    @property
    def allocatable(self) -> F64:
        return self.tables.nodes.facts.allocatable[self.rows]

    @property
    def view_allocatable(self) -> F64:
        """status.allocatable without oversubscription, as kube-scheduler's plugins see it."""
        return self.tables.nodes.facts.view_allocatable[self.rows]

    def _book(self, book: int, sign: float) -> F64:
        found = self._read(book)
        if self._after is not None:
            found = found + (sign * self._after)[:, None] * self.tables.classes.req[self._cls]
        return found

    def _read(self, book: int) -> F64:
        """One book as it is now (rows, R)."""
        books = self.tables.nodes.books
        found: F64 = books.reshape(-1, books.shape[2]).take(self.rows * books.shape[1] + book, axis=0)
        return found

    def has_room(self, cls: int, book: int) -> Bool:
        """Whether a book (idle or future) has room for one task of a class. Shape (rows,)."""
        asked = self.tables.classes.asked[cls]
        held, found = self._read(book), np.ones(len(self.rows), dtype=bool)
        taken = self.tables.classes.req[self._cls].tolist() if self._after is not None else None
        for dimension, limit in asked:
            room = held[:, dimension]
            if taken is not None:
                room = room - self._after * taken[dimension]
            np.logical_and(found, room > limit, out=found)
        return found

    @property
    def idle(self) -> F64:
        return self._book(IDLE, -1.0)

    @property
    def used(self) -> F64:
        return self._book(USED, 1.0)

    @property
    def future(self) -> F64:
        return self._book(FUTURE, -1.0)

    @property
    def view_by_amount(self) -> F64:
        """``NodeTable.view`` of the rows, one amount after the other (R + 3, rows): requests, those with defaults,
        number of pods."""
        if self._by_amount is not None:
            return self._by_amount
        found = np.ascontiguousarray(self.tables.nodes.view.take(self.rows, axis=0).T)
        if self._after is not None:
            if self.tables.nodes.view_follows:
                found += self.tables.classes.steps[self._cls][:, None] * self._after
            self._by_amount = found  # rows as they would be are made for one question and do not change
        return found

    @property
    def view_pods(self) -> F64:
        """Number of pods on the node in kube-scheduler's view (rows,)."""
        if self._after is None:
            pods: F64 = self.tables.nodes.view[self.rows, -1]
            return pods
        last: F64 = self.view_by_amount[-1]
        return last


class Rows:
    """Some rows of one table."""

    __slots__ = ("rows", "tables")

    def __init__(self, tables: Tables, rows: AnyArray) -> None:
        self.tables = tables
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)


class JobRows(Rows):
    """Some rows of the job table, for hooks that answer for many jobs at once."""

    __slots__ = ()

    @property
    def priority(self) -> I64:
        return self.tables.jobs.priority[self.rows]

    @property
    def creation(self) -> F64:
        return self.tables.jobs.creation[self.rows]

    @property
    def ready(self) -> Bool:
        """IsReady of each."""
        jobs = self.tables.jobs
        have = jobs.counts[self.rows] @ READY + jobs.best_effort[self.rows]
        return np.asarray(have >= jobs.min_available[self.rows])


class TaskRows(Rows):
    """Some rows of the task table, for hooks that order many tasks at once."""

    __slots__ = ()

    @property
    def priority(self) -> I64:
        return self.tables.tasks.priority[self.rows]


class TaskRun:
    """Equal tasks of one job that were placed, or left their nodes, together: ``rows[i]`` on ``nodes[i]``."""

    __slots__ = ("_tally", "nodes", "rows", "tables")

    def __init__(self, tables: Tables, rows: Sequence[int], nodes: Sequence[int]) -> None:
        self.tables = tables
        self.rows = rows
        self.nodes = nodes
        self._tally: Tally | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def job(self) -> int:
        return int(self.tables.tasks.job[self.rows[0]])

    @property
    def sub(self) -> int:
        return int(self.tables.tasks.sub[self.rows[0]])

    @property
    def queue(self) -> int:
        """Row of the job's queue, -1 without."""
        job = self.job
        return int(self.tables.jobs.queue[job]) if job >= 0 else -1

    @property
    def cls(self) -> int:
        return int(self.tables.tasks.cls[self.rows[0]])

    @property
    def req(self) -> F64:
        """Request of one of them. Shape (R,)."""
        return self.tables.classes.req[self.cls]

    @property
    def tally(self) -> Tally:
        """The nodes, and how many of the tasks went to each."""
        if self._tally is None:
            self._tally = tally(self.nodes)
        return self._tally
