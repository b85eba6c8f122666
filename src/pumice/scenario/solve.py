"""Who would have to leave for a job: grow a set of victims by one chunk, simulate, and stop at the first that works.

    for each prefix of the job's tasks: evict who was found before; evict one chunk more; place in turn order; validate

Everything simulated is in the session, and taken back. Source: KAI solvers (job_solver, by_pod_solver), with its order
of victims, nodes and turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from pumice.columns.counting import RELEASING
from pumice.columns.dtypes import AnyArray, Bool
from pumice.columns.nodes import IDLE, PIPELINED
from pumice.columns.nodes import RELEASING as LEAVING
from pumice.framework.point import Point
from pumice.framework.session import Session
from pumice.framework.statement import Statement
from pumice.scenario.bounds import Bound
from pumice.scenario.candidates import Candidates
from pumice.scenario.contest import Contest, Waiting
from pumice.scenario.parts import Chunk, Part, Scenario
from pumice.scenario.placing import placer
from pumice.scenario.points import solution_start


@dataclass(frozen=True, slots=True)
class Rules:
    """What an action means by a victim. ``reason``: what evictions say. ``may_try``: whether the job has a case at all.
    ``candidates``: rows of jobs that may have to leave. ``valid``: the point that has the last word.
    ``every_victim_placed``: no victim may be without a place in the end."""

    reason: str
    may_try: Callable[[Session, Part], bool]
    candidates: Callable[[Session, int], AnyArray]
    valid: Point[[Scenario], bool, bool]
    every_victim_placed: bool = False


class Solution(NamedTuple):
    """``evicted``: rows of those that leave their nodes; some of them were promised others."""

    evicted: tuple[int, ...]


class Refuted(Enum):
    """``WITHOUT_A_TRY``: no scenario was worth simulating, so that none is for jobs with equal tasks either."""

    AFTER_TRIES = 0
    WITHOUT_A_TRY = 1


def solve(ssn: Session, stmt: Statement, part: Part, rules: Rules, waiting: Waiting) -> Solution | Refuted:
    """Make room for a part of a job, in the statement; Refuted: that cannot be done, and nothing is left of it."""
    candidates = rules.candidates(ssn, part.job)
    if not len(candidates):
        return Refuted.WITHOUT_A_TRY
    ssn.ask(solution_start)
    search = _Search(ssn, stmt, rules, waiting, Candidates(ssn, candidates))
    rows = part.rows
    recorded: tuple[int, ...] = ()
    sub_of = {row: sub for sub, each in part.tasks.items() for row in each}
    for count in range(1, len(rows) + 1):
        tasks: dict[int, list[int]] = {}
        for row in rows[:count]:
            tasks.setdefault(sub_of[row], []).append(row)
        mark = stmt.mark()
        found = search.grow(Part(part.job, tasks, alone=True), recorded)
        if found is None:
            return Refuted.AFTER_TRIES if search.tries else Refuted.WITHOUT_A_TRY
        recorded = found
        if count < len(rows):
            stmt.rollback(mark)
    return Solution(recorded)


class _Search:
    def __init__(self, ssn: Session, stmt: Statement, rules: Rules, waiting: Waiting, candidates: Candidates) -> None:
        self.ssn, self.stmt, self.rules, self.waiting = ssn, stmt, rules, waiting
        self.candidates, self.tries = candidates, 0

    def grow(self, part: Part, recorded: tuple[int, ...]) -> tuple[int, ...] | None:
        """The victims that make room for a part, all there are, the recorded ones first."""
        tables = self.ssn.tables
        possible = with_devices(self.ssn, part)
        node = tables.tasks.node
        possible[node[list(recorded)]] = True
        bound = Bound(self.ssn, placer(self.ssn).feasible, part, recorded)
        if recorded and (found := self._try(part, recorded, (), possible)[0]) is not None:
            return found
        potential: dict[int, list[int]] = {}
        on_node: dict[int, dict[int, None]] = {}
        for chunk in bound.worth_trying(self.candidates.chunks(frozenset(recorded))):
            potential.setdefault(chunk.job, []).extend(chunk.rows)
            for each in chunk.nodes:
                on_node.setdefault(each, {})[chunk.job] = None
            if not bound.last_is_worth_trying:
                continue
            found = self._on_nodes(part, recorded, chunk, potential, on_node, possible)
            if found is not None:
                return found
        return None

    def _on_nodes(
        self,
        part: Part,
        recorded: tuple[int, ...],
        chunk: Chunk,
        potential: dict[int, list[int]],
        on_node: dict[int, dict[int, None]],
        possible: Bool,
    ) -> tuple[int, ...] | None:
        """Try the nodes of the newest chunk, one after the other."""
        node = self.ssn.tables.tasks.node
        for each in chunk.nodes:
            evicted = [row for job in on_node[each] for row in potential[job]]
            extended = possible.copy()
            extended[node[evicted]] = True
            found, placed = self._try(part, recorded, evicted, extended)
            if found is not None:
                return found
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
        self.tries += 1
        with self.stmt.trial() as trial:
            evict_all(ssn, self.stmt, rows, self.rules.reason)
            if not Contest(ssn, self.stmt, part, rows, self.waiting, within).run():
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
    tasks, together = ssn.tables.tasks, {}  # type: ignore[var-annotated]
    for row in rows:
        together.setdefault((int(tasks.sub[row]), int(tasks.status[row])), []).append(row)
    for each in together.values():
        stmt.evict(each, reason)


def with_devices(ssn: Session, part: Part) -> Bool:
    """Nodes that a part may be placed on before anybody leaves (N,): those with a GPU that is idle or about to be, or
    all, where some task asks for none. Source: KAI feasible nodes."""
    tables = ssn.tables
    gpu = tables.axis.column.get("nvidia.com/gpu", -1)
    count = len(tables.nodes.facts)
    if gpu < 0 or (tables.classes.req[tables.tasks.cls[part.rows], gpu] == 0).any():
        return np.ones(count, dtype=bool)
    books = tables.nodes.books
    found: Bool = (books[:, IDLE, gpu] > 0) | (books[:, LEAVING, gpu] - books[:, PIPELINED, gpu] > 0)
    return found
