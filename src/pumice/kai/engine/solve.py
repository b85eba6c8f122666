"""Find victims for a job: grow the set by one chunk, simulate, and stop at the first that works.

    for each prefix of the job's tasks: evict the victims so far and one chunk more; place in queue order; validate

All of it happens in the session and is rolled back. Source: KAI solvers (job_solver, by_pod_solver), with their order
of victims, nodes and queues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from pumice.columns.counting import RELEASING
from pumice.columns.dtypes import Bool
from pumice.columns.nodes import IDLE, PIPELINED
from pumice.columns.nodes import RELEASING as LEAVING
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.framework.plugin.point import Point
from pumice.kai.engine.bounds import Bound
from pumice.kai.engine.budget import tries
from pumice.kai.engine.counters import Tally, tally
from pumice.kai.engine.growth import Growth
from pumice.kai.engine.job_order import Standing
from pumice.kai.engine.parts import Chunk, Part, Scenario
from pumice.kai.engine.place_part import placer
from pumice.kai.engine.points import solution_start
from pumice.kai.engine.replacement import Replacement, Waiting
from pumice.kai.engine.tree_order import may_have_missed_its_turn
from pumice.kai.engine.victim_candidates import Candidates
from pumice.model.devices.gpu import GPU_RESOURCE


class Rules(Struct, frozen=True):
    """How an action chooses victims.

    ``reason``: reason of evictions. ``may_try``: whether the job is eligible at all. ``of_queue``: whether jobs of a
    queue may be victims of a job. ``may_leave``: which of them may. ``valid``: the point that validates a scenario.
    ``every_victim_placed``: every victim must get a new place.
    """

    reason: str
    may_try: Callable[[Session, Part], bool]
    of_queue: Callable[[Session, int, int], bool]
    may_leave: Callable[[Session, int], Callable[[int], bool]]
    valid: Point[[Scenario], bool, bool]
    every_victim_placed: bool = False


class Solution(NamedTuple):
    """A solution. ``evicted``: rows of tasks that leave their nodes, including those that are moved."""

    evicted: tuple[int, ...]


class NoSolution(Enum):
    """No solution. ``WITHOUT_A_TRY``: no scenario was worth simulating, which holds for jobs with equal tasks too."""

    AFTER_TRIES = 0
    WITHOUT_A_TRY = 1


def solve(
    ssn: Session, stmt: Statement, part: Part, rules: Rules, waiting: Waiting, standing: Standing
) -> Solution | NoSolution:
    """Place a part of a job by evictions, in the statement. Return NoSolution, with nothing changed, if that is
    impossible."""
    # Chosen once per job: which queues may give does not change while the victims of one job are sought.
    queues = [leaf for leaf in standing.leaves if rules.of_queue(ssn, part.job, leaf)]
    candidates = Candidates(ssn, standing, queues, rules.may_leave(ssn, part.job))
    if not candidates:
        return NoSolution.WITHOUT_A_TRY
    ssn.ask(solution_start)
    search = _Search(ssn, stmt, rules, waiting, candidates)
    # If ``allocate`` tries a limited number of jobs, this one may fit without victims.
    if may_have_missed_its_turn(ssn) and search.without_victims(part):
        return Solution(())
    rows = part.rows
    recorded: tuple[int, ...] = ()
    sub_of = {row: sub for sub, each in part.tasks.items() for row in each}
    # KAI adds the tasks one by one and keeps the victims of each step, which finds few victims per task instead of
    # many at once.
    for count in range(1, len(rows) + 1):
        tasks: dict[int, list[int]] = {}
        for row in rows[:count]:
            tasks.setdefault(sub_of[row], []).append(row)
        found = search.grow(Part(part.job, tasks, alone=True), recorded)
        if found is None:
            return NoSolution.AFTER_TRIES if search.tries else NoSolution.WITHOUT_A_TRY
        recorded = found
        if count < len(rows):
            search.take_back(recorded, keep_evictions=len(queues) == 1)
    return Solution(recorded)


class _Search:
    """One search for victims of a part."""

    def __init__(self, ssn: Session, stmt: Statement, rules: Rules, waiting: Waiting, candidates: Candidates) -> None:
        self.ssn, self.stmt, self.rules, self.waiting = ssn, stmt, rules, waiting
        self.candidates, self.tries, self._allowed = candidates, 0, tries(ssn)
        self._start = self._evicted = stmt.mark()
        self._standing: frozenset[int] = frozenset()  # victims that stay evicted while a larger part is tried

    def without_victims(self, part: Part) -> bool:
        """Return True if a part fits without victims. KAI does not check this here, as its allocate action has done
        so."""
        return self._try(part, (), (), with_devices(self.ssn, part))[0] is not None

    def grow(self, part: Part, recorded: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return all victims that make room for a part, the recorded ones first, or None."""
        ssn, tables = self.ssn, self.ssn.tables
        possible = with_devices(ssn, part)
        # Nodes of victims count as well, because evictions make room there.
        possible[tables.tasks.node[list(recorded)]] = True
        if recorded and (found := self._try(part, recorded, (), possible)[0]) is not None:
            return found
        gone = frozenset(recorded)
        bound = Bound(ssn, placer(ssn).feasible, part, gone - self._standing)
        growth = Growth(ssn, self.candidates, gone, bound)
        found = None
        for chunk in growth:
            found = self._on_nodes(part, recorded, chunk, growth, possible)
            if found is not None or self._allowed.cut:
                break
        tally(ssn, Tally.RULED_OUT, growth.ruled_out)
        return found

    def take_back(self, recorded: tuple[int, ...], *, keep_evictions: bool) -> None:
        """Roll back a simulation before the next larger part is tried."""
        tables = self.ssn.tables
        self.stmt.rollback(self._evicted, remember=False)
        all_recorded = (tables.jobs.size[tables.tasks.job[list(recorded)]] == 1).all()
        evicted = {row for op in self.stmt.operations for row in op.placement.rows}
        # The next step evicts the same victims again. Their evictions are kept if they are exactly the recorded ones
        # and each is a whole job, so that the order of the other candidates is the same without them.
        if keep_evictions and all_recorded and evicted == set(recorded):
            assert (tables.tasks.status[list(recorded)] == RELEASING).all()
            self._standing = frozenset(recorded)
            return
        self.stmt.rollback(self._start, remember=False)
        self._standing = frozenset()

    def _on_nodes(
        self,
        part: Part,
        recorded: tuple[int, ...],
        chunk: Chunk,
        growth: Growth,
        possible: Bool,
    ) -> tuple[int, ...] | None:
        """Try the nodes of the newest chunk one after the other."""
        for each in chunk.nodes:
            evicted = growth.with_node(each)
            extended = possible.copy()
            extended[self.ssn.tables.tasks.node[evicted]] = True
            found, placed = self._try(part, recorded, evicted, extended)
            if found is not None:
                return found
            if self._allowed.cut:
                return None
            if placed:
                # The part fits but the validator rejects it: KAI drops the scenario and keeps its nodes feasible.
                possible |= extended
                return None
        return None

    def _try(
        self, part: Part, recorded: Sequence[int], evicted: Sequence[int], within: Bool
    ) -> tuple[tuple[int, ...] | None, bool]:
        """Evict, place and validate. Return the victims, or None, and whether the part was placed."""
        ssn, tables = self.ssn, self.ssn.tables
        rows = (*recorded, *evicted)
        if not self._allowed.spend():
            return None, False
        self.tries += 1
        tally(ssn, Tally.SIMULATED)
        with self.stmt.trial() as trial:
            evict_all(ssn, self.stmt, [row for row in rows if row not in self._standing], self.rules.reason)
            self._evicted = self.stmt.mark()
            placed = Replacement(ssn, self.stmt, part, rows, self.waiting, within).run()
            # After a cut, victims may be without a place only because the tries ran out.
            if not placed or self._allowed.cut:
                return None, False
            if not self._is_valid(Scenario(part, list(rows))):
                return None, True
            trial.keep()
        status, leaving = tables.tasks.status, tables.tasks.leaving
        return tuple(row for row in rows if status[row] == RELEASING or leaving[row] >= 0), True

    def _is_valid(self, scenario: Scenario) -> bool:
        """Return True if the action and all plugins accept the scenario."""
        # Checked first: it costs no question to plugins.
        if self.rules.every_victim_placed and scenario.gone(self.ssn.tables):
            return False
        return self.ssn.ask(self.rules.valid, scenario)


