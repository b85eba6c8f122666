"""A statement: operations that take effect in the session at once and in the cluster only at commit.

Undo is physical: the journal puts back what every write replaced. Commit submits in order; a decision that the planner
refuses is undone alone. Source: Volcano Statement (operations, order of commit and discard).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from types import TracebackType
from typing import NamedTuple, Protocol, Self

import numpy as np

from pumice.columns.journal import Journal
from pumice.columns.placement import Placement
from pumice.columns.runs import TaskRun
from pumice.columns.views import Node, Task
from pumice.framework.cycle.trace import AFTER, CycleTrace, Kind, Operation
from pumice.framework.cycle.world import World
from pumice.framework.plugin import points
from pumice.framework.plugin.errors import PluginFault
from pumice.framework.plugin.hooks import Hooks
from pumice.model.blockers import BIND, EVICT, Refused
from pumice.model.decisions import GPU_GROUPS, Bind, Decision, Evict, Refusal
from pumice.model.status import TaskStatus

#: Members by names of their own: what is done for every task looks nothing up in an enum.
_ALLOCATE, _PIPELINE, _EVICT = Kind.ALLOCATE, Kind.PIPELINE, Kind.EVICT
_RELEASING, _PIPELINED = TaskStatus.RELEASING, TaskStatus.PIPELINED
_WAS_PROMISED = int(_PIPELINED)


class Planner(Protocol):
    """The one seam for effects."""

    def submit(self, decisions: Sequence[Decision]) -> Mapping[int, Refusal]:
        """Take decisions that were committed together, in order. Refusals by position: what it names is undone, nothing
        else."""


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


class Turn:
    """A block in which a plugin's fault takes back what was done, is told of ``subject``, and ends there."""

    __slots__ = ("_journal", "_mark", "_statements", "_subject", "_trace")

    def __init__(self, journal: Journal, trace: CycleTrace, subject: str) -> None:
        self._journal, self._trace, self._subject = journal, trace, subject

    def __enter__(self) -> None:
        self._mark, self._statements = self._journal.mark(), self._journal.open_statements

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not isinstance(error, PluginFault):
            return False
        self._journal.rollback(self._mark)
        self._journal.open_statements = self._statements
        self._trace.blame(self._subject, error)
        return True


