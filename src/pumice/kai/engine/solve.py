"""Who would have to leave for a job: grow a set of victims by one chunk, simulate, and stop at the first that works.

    for each prefix of the job's tasks: evict who was found before; evict one chunk more; place in turn order; validate

Everything simulated is in the session, and taken back. Source: KAI solvers (job_solver, by_pod_solver), with its order
of victims, nodes and turns.
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
    """What an action means by a victim. ``reason``: what evictions say. ``may_try``: whether the job has a case at all.
    ``of_queue``: whether jobs of a queue may have to leave for a job, ``may_leave``: which, given the rows of all that
    stand there. ``valid``: the point that has the last word. ``every_victim_placed``: no victim may be without a place
    in the end."""

    reason: str
    may_try: Callable[[Session, Part], bool]
    of_queue: Callable[[Session, int, int], bool]
    may_leave: Callable[[Session, int], Callable[[int], bool]]
    valid: Point[[Scenario], bool, bool]
    every_victim_placed: bool = False


class Solution(NamedTuple):
    """``evicted``: rows of those that leave their nodes; some of them were promised others."""

    evicted: tuple[int, ...]


class Refuted(Enum):
    """``WITHOUT_A_TRY``: no scenario was worth simulating, so that none is for jobs with equal tasks either."""

    AFTER_TRIES = 0
    WITHOUT_A_TRY = 1


def solve(
    ssn: Session, stmt: Statement, part: Part, rules: Rules, waiting: Waiting, standing: Standing
) -> Solution | Refuted:
    """Make room for a part of a job, in the statement; Refuted: that cannot be done, and nothing is left of it."""
    queues = [leaf for leaf in standing.leaves if rules.of_queue(ssn, part.job, leaf)]
    candidates = Candidates(ssn, standing, queues, rules.may_leave(ssn, part.job))
    if not candidates:
        return Refuted.WITHOUT_A_TRY
    ssn.ask(solution_start)
    search = _Search(ssn, stmt, rules, waiting, candidates)
    if may_have_missed_its_turn(ssn) and search.without_victims(part):
        return Solution(())
    rows = part.rows
    recorded: tuple[int, ...] = ()
    sub_of = {row: sub for sub, each in part.tasks.items() for row in each}
    for count in range(1, len(rows) + 1):
        tasks: dict[int, list[int]] = {}
        for row in rows[:count]:
            tasks.setdefault(sub_of[row], []).append(row)
        found = search.grow(Part(part.job, tasks, alone=True), recorded)
        if found is None:
            return Refuted.AFTER_TRIES if search.tries else Refuted.WITHOUT_A_TRY
        recorded = found
        if count < len(rows):
            search.take_back(recorded, keep_evictions=len(queues) == 1)
    return Solution(recorded)


class _Search:
    def __init__(self, ssn: Session, stmt: Statement, rules: Rules, waiting: Waiting, candidates: Candidates) -> None:
        self.ssn, self.stmt, self.rules, self.waiting = ssn, stmt, rules, waiting
        self.candidates, self.tries, self._allowed = candidates, 0, tries(ssn)
        self._start = self._evicted = stmt.mark()
        self._standing: frozenset[int] = frozenset()  # those whose evictions stand while a larger part is tried

    def without_victims(self, part: Part) -> bool:
        """Whether a part has room although nobody leaves. KAI does not ask: there ``allocate`` has."""
        return self._try(part, (), (), with_devices(self.ssn, part))[0] is not None

    def grow(self, part: Part, recorded: tuple[int, ...]) -> tuple[int, ...] | None:
        """The victims that make room for a part, all there are, the recorded ones first."""
        ssn, tables = self.ssn, self.ssn.tables
        possible = with_devices(ssn, part)
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
        """Undo what was simulated, before the next larger part is. The evictions may stand where they are those of
        whom was recorded, the order of the other candidates does not depend on them, and nobody stayed."""
        tables = self.ssn.tables
        self.stmt.rollback(self._evicted, remember=False)
        all_recorded = (tables.jobs.size[tables.tasks.job[list(recorded)]] == 1).all()
        evicted = {row for op in self.stmt.operations for row in op.placement.rows}
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
        """Try the nodes of the newest chunk, one after the other."""
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
                possible |= extended  # a validator said no: the nodes stay in
                return None
        return None

    def _try(
        self, part: Part, recorded: Sequence[int], evicted: Sequence[int], within: Bool
    ) -> tuple[tuple[int, ...] | None, bool]:
        """Evict, place, validate: who left, if that works; and whether the part was placed."""
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
            if not placed or self._allowed.cut:  # then others may have lost their place for that
                return None, False
            if not self._is_valid(Scenario(part, list(rows))):
                return None, True
            trial.keep()
        status, leaving = tables.tasks.status, tables.tasks.leaving
        return tuple(row for row in rows if status[row] == RELEASING or leaving[row] >= 0), True

    def _is_valid(self, scenario: Scenario) -> bool:
        if self.rules.every_victim_placed and scenario.gone(self.ssn.tables):
            return False
        return self.ssn.ask(self.rules.valid, scenario)


def evict_all(ssn: Session, stmt: Statement, rows: Sequence[int], reason: str) -> None:
    """Evict tasks, those of one pod set in one state together."""
    tasks, rows = ssn.tables.tasks, list(rows)
    if len(rows) == 1:
        stmt.evict(rows, reason)
        return
    together: dict[tuple[int, int], list[int]] = {}
    for row, *kind in zip(rows, tasks.sub[rows].tolist(), tasks.status[rows].tolist(), strict=True):
        together.setdefault((kind[0], kind[1]), []).append(row)
    for each in together.values():
        stmt.evict(each, reason)


def with_devices(ssn: Session, part: Part) -> Bool:
    """Nodes that a part may be placed on before anybody leaves (N,): those with a GPU that is idle or about to be, or
    all, where some task asks for none. Source: KAI feasible nodes."""
    tables = ssn.tables
    gpu = tables.axis.column.get(GPU_RESOURCE, -1)
    count = len(tables.nodes.facts)
    if gpu < 0 or np.count_nonzero(tables.classes.frees[tables.tasks.cls[part.rows], gpu]) < len(part.rows):
        return np.ones(count, dtype=bool)
    books = tables.nodes.books
    found: Bool = (books[:, IDLE, gpu] > 0) | (books[:, LEAVING, gpu] - books[:, PIPELINED, gpu] > 0)
    return found if ssn.ledger.devices is None else found | ssn.ledger.devices.remainders()