def evict_all(ssn: Session, stmt: Statement, rows: Sequence[int], reason: str) -> None:
    """Evict tasks, all tasks of one pod set and status in one operation."""
    tasks, rows = ssn.tables.tasks, list(rows)
    # A single victim is the common case, and needs no grouping.
    if len(rows) == 1:
        stmt.evict(rows, reason)
        return
    together: dict[tuple[int, int], list[int]] = {}
    for row, *kind in zip(rows, tasks.sub[rows].tolist(), tasks.status[rows].tolist(), strict=True):
        together.setdefault((kind[0], kind[1]), []).append(row)
    for each in together.values():
        stmt.evict(each, reason)


def with_devices(ssn: Session, part: Part) -> Bool:
    """Return the nodes on which a part may be placed before evictions (N,): those with an idle or releasing GPU, or
    all nodes if a task needs no GPU. Source: KAI feasible nodes."""
    tables = ssn.tables
    gpu = tables.axis.column.get(GPU_RESOURCE, -1)
    count = len(tables.nodes.facts)
    # A part with one task that needs no GPU may use nodes without GPUs, and KAI does not look at each task alone.
    if gpu < 0 or np.count_nonzero(tables.classes.frees[tables.tasks.cls[part.rows], gpu]) < len(part.rows):
        return np.ones(count, dtype=bool)
    books = tables.nodes.books
    found: Bool = (books[:, IDLE, gpu] > 0) | (books[:, LEAVING, gpu] - books[:, PIPELINED, gpu] > 0)
    return found if ssn.ledger.devices is None else found | ssn.ledger.devices.remainders()