class Statement:
    """Use as a context manager: it leaves no trace unless committed or left standing.

    ``operations`` are those that stand, ``undone`` those that were taken back, in the order of that.
    """

    __slots__ = ("_closed", "_hooks", "_planner", "_revised", "_start", "_trace", "_world", "operations", "undone")

    def __init__(self, world: World, hooks: Hooks, planner: Planner, trace: CycleTrace) -> None:
        self._world, self._hooks, self._planner, self._trace = world, hooks, planner, trace
        self.operations: list[Operation] = []
        self.undone: list[Operation] = []
        self._start = Mark(world.journal.mark(), 0)
        self._closed = self._revised = False
        world.journal.open_statements += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._closed:
            self.discard()

    # -- operations ---------------------------------------------------------------------------------------------------

    def allocate(self, rows: Sequence[int], nodes: Sequence[int]) -> Refusal | None:
        """Place pending tasks of one sub-job on idle resources. A refusal of an event handler undoes the whole
        call."""
        return self._place(Operation(_ALLOCATE, Placement(rows, nodes)))

    def pipeline(self, rows: Sequence[int], nodes: Sequence[int], *, evicted: bool = False) -> Refusal | None:
        """Promise pending tasks of one sub-job the resources that are being released; ``evicted``: some victim left for
        them."""
        return self._place(Operation(_PIPELINE, Placement(rows, nodes), evicted=evicted))

    def _place(self, op: Operation) -> Refusal | None:
        world, before = self._world, self.mark()
        run = TaskRun(world.tables, op.placement)
        world.ledger.move(run, AFTER[op.kind])
        if op.kind is _PIPELINE:
            world.futures_differ = True
        if op.evicted:
            world.journal.put(world.tables.tasks["evicted_for"], run.index, True)
        self.operations.append(op)
        refusal = self._hooks.ask(points.on_allocate, run)
        if refusal is not None:
            self.rollback(before, remember=False)
        return refusal

    def evict(self, rows: Sequence[int], reason: str) -> None:
        """Take tasks off their nodes, once this is committed: those of one sub-job and state that follow each other in
        one operation. Never fails."""
        if len(rows) == 1:
            self._evict(rows, reason)
            return
        tasks, index = self._world.tables.tasks, list(rows)
        kinds = zip(tasks.sub[index].tolist(), tasks.status[index].tolist(), strict=True)
        for _, each in groupby(zip(kinds, index, strict=True), itemgetter(0)):
            self._evict([row for _, row in each], reason)

    def _evict(self, rows: Sequence[int], reason: str) -> None:
        moved = [row for row in rows if self._world.tables.tasks.leaving[row] >= 0]
        if moved:
            self._evict_again(moved, reason)
            rows = [row for row in rows if row not in moved]
            if not rows:
                return
        run = TaskRun.where_they_are(self._world.tables, rows)
        self._world.ledger.move(run, _RELEASING)
        self._world.futures_differ = True
        self._revised |= bool(np.count_nonzero(self._world.tables.tasks.was[run.index] == _WAS_PROMISED))
        self.operations.append(Operation(_EVICT, Placement(run.rows, run.nodes), reason))
        self._hooks.ask(points.on_deallocate, run)

    def _evict_again(self, rows: Sequence[int], reason: str) -> None:
        """Tasks that leave for other nodes only leave: the promise is taken back, and nobody is told a second time."""
        tables = self._world.tables
        run = TaskRun(tables, placement := Placement(rows, tables.tasks.node[list(rows)].tolist()))
        for row in rows:
            self._world.ledger.take_back_promise(row)
        self._world.futures_differ = self._revised = True
        self.operations.append(Operation(Kind.EVICT, placement, reason, evicted=True))
        self._hooks.ask(points.on_deallocate, run)

    def promise_another(self, rows: Sequence[int], nodes: Sequence[int]) -> None:
        """Promise tasks of one sub-job that were evicted other nodes. They still leave the ones that they are on."""
        run = TaskRun(self._world.tables, placement := Placement(rows, nodes))
        self._world.ledger.promise_another(run)
        self._world.futures_differ = True
        self.operations.append(Operation(Kind.PIPELINE, placement))
        self._hooks.ask(points.on_allocate, run)

    def stay(self, rows: Sequence[int]) -> None:
        """Let tasks of one sub-job that were evicted from one state go on where they are."""
        run = TaskRun.where_they_are(self._world.tables, rows)
        self._world.ledger.move(run, TaskStatus(int(self._world.tables.tasks.was[rows[0]])))
        self._revised = True
        self.operations.append(Operation(Kind.STAY, Placement(run.rows, run.nodes)))
        self._hooks.ask(points.on_allocate, run)

    def wait(self, rows: Sequence[int]) -> None:
        """Promise tasks of one sub-job the nodes that this statement placed them on, instead of binding them."""
        run = TaskRun.where_they_are(self._world.tables, rows)
        self._world.ledger.move(run, _PIPELINED)
        self._world.futures_differ = self._revised = True
        self.operations.append(Operation(_PIPELINE, Placement(run.rows, run.nodes)))

    # -- undo ---------------------------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        return Mark(self._world.journal.mark(), len(self.operations))

    def rollback(self, mark: Mark, *, remember: bool = True) -> None:
        """Undo everything after the mark, newest first, byte for byte. ``remember`` adds it to ``undone``."""
        taken_back = self.operations[: mark.operations - 1 if mark.operations else None : -1]
        del self.operations[mark.operations :]
        for op in taken_back:
            point = points.on_allocate if op.kind is Kind.EVICT else points.on_deallocate
            for hook in self._hooks.told_by_inverse(point):
                hook(TaskRun(self._world.tables, op.placement))
        self._world.journal.rollback(mark.journal)
        if remember:
            self.undone += taken_back

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
                self.evict(op.placement.rows, op.reason)
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
        self.undone += other.undone
        other.operations = []
        other._close()

    # -- the end ------------------------------------------------------------------------------------------------------

    def commit(self) -> list[str]:
        """Submit every operation in order. Returns the keys of pods whose decision was refused; those alone are
        undone."""
        assert not self._closed, "a statement ends once"
        standing = self._standing() if self._revised else self.operations
        sent = [(op, self._decisions(op)) for op in standing if op.kind in (Kind.ALLOCATE, Kind.EVICT)]
        self.operations, self._closed = [], True  # from here on things are said, and cannot be unsaid
        refused: list[str] = []
        for op, decisions in sent:
            refused += self._submit(op, decisions)
        self._release()
        return refused

    def _standing(self) -> Iterator[Operation]:
        """The operations without the tasks that a later one let stay, or made wait."""
        tasks = self._world.tables.tasks
        for op in self.operations:
            index = list(op.placement.rows)
            if op.kind is Kind.ALLOCATE:
                holds = tasks.status[index] == TaskStatus.ALLOCATED
            elif op.kind is Kind.EVICT and not op.evicted:
                holds = (tasks.status[index] == TaskStatus.RELEASING) | (tasks.leaving[index] >= 0)
                holds &= tasks.was[index] != TaskStatus.PIPELINED  # it was promised a node, and is on none or leaves it
            else:
                continue
            kept = holds.nonzero()[0].tolist()
            if kept:
                rows, nodes = op.placement.rows, op.placement.nodes
                yield op._replace(placement=Placement([rows[i] for i in kept], [nodes[i] for i in kept]))

    def leave_standing(self) -> None:
        """End without commit and without undo: the effects stay for the rest of the session and nothing is sent."""
        self._close()

    def _decisions(self, op: Operation) -> list[Decision]:
        """What the planner is told of an operation, a decision a task."""
        tables, hooks = self._world.tables, self._hooks
        rows, nodes = op.placement.rows, op.placement.nodes
        pods, names = tables.tasks.pods, tables.nodes.facts.names
        job = tables.jobs.uids[tables.tasks.job[rows[0]]] if tables.tasks.job[rows[0]] >= 0 else ""
        each = [(pods[row], names[node]) for row, node in zip(rows, nodes, strict=True)]
        if op.kind is Kind.EVICT:
            return [Evict(pod.key, pod.uid, node, job, op.reason) for pod, node in each]
        devices = self._world.ledger.devices
        if not hooks.has(points.bind_context) and devices is None:
            return [Bind(pod.key, pod.uid, node, job) for pod, node in each]
        contexts = [
            hooks.ask(points.bind_context, Task(tables, row), Node(tables, node))
            for row, node in zip(rows, nodes, strict=True)
        ]
        if devices is not None:
            groups = map(devices.groups_of, rows)
            contexts = [
                {**found, GPU_GROUPS: shared} if shared else found
                for found, shared in zip(contexts, groups, strict=True)
            ]
        return [Bind(pod.key, pod.uid, node, job, found) for (pod, node), found in zip(each, contexts, strict=True)]

    def _submit(self, op: Operation, decisions: list[Decision]) -> list[str]:
        """Hand decisions out. Keys of the pods that were refused, and are undone."""
        rows, nodes = op.placement.rows, op.placement.nodes
        refusals = self._planner.submit(decisions)
        binds = op.kind is Kind.ALLOCATE
        for i in sorted(refusals):
            self._trace.tell(decisions[i].pod, Refused(BIND if binds else EVICT, refusals[i].reason))
        if binds and len(refusals) < len(rows):
            taken = op.placement
            if refusals:
                left = [i for i in range(len(rows)) if i not in refusals]
                taken = Placement([rows[i] for i in left], [nodes[i] for i in left])
            self._world.ledger.move(TaskRun(self._world.tables, taken), TaskStatus.BINDING)
        for i in sorted(refusals):
            self._undo_one(rows[i], op.kind)
        return [decisions[i].pod for i in sorted(refusals)]

    def _undo_one(self, row: int, kind: Kind) -> None:
        """The inverse of one committed operation: the only undo that is not the journal's, since what came after must
        stand."""
        tables = self._world.tables
        moved = int(tables.tasks.leaving[row]) >= 0
        if moved:
            self._world.ledger.take_back_promise(row)
        node, was = int(tables.tasks.node[row]), int(tables.tasks.was[row])
        before = TaskStatus(was) if was >= 0 else TaskStatus.RUNNING
        status, to = (TaskStatus.PENDING, -1) if kind is Kind.ALLOCATE else (before, node)
        self._world.ledger.move(TaskRun(tables, Placement([row], [to])), status)
        if moved:
            return  # plugins were told that it left and that it was placed
        run = TaskRun(tables, Placement([row], [node]))
        try:
            self._hooks.ask(points.on_deallocate if kind is Kind.ALLOCATE else points.on_allocate, run)
        except PluginFault as fault:
            self._trace.blame(tables.tasks.pods[row].key, fault)

    def _close(self) -> None:
        assert not self._closed, "a statement ends once"
        self._closed = True
        self._release()

    def _release(self) -> None:
        journal = self._world.journal
        journal.open_statements -= 1
        if journal.open_statements == 0:
            journal.forget()
