"""A statement: operations that take effect in the session at once and in the cluster only at commit.

Undo is physical: the journal puts back what every write replaced. Commit submits in order; a decision that the planner
refuses is undone alone. Source: Volcano Statement (operations, order of commit and discard, last transaction).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from pumice.columns.views import Node, Task
from pumice.framework import points
from pumice.model.decisions import Bind, Evict, Refusal
from pumice.model.status import TaskStatus

if TYPE_CHECKING:
    from pumice.framework.session import Session


class Kind(IntEnum):
    ALLOCATE = 0
    PIPELINE = 1
    EVICT = 2


_AFTER = {Kind.ALLOCATE: TaskStatus.ALLOCATED, Kind.PIPELINE: TaskStatus.PIPELINED, Kind.EVICT: TaskStatus.RELEASING}


class Operation(NamedTuple):
    """Equal tasks moved together; ``nodes[i]`` is where ``rows[i]`` goes or, for an eviction, comes from."""

    kind: Kind
    rows: list[int]
    nodes: list[int]
    reason: str = ""
    evicted: bool = False


class Mark(NamedTuple):
    """A point to roll back to."""

    journal: int
    operations: int


Plan = tuple[Operation, ...]


class Trial:
    """Rolled back at the end of its block unless ``keep`` was called."""

    __slots__ = ("kept",)

    def __init__(self) -> None:
        self.kept = False

    def keep(self) -> None:
        self.kept = True


class Statement:
    """Use as a context manager: it leaves no trace unless committed or left standing."""

    __slots__ = ("_closed", "_ssn", "_start", "operations")

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self.operations: list[Operation] = []
        self._start = Mark(ssn.journal.mark(), 0)
        self._closed = False
        ssn.open_statements += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._closed:
            self.discard()

    # -- operations ---------------------------------------------------------------------------------------------------

    def allocate(self, rows: list[int], nodes: list[int]) -> Refusal | None:
        """Place equal pending tasks of one sub-job on idle resources. A refusal of an event handler undoes the whole
        call."""
        return self._place(Operation(Kind.ALLOCATE, rows, nodes))

    def pipeline(self, rows: list[int], nodes: list[int], *, evicted: bool = False) -> Refusal | None:
        """Promise equal pending tasks the resources that are being released; ``evicted``: some victim left for them."""
        return self._place(Operation(Kind.PIPELINE, rows, nodes, evicted=evicted))

    def _place(self, op: Operation) -> Refusal | None:
        ssn, before = self._ssn, self.mark()
        run = ssn.run_of(op.rows, op.nodes)
        ssn.ledger.move(op.rows, _AFTER[op.kind], op.nodes, run.tally if len(op.rows) > 1 else None)
        if op.kind is Kind.PIPELINE:
            ssn.futures_differ = True
            if op.evicted:
                ssn.journal.put(ssn.tables.tasks.evicted_for, op.rows, True)
        ssn.touched[ssn.tables.tasks.job[op.rows[0]]] = True
        self.operations.append(op)
        refusal: Refusal | None = ssn.ask(points.on_allocate, run)
        if refusal is not None:
            self.rollback(before, remember=False)
        return refusal

    def evict(self, row: int, reason: str) -> None:
        """Take a task off its node, once this is committed. Never fails."""
        ssn = self._ssn
        node = int(ssn.tables.tasks.node[row])
        ssn.ledger.move([row], TaskStatus.RELEASING, [node])
        ssn.futures_differ = True
        ssn.touched[ssn.tables.tasks.job[row]] = True
        self.operations.append(Operation(Kind.EVICT, [row], [node], reason))
        ssn.ask(points.on_deallocate, ssn.run_of([row], [node]))

    # -- undo ---------------------------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        return Mark(self._ssn.journal.mark(), len(self.operations))

    def rollback(self, mark: Mark, *, remember: bool = True) -> None:
        """Undo everything after the mark, newest first, byte for byte.

        ``remember`` notes for each task where the undone transaction had put it (Volcano's LastTransaction).
        """
        ssn = self._ssn
        undone = self.operations[mark.operations :]
        del self.operations[mark.operations :]
        tasks = ssn.tables.tasks
        for op in reversed(undone):
            if remember:
                tasks.last_status[op.rows] = _AFTER[op.kind]
                tasks.last_node[op.rows] = op.nodes
                tasks.last_evicted[op.rows] = op.evicted
            point = points.on_allocate if op.kind is Kind.EVICT else points.on_deallocate
            for hook in ssn.told_by_inverse(point):
                hook(ssn.run_of(op.rows, op.nodes))
        ssn.journal.rollback(mark.journal)

    @contextmanager
    def trial(self) -> Iterator[Trial]:
        """A block whose operations are rolled back unless it calls ``keep``. Nests to any depth."""
        mark, trial = self.mark(), Trial()
        try:
            yield trial
        finally:
            if not trial.kept:
                self.rollback(mark)

    def discard(self) -> None:
        """Undo all of it."""
        assert not self._closed, "a statement ends once"
        self.rollback(self._start)
        self._close()

    # -- plans --------------------------------------------------------------------------------------------------------

    def save(self, since: Mark | None = None) -> Plan:
        """The operations (after ``since``) as a value, to be recovered later."""
        return tuple(self.operations[since.operations if since else 0 :])

    def recover(self, plan: Plan) -> Refusal | None:
        """Do the operations of a plan again. The first refusal ends it; what was done before stays."""
        for op in plan:
            if op.kind is Kind.EVICT:
                self.evict(op.rows[0], op.reason)
                continue
            refusal = self._place(op)
            if refusal is not None:
                return refusal
        return None

    def merge(self, other: Statement) -> None:
        """Take over another statement's operations, which then has none; undo reaches back to whichever began
        first."""
        self._start = Mark(min(self._start.journal, other._start.journal), 0)
        self.operations += other.operations
        other.operations = []
        other._close()

    # -- the end ------------------------------------------------------------------------------------------------------

    def commit(self) -> list[str]:
        """Submit every operation in order. Returns the keys of pods whose decision was refused; those alone are
        undone."""
        ssn = self._ssn
        tasks = ssn.tables.tasks
        refused: list[str] = []
        ssn.standing += len(self.operations)
        for op in self.operations:
            tasks.last_status[op.rows] = -1
            if op.kind is Kind.ALLOCATE:
                refused += self._bind(op.rows, op.nodes)
            elif op.kind is Kind.EVICT:
                refused += self._evict(op)
        self.operations = []
        self._close()
        return refused

    def leave_standing(self) -> None:
        """End without commit and without undo: the effects stay for the rest of the session and nothing is sent."""
        self._ssn.standing += len(self.operations)
        self._close()

    def _bind(self, rows: Sequence[int], nodes: Sequence[int]) -> list[str]:
        ssn = self._ssn
        tasks, names = ssn.tables.tasks, ssn.tables.nodes.facts.names
        job = ssn.tables.jobs.uids[tasks.job[rows[0]]]
        submit, has_context = ssn.planner.submit, ssn.has(points.bind_context)
        refused: list[int] = []
        for row, node in zip(rows, nodes, strict=True):
            pod = tasks.pods[row]
            bind = Bind(pod.key, pod.uid, names[node], job)
            if has_context:
                bind = bind._replace(
                    context=ssn.ask(points.bind_context, Task(ssn.tables, row), Node(ssn.tables, node))
                )
            if (refusal := submit(bind)) is not None:
                refused.append(row)
                ssn.tell(pod.key, "bind refused", refusal.reason)
        taken = [(row, node) for row, node in zip(rows, nodes, strict=True) if row not in refused] if refused else None
        if taken is None:
            ssn.ledger.move(rows, TaskStatus.BINDING, nodes)
        elif taken:
            ssn.ledger.move([row for row, _ in taken], TaskStatus.BINDING, [node for _, node in taken])
        for row in refused:
            self._undo_one(row, TaskStatus.PENDING, points.on_deallocate)
        return [tasks.pods[row].key for row in refused]

    def _evict(self, op: Operation) -> list[str]:
        ssn = self._ssn
        row = op.rows[0]
        pod = ssn.tables.tasks.pods[row]
        job = ssn.tables.jobs.uids[ssn.tables.tasks.job[row]]
        decision = Evict(pod.key, pod.uid, ssn.tables.nodes.facts.names[op.nodes[0]], job, op.reason)
        refusal = ssn.planner.submit(decision)
        if refusal is None:
            return []
        ssn.tell(pod.key, "evict refused", refusal.reason)
        self._undo_one(row, TaskStatus.RUNNING, points.on_allocate)
        return [pod.key]

    def _undo_one(self, row: int, status: TaskStatus, point: points.Point) -> None:
        """The inverse of one committed operation: the only undo that is not the journal's, since what came after must
        stand."""
        ssn = self._ssn
        node = int(ssn.tables.tasks.node[row])
        ssn.ledger.move([row], status, [-1 if status is TaskStatus.PENDING else node])
        ssn.ask(point, ssn.run_of([row], [node]))

    def _close(self) -> None:
        assert not self._closed, "a statement ends once"
        self._closed = True
        self._ssn.open_statements -= 1
        if self._ssn.open_statements == 0:
            self._ssn.journal.forget()
