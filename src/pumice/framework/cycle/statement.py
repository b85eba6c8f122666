"""Statements: operations that take effect in the session at once, and in the cluster at commit.

Undo is physical: the journal restores what every write replaced. Commit submits decisions in order, and undoes single
decisions that the planner refuses. Source: Volcano Statement (operations, order of commit and discard).
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

#: Global names, because these members are used for every task and a look-up in an enumeration is slow.
_ALLOCATE, _PIPELINE, _EVICT = Kind.ALLOCATE, Kind.PIPELINE, Kind.EVICT
_RELEASING, _PIPELINED = TaskStatus.RELEASING, TaskStatus.PIPELINED
_WAS_PROMISED = int(_PIPELINED)


class Planner(Protocol):
    """The only way by which decisions leave the core."""

    def submit(self, decisions: Sequence[Decision]) -> Mapping[int, Refusal]:
        """Take decisions that were committed together, in order. Return refusals by position. Only refused decisions
        are undone."""


class Mark(NamedTuple):
    """A state to roll back to."""

    journal: int
    operations: int


Plan = tuple[Operation, ...]


class Trial:
    """The handle of a block whose operations are rolled back at its end unless ``keep`` is called."""

    __slots__ = ("kept",)

    def __init__(self) -> None:
        self.kept = False

    def keep(self) -> None:
        """Keep the operations."""
        self.kept = True


class FaultScope:
    """A block. If a plugin raises in it, its writes are undone, the fault is recorded for ``subject``, and the block
    ends."""

    __slots__ = ("_journal", "_mark", "_statements", "_subject", "_trace")

    def __init__(self, journal: Journal, trace: CycleTrace, subject: str) -> None:
        self._journal, self._trace, self._subject = journal, trace, subject

    def __enter__(self) -> None:
        self._mark, self._statements = self._journal.mark(), self._journal.open_statements

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        # Other errors are ours: hiding them would hide a defect.
        if not isinstance(error, PluginFault):
            return False
        self._journal.rollback(self._mark)
        # Statements of the block that were still open are gone with their writes.
        self._journal.open_statements = self._statements
        self._trace.blame(self._subject, error)
        return True


class Statement:
    """A context manager: at its end, all operations are undone unless committed or kept uncommitted.

    ``operations``: those in effect. ``undone``: those that were undone, in that order.
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
        """Place pending tasks of one sub-job on idle resources. If an event handler refuses, the whole call is
        undone."""
        return self._place(Operation(_ALLOCATE, Placement(rows, nodes)))

    def pipeline(self, rows: Sequence[int], nodes: Sequence[int], *, evicted: bool = False) -> Refusal | None:
        """Reserve resources that are being released for pending tasks of one sub-job. ``evicted``: tasks were evicted
        for them."""
        return self._place(Operation(_PIPELINE, Placement(rows, nodes), evicted=evicted))

    def _place(self, op: Operation) -> Refusal | None:
        """Do an operation and notify plugins."""
        world, before = self._world, self.mark()
        run = TaskRun(world.tables, op.placement)
        world.ledger.move(run, AFTER[op.kind])
        # Set and never cleared in a session: after a rollback it only costs checks that are not needed.
        if op.kind is _PIPELINE:
            world.futures_differ = True
        if op.evicted:
            world.journal.put(world.tables.tasks["evicted_for"], run.index, True)
        # Recorded before plugins are notified, so that a refusal, or a fault, can be rolled back like any other state.
        self.operations.append(op)
        refusal = self._hooks.ask(points.on_allocate, run)
        if refusal is not None:
            # A refusal is no attempt that failed on a node, so it is not among the undone operations that users read
            # about.
            self.rollback(before, remember=False)
        return refusal

    def evict(self, rows: Sequence[int], reason: str) -> None:
        """Evict tasks, which takes effect at commit. Never fails."""
        if len(rows) == 1:
            self._evict(rows, reason)
            return
        # One operation per run of tasks of one sub-job and status, which is what the ledger and hooks handle at once.
        tasks, index = self._world.tables.tasks, list(rows)
        kinds = zip(tasks.sub[index].tolist(), tasks.status[index].tolist(), strict=True)
        for _, each in groupby(zip(kinds, index, strict=True), itemgetter(0)):
            self._evict([row for _, row in each], reason)

    def _evict(self, rows: Sequence[int], reason: str) -> None:
        """Evict tasks of one sub-job and status."""
        # Tasks that were evicted before and got another node: only that reservation is taken back.
        moved = [row for row in rows if self._world.tables.tasks.leaving[row] >= 0]
        if moved:
            self._evict_again(moved, reason)
            rows = [row for row in rows if row not in moved]
            if not rows:
                return
        run = TaskRun.where_they_are(self._world.tables, rows)
        self._world.ledger.move(run, _RELEASING)
        self._world.futures_differ = True
        # Commit then leaves out evictions of tasks that were only promised a node.
        self._revised |= bool(np.count_nonzero(self._world.tables.tasks.was[run.index] == _WAS_PROMISED))
        self.operations.append(Operation(_EVICT, Placement(run.rows, run.nodes), reason))
        self._hooks.ask(points.on_deallocate, run)

    def _evict_again(self, rows: Sequence[int], reason: str) -> None:
        """Evict tasks that are leaving for other nodes: their reservation is released, and no second eviction is
        sent."""
        tables = self._world.tables
        run = TaskRun(tables, placement := Placement(rows, tables.tasks.node[list(rows)].tolist()))
        for row in rows:
            self._world.ledger.take_back_promise(row)
        self._world.futures_differ = self._revised = True
        self.operations.append(Operation(Kind.EVICT, placement, reason, evicted=True))
        self._hooks.ask(points.on_deallocate, run)

    def promise_another(self, rows: Sequence[int], nodes: Sequence[int]) -> None:
        """Reserve other nodes for evicted tasks of one sub-job, which still leave their present nodes."""
        run = TaskRun(self._world.tables, placement := Placement(rows, nodes))
        self._world.ledger.promise_another(run)
        self._world.futures_differ = True
        self.operations.append(Operation(Kind.PIPELINE, placement))
        self._hooks.ask(points.on_allocate, run)

    def stay(self, rows: Sequence[int]) -> None:
        """Cancel the eviction of tasks of one sub-job, all evicted from the same status."""
        run = TaskRun.where_they_are(self._world.tables, rows)
        # To the status before the eviction and not to RUNNING: the task may have been bound, or only promised its node.
        self._world.ledger.move(run, TaskStatus(int(self._world.tables.tasks.was[rows[0]])))
        self._revised = True
        self.operations.append(Operation(Kind.STAY, Placement(run.rows, run.nodes)))
        self._hooks.ask(points.on_allocate, run)

    def wait(self, rows: Sequence[int]) -> None:
        """Change placements of this statement, of tasks of one sub-job, into reservations instead of bindings."""
        run = TaskRun.where_they_are(self._world.tables, rows)
        self._world.ledger.move(run, _PIPELINED)
        self._world.futures_differ = self._revised = True
        # Plugins are not notified: the tasks are on the same nodes as before.
        self.operations.append(Operation(_PIPELINE, Placement(run.rows, run.nodes)))

    # -- undo ---------------------------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        return Mark(self._world.journal.mark(), len(self.operations))

    def rollback(self, mark: Mark, *, remember: bool = True) -> None:
        """Undo everything after the mark, the newest first, byte for byte. ``remember`` adds it to ``undone``."""
        # Reversed slice: from the last operation down to the mark.
        taken_back = self.operations[: mark.operations - 1 if mark.operations else None : -1]
        del self.operations[mark.operations :]
        for op in taken_back:
            point = points.on_allocate if op.kind is Kind.EVICT else points.on_deallocate
            # Columns are restored by the journal. Only plugins that keep state in Python must be notified of the
            # inverse event.
            for hook in self._hooks.notified_by_inverse(point):
                hook(TaskRun(self._world.tables, op.placement))
        self._world.journal.rollback(mark.journal)
        if remember:
            self.undone += taken_back

    @contextmanager
    def trial(self) -> Iterator[Trial]:
        """A block whose operations are rolled back unless it calls ``keep``. Blocks can be nested."""
        mark, trial = self.mark(), Trial()
        try:
            yield trial
        finally:
            if not trial.kept:
                self.rollback(mark)

    def discard(self) -> None:
        """Undo all operations."""
        assert not self._closed, "a statement ends once"
        self.rollback(self._start)
        self._close()

    # -- plans --------------------------------------------------------------------------------------------------------

    def save(self, since: Mark | None = None) -> Plan:
        """Return the operations (after ``since``) as a value, to be repeated later."""
        return tuple(self.operations[since.operations if since else 0 :])

    def recover(self, plan: Plan) -> Refusal | None:
        """Repeat the operations of a plan. The first refusal ends it, and earlier operations stay."""
        for op in plan:
            # Evictions cannot be refused, and are divided by sub-job and status again.
            if op.kind is Kind.EVICT:
                self.evict(op.placement.rows, op.reason)
                continue
            refusal = self._place(op)
            if refusal is not None:
                return refusal
        return None

    def merge(self, other: Statement) -> None:
        """Take over all operations of another statement and close it. Undo then reaches back to the earlier start."""
        # The journal is one for all statements, so undoing must go back to the earlier of both.
        self._start = Mark(min(self._start.journal, other._start.journal), 0)
        self.operations += other.operations
        self.undone += other.undone
        other.operations = []
        other._close()

    # -- the end ------------------------------------------------------------------------------------------------------

    def commit(self) -> list[str]:
        """Submit all operations in order. Return the keys of pods whose decision was refused; only those are undone."""
        assert not self._closed, "a statement ends once"
        current = self._current() if self._revised else self.operations
        # All decisions are made before the first is sent, because plugins that contribute to them may still raise.
        sent = [(op, self._decisions(op)) for op in current if op.kind in (Kind.ALLOCATE, Kind.EVICT)]
        self.operations, self._closed = [], True  # from here on decisions are sent, and cannot be undone
        refused: list[str] = []
        for op, decisions in sent:
            refused += self._submit(op, decisions)
        self._release()
        return refused

    def _current(self) -> Iterator[Operation]:
        """Yield the operations without tasks that a later operation let stay or wait."""
        tasks = self._world.tables.tasks
        for op in self.operations:
            index = list(op.placement.rows)
            if op.kind is Kind.ALLOCATE:
                holds = tasks.status[index] == TaskStatus.ALLOCATED
            elif op.kind is Kind.EVICT and not op.evicted:
                holds = (tasks.status[index] == TaskStatus.RELEASING) | (tasks.leaving[index] >= 0)
                # A pipelined task only had a reservation, so there is nothing to evict.
                holds &= tasks.was[index] != TaskStatus.PIPELINED
            else:
                continue
            kept = holds.nonzero()[0].tolist()
            if kept:
                rows, nodes = op.placement.rows, op.placement.nodes
                yield op._replace(placement=Placement([rows[i] for i in kept], [nodes[i] for i in kept]))

    def keep_uncommitted(self) -> None:
        """End without commit and without undo: effects last for the session, and nothing is sent."""
        self._close()

    def _decisions(self, op: Operation) -> list[Decision]:
        """Return one decision for each task of an operation."""
        tables, hooks = self._world.tables, self._hooks
        rows, nodes = op.placement.rows, op.placement.nodes
        pods, names = tables.tasks.pods, tables.nodes.facts.names
        job = tables.jobs.uids[tables.tasks.job[rows[0]]] if tables.tasks.job[rows[0]] >= 0 else ""
        each = [(pods[row], names[node]) for row, node in zip(rows, nodes, strict=True)]
        if op.kind is Kind.EVICT:
            return [Evict(pod.key, pod.uid, node, job, op.reason) for pod, node in each]
        devices = self._world.ledger.devices
        # Most policies have no such plugin, and thousands of binds need no context.
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
        """Submit decisions. Return the keys of pods that were refused; these are undone."""
        rows, nodes = op.placement.rows, op.placement.nodes
        refusals = self._planner.submit(decisions)
        binds = op.kind is Kind.ALLOCATE
        for i in sorted(refusals):
            self._trace.tell(decisions[i].pod, Refused(BIND if binds else EVICT, refusals[i].reason))
        # Such a job has found room, so no later action of this cycle may evict for it (``World.without_refused``).
        if binds and refusals:
            self._world.refused.add(int(self._world.tables.tasks.job[rows[0]]))
        if binds and len(refusals) < len(rows):
            taken = op.placement
            # Placements move to BINDING before refusals are undone, so that each is undone from the status that it has.
            if refusals:
                left = [i for i in range(len(rows)) if i not in refusals]
                taken = Placement([rows[i] for i in left], [nodes[i] for i in left])
            self._world.ledger.move(TaskRun(self._world.tables, taken), TaskStatus.BINDING)
        for i in sorted(refusals):
            self._undo_one(rows[i], op.kind)
        return [decisions[i].pod for i in sorted(refusals)]

    def _undo_one(self, row: int, kind: Kind) -> None:
        """Undo one committed operation by its inverse. The journal cannot do it, because later operations must stay."""
        tables = self._world.tables
        moved = int(tables.tasks.leaving[row]) >= 0
        if moved:
            self._world.ledger.take_back_promise(row)
        node, was = int(tables.tasks.node[row]), int(tables.tasks.was[row])
        # A task that another statement evicted has its former status in the column; without one, it was running.
        before = TaskStatus(was) if was >= 0 else TaskStatus.RUNNING
        # A refused eviction leaves the task where it is; a refused bind leaves it without a node.
        status, to = (TaskStatus.PENDING, -1) if kind is Kind.ALLOCATE else (before, node)
        self._world.ledger.move(TaskRun(tables, Placement([row], [to])), status)
        if moved:
            return  # plugins were notified of both moves, which cancel out
        run = TaskRun(tables, Placement([row], [node]))
        try:
            self._hooks.ask(points.on_deallocate if kind is Kind.ALLOCATE else points.on_allocate, run)
        # The refusals that follow must be undone too, so a plugin that fails here ends neither the loop nor the cycle.
        except PluginFault as fault:
            self._trace.blame(tables.tasks.pods[row].key, fault)

    def _close(self) -> None:
        """Close the statement."""
        assert not self._closed, "a statement ends once"
        self._closed = True
        self._release()

    def _release(self) -> None:
        """Forget the journal once no statement is open."""
        journal = self._world.journal
        # Statements may be nested, so only the outermost may forget entries.
        journal.open_statements -= 1
        # Earlier entries can no longer be rolled back, and would fill the memory.
        if journal.open_statements == 0:
            journal.forget()
