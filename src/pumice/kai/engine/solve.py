"""Find victims for a job: try one set of victims after the other, and stop at the first that works.

    for each number of the job's tasks: evict the victims so far and more; place in queue order; validate

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
from pumice.framework.plugin.point import Point, Question
from pumice.kai.engine.budget import SEARCH_STEPS, steps_of
from pumice.kai.engine.counters import SearchResult, Tally, TriedSets, tally
from pumice.kai.engine.job_order import SortedJobs
from pumice.kai.engine.next_queue import Waiting
from pumice.kai.engine.parts import Part, Scenario, needs_gpus
from pumice.kai.engine.placement.place_part import placer
from pumice.kai.engine.points import solution_start
from pumice.kai.engine.replacement import Replacement
from pumice.kai.engine.tree_order import may_have_been_passed_over
from pumice.kai.engine.victims.bounds import Bound
from pumice.kai.engine.victims.candidates import Candidates
from pumice.kai.engine.victims.domain_room import has_required_domains
from pumice.kai.engine.victims.sets import Generator, Request, generators
from pumice.model.devices.gpu import GPU_RESOURCE


class Rules(Struct, frozen=True):
    """How an action chooses victims.

    ``reason``: reason of evictions. ``may_try``: whether the job is eligible at all. ``of_queue``: whether jobs of a
    queue may be victims of a job. ``may_leave``: which of them may. ``valid``: the point that validates a scenario.
    ``asks``: the points at which the action asks about the job. ``every_victim_placed``: every victim must get a new
    place. ``most``: only so many jobs may be victims of a job, the worst of those that may leave; below 0 there is no
    limit.
    """

    reason: str
    may_try: Callable[[Session, Part], bool]
    of_queue: Callable[[Session, int, int], bool]
    may_leave: Callable[[Session, int], Callable[[int], bool]]
    valid: Point[[Scenario], bool, bool]
    asks: tuple[Question, ...]
    every_victim_placed: bool = False
    most: int = -1


class Solution(NamedTuple):
    """A solution. ``evicted``: rows of tasks that leave their nodes, including those that are moved."""

    evicted: tuple[int, ...]


class NoSolution(Enum):
    """No solution. ``WITHOUT_A_TRY``: no scenario was worth simulating, which holds for jobs with equal tasks too."""

    AFTER_TRIES = 0
    WITHOUT_A_TRY = 1


def solve(
    ssn: Session, stmt: Statement, part: Part, rules: Rules, waiting: Waiting, sorted_jobs: SortedJobs
) -> Solution | NoSolution:
    """Place a part of a job by evictions, in the statement. Return NoSolution, with nothing changed, if that is
    impossible."""
    if not steps_of(ssn).spend(SEARCH_STEPS):
        return NoSolution.AFTER_TRIES
    # Chosen once per job: which queues may give does not change while the victims of one job are sought.
    queues = [leaf for leaf in sorted_jobs.leaves if rules.of_queue(ssn, part.job, leaf)]
    candidates = Candidates(ssn, sorted_jobs, queues, rules.may_leave(ssn, part.job), most=rules.most)
    if not candidates:
        return NoSolution.AFTER_TRIES if steps_of(ssn).cut else NoSolution.WITHOUT_A_TRY
    ssn.ask(solution_start)
    if rules.most >= 0 and _lacks_room_without(ssn, part, candidates):
        return NoSolution.AFTER_TRIES
    search = _Search(ssn, stmt, part, rules, waiting, candidates)
    # If ``allocate`` tries a limited number of jobs, this one may fit without victims.
    if may_have_been_passed_over(ssn) and search.without_victims():
        return Solution(())
    for generator in generators(ssn):
        found = search.run(generator)
        if found is not None:
            return Solution(found)
        if search.is_cut:
            break
    return NoSolution.AFTER_TRIES if search.tries else NoSolution.WITHOUT_A_TRY


def _lacks_room_without(ssn: Session, part: Part, candidates: Candidates) -> bool:
    """Return True if a gang would not fit although all of few candidates had left."""
    # A search places 1, 2, 4 and more of its tasks, each time with all victims, before it comes to as many as do not
    # fit. Of a single task its generators count the same.
    if len(part.rows) == 1:
        return False
    gone = (row for chunk in candidates.chunks(()) for row in chunk.rows)
    return not Bound(ssn, placer(ssn).feasible, part, gone).is_met


class RecordedVictims(NamedTuple):
    """Victims that made room for a part. ``groups``: rows of tasks that are evicted together, of which one leaves at
    least. ``gone``: those that leave. ``evicted``: how many were evicted in all, for a moment."""

    groups: tuple[tuple[int, ...], ...]
    gone: tuple[int, ...]
    evicted: int

    @property
    def rows(self) -> tuple[int, ...]:
        return tuple(row for group in self.groups for row in group)

    @property
    def is_all(self) -> bool:
        """True if all that was evicted leaves."""
        return len(self.gone) == self.evicted


NO_VICTIMS = RecordedVictims((), (), 0)


class _Search:
    """One search for victims of a part of a job."""

    def __init__(
        self, ssn: Session, stmt: Statement, part: Part, rules: Rules, waiting: Waiting, candidates: Candidates
    ) -> None:
        self.ssn, self.stmt, self.part, self.rules, self.waiting = ssn, stmt, part, rules, waiting
        self.candidates, self.tries, self._allowed = candidates, 0, steps_of(ssn)
        self._start = stmt.mark()
        self._sub_of = {row: sub for sub, each in part.tasks.items() for row in each}
        # What failed once for a number of tasks fails again, whichever generator it comes from.
        self._failed: set[tuple[int, frozenset[int]]] = set()
        self._counted = self._allowed.taken

    @property
    def is_cut(self) -> bool:
        """True if the search has reached its limit, so that its failure proves nothing."""
        return self._allowed.cut

    def without_victims(self) -> bool:
        """Return True if the part fits without victims. KAI does not check this here, as its allocate action has done
        so."""
        return not isinstance(self._try(self.part, (), with_devices(self.ssn, self.part)), SearchResult)

    def run(self, generator: Generator) -> tuple[int, ...] | None:
        """Return the victims that make room for the part, which is then placed, or None with nothing changed.

        Smaller parts are solved first, of 1, 2, 4 and so on of its tasks, and after a failure of numbers in between,
        and each leaves its victims to the next. In the end the whole part is solved with the victims that were found
        last. Source: KAI job_solver, searchMaxSolvableK.
        """
        # Doubling first, and halving after the first failure, so that a gang of n tasks costs about 2 log n searches
        # and not n.
        whole, recorded = len(self.part.rows), NO_VICTIMS
        solved, failed, count = 0, whole + 1, 1
        while solved + 1 < failed:
            found = self._solve(count, recorded, generator)
            if self.is_cut:
                return None
            if found is None:
                failed = count
                if solved == 0:
                    return None
            else:
                solved, recorded = count, found
                # The whole part would be solved once more, by evicting exactly the same. With required domains the
                # same victims may be passed over then (``DomainRoom``).
                if count == whole and found.is_all and not has_required_domains(self.ssn, self.part.job):
                    return found.gone
                self.stmt.rollback(self._start, remember=False)
            count = min(2 * count, whole) if failed > whole else (solved + failed) // 2
        last = self._solve(whole, recorded, generator)
        return last.gone if last is not None else None

    def _solve(self, count: int, recorded: RecordedVictims, generator: Generator) -> RecordedVictims | None:
        """Return the victims that make room for the first tasks of the part, the recorded ones among them, or None."""
        ssn, tasks = self.ssn, dict[int, list[int]]()
        for row in self.part.rows[:count]:
            tasks.setdefault(self._sub_of[row], []).append(row)
        part = self.part if count == len(self.part.rows) else Part(self.part.job, tasks)
        possible = with_devices(ssn, part)
        # Nodes of victims count as well, because evictions make room there.
        possible[ssn.tables.tasks.node[list(recorded.gone)]] = True
        request = Request(ssn, part, self.candidates, recorded.rows, possible)
        found = None
        if recorded.groups and request.domains.allows(recorded.rows):
            found = self._attempt(part, recorded.groups, possible, generator.name)
            if found is not None:
                return found
        for groups in generator.sets(request):
            found = self._attempt(part, (*recorded.groups, *groups), possible, generator.name)
            if found is not None or self.is_cut:
                break
        else:
            self._count(generator.name, SearchResult.GENERATORS_EXHAUSTED)
        tally(ssn, Tally.RULED_OUT, request.ruled_out)
        return found

    def _attempt(
        self, part: Part, groups: Sequence[Sequence[int]], possible: Bool, generator: str
    ) -> RecordedVictims | None:
        """Evict groups of victims, unless that has failed before. Return them, or None."""
        rows = [row for group in groups for row in group]
        # The number of tasks is enough, because the first tasks of the part are always taken in the same order.
        question = len(part.rows), frozenset(rows)
        if question in self._failed:
            self._count(generator, SearchResult.DUPLICATE)
            return None
        within = possible.copy()
        within[self.ssn.tables.tasks.node[rows]] = True
        gone = self._try(part, rows, within)
        self._count(generator, gone if isinstance(gone, SearchResult) else SearchResult.SOLVED)
        if isinstance(gone, SearchResult):
            self._failed.add(question)
            return None
        there = set(gone)
        # Quirk of KAI, kept on purpose: a group of which one task leaves is evicted whole for the next larger part,
        # also its tasks that have just found their places again.
        return RecordedVictims(tuple(tuple(group) for group in groups if not there.isdisjoint(group)), gone, len(rows))

    def _count(self, generator: str, result: SearchResult) -> None:
        """Count a set of victims or the end of a generator, with the steps since the one before."""
        taken = self._allowed.taken
        # A set that was cut before its simulation is left out, as in KAI, which looks at the time before each set.
        if result is not SearchResult.DEADLINE_EXHAUSTED:
            key = TriedSets(self.ssn.trace.action, generator, result, taken - self._counted)
            self.ssn.trace.counts[key] += 1
        self._counted = taken

    def _try(self, part: Part, rows: Sequence[int], within: Bool) -> tuple[int, ...] | SearchResult:
        """Evict, place and validate. Return the victims, or why there are none, with nothing changed."""
        ssn, tables = self.ssn, self.ssn.tables
        operations = len(set(tables.tasks.sub[list(rows)].tolist())) if rows else 1
        if not self._allowed.evict(len(rows), operations, shared=ssn.ledger.devices is not None):
            return SearchResult.DEADLINE_EXHAUSTED
        self.tries += 1
        tally(ssn, Tally.SIMULATED)
        with self.stmt.trial() as trial:
            evict_all(ssn, self.stmt, rows, self.rules.reason)
            # In queue order with the victims, and not the part alone: otherwise a job could take nodes that its victims
            # deserve more, and the next cycle would give them back.
            every = self.rules.every_victim_placed
            replacement = Replacement(ssn, self.stmt, part, rows, self.waiting, within, every=every)
            placed = replacement.run()
            # After a cut, victims may be without a place only because the tries ran out.
            if self.is_cut or not replacement.is_part_placed:
                return SearchResult.UNSOLVED
            # A victim without a place ends the simulation here, and is what KAI's validator finds in the end.
            if not placed or not self._is_valid(Scenario(part, list(rows))):
                return SearchResult.VALIDATOR_REJECTED
            trial.keep()
        status, leaving = tables.tasks.status, tables.tasks.leaving
        return tuple(row for row in rows if status[row] == RELEASING or leaving[row] >= 0)

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
    # A part with one task that needs no GPU may use nodes without GPUs, and KAI does not look at each task alone.
    if not needs_gpus(tables, part):
        return np.ones(len(tables.nodes.facts), dtype=bool)
    gpu, books = tables.axis.column[GPU_RESOURCE], tables.nodes.books
    found: Bool = (books[:, IDLE, gpu] > 0) | (books[:, LEAVING, gpu] - books[:, PIPELINED, gpu] > 0)
    return found if ssn.ledger.devices is None else found | ssn.ledger.devices.remainders()
