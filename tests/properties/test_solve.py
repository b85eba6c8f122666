"""The search for victims against a twin that is slow and obvious: no bound, no evictions that are kept, no job
skipped because an equal one failed, every scenario simulated from the beginning."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pumice.columns.dtypes import Bool
from pumice.columns.nodes import IDLE, PIPELINED
from pumice.columns.nodes import RELEASING as LEAVING
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.framework.plugin.policy_file import Policy
from pumice.kai.actions import consolidation
from pumice.kai.engine import single_task as following
from pumice.kai.engine.equivalence import EqualJobs
from pumice.kai.engine.job_order import SortedJobs
from pumice.kai.engine.next_queue import Waiting
from pumice.kai.engine.parts import Chunk, Part, Scenario
from pumice.kai.engine.placement.best_nodes import BestNodes
from pumice.kai.engine.points import solution_start
from pumice.kai.engine.replacement import Replacement
from pumice.kai.engine.single_task import Following
from pumice.kai.engine.solve import NoSolution, Rules, Solution, evict_all, with_devices
from pumice.kai.engine.victims.candidates import Candidates
from pumice.model.events import Object
from pumice.state.store import Store
from tests.unit.kai.cluster import GPU, cycle, job, node, policy, queue, store

SEEDS = range(15, 27)
RELEASING = 6


def slow_solve(
    ssn: Session, stmt: Statement, part: Part, rules: Rules, waiting: Waiting, sorted_jobs: SortedJobs
) -> Solution | NoSolution:
    """Both ways of making sets of victims, each from nothing; parts of 1, 2, 4 tasks, then of numbers in between."""
    queues = [leaf for leaf in sorted_jobs.leaves if rules.of_queue(ssn, part.job, leaf)]
    ssn.ask(solution_start)
    start, whole = stmt.mark(), len(part.rows)
    for sets in (_by_node, _by_capacity):
        solved, failed, recorded = 0, whole + 1, list[list[int]]()
        search = Slow(
            ssn,
            stmt,
            part,
            rules,
            waiting,
            Candidates(ssn, sorted_jobs, queues, rules.may_leave(ssn, part.job), most=rules.most),
        )
        count = 1
        while failed - solved > 1:
            found = search.solve(count, recorded, sets)
            stmt.rollback(start)
            if found is None:
                failed = count
            else:
                solved, recorded = count, found[0]
            count = min(2 * count, whole) if failed > whole else (solved + failed) // 2
        if solved and (found := search.solve(whole, recorded, sets)) is not None:
            return Solution(tuple(found[1]))
    return NoSolution.AFTER_TRIES


class Slow:
    """A search without bounds, of which nothing is remembered."""

    def __init__(
        self, ssn: Session, stmt: Statement, part: Part, rules: Rules, waiting: Waiting, candidates: Candidates
    ) -> None:
        self.ssn, self.stmt, self.part, self.rules, self.waiting = ssn, stmt, part, rules, waiting
        self.candidates, self.sub_of = candidates, {row: sub for sub, rows in part.tasks.items() for row in rows}

    def solve(self, count: int, recorded: list[list[int]], sets: Sets) -> tuple[list[list[int]], list[int]] | None:
        """The groups of victims for so many tasks, and those of them that leave."""
        tasks: dict[int, list[int]] = {}
        for row in self.part.rows[:count]:
            tasks.setdefault(self.sub_of[row], []).append(row)
        part, gone = Part(self.part.job, tasks), [row for group in recorded for row in group]
        possible = with_devices(self.ssn, part)
        possible[self.ssn.tables.tasks.node[gone]] = True
        if recorded and (found := self.tried(part, recorded, possible)) is not None:
            return found
        chunks: list[Chunk] = []
        for chunk in self.candidates.chunks(frozenset(gone)):
            chunks.append(chunk)
            for groups in sets(self.ssn, part, gone, chunks, possible):
                if groups and (found := self.tried(part, [*recorded, *groups], possible)) is not None:
                    return found
        return None

    def tried(self, part: Part, groups: list[list[int]], possible: Bool) -> tuple[list[list[int]], list[int]] | None:
        ssn, tasks, rows = self.ssn, self.ssn.tables.tasks, [row for group in groups for row in group]
        within = possible.copy()
        within[tasks.node[rows]] = True
        with self.stmt.trial() as trial:
            evict_all(ssn, self.stmt, rows, self.rules.reason)
            placed = Replacement(ssn, self.stmt, part, rows, self.waiting, within).run()
            scenario = Scenario(part, rows)
            lost = self.rules.every_victim_placed and scenario.gone(ssn.tables)
            if placed and not lost and ssn.ask(self.rules.valid, scenario):
                trial.keep()
        if not trial.kept:
            return None
        left = (tasks.status == RELEASING) | (tasks.leaving >= 0)
        return [group for group in groups if left[group].any()], [row for row in rows if left[row]]


Sets = Callable[[Session, Part, list[int], list[Chunk], Bool], list[list[list[int]]]]


def _by_node(ssn: Session, part: Part, gone: list[int], chunks: list[Chunk], possible: Bool) -> list[list[list[int]]]:
    """For each node of the newest chunk: all victims of the jobs that have one there, by job."""
    names, found = ssn.tables.nodes.facts.names, []
    for node_ in sorted(chunks[-1].nodes, key=names.__getitem__):
        there = dict.fromkeys(chunk.job for chunk in chunks if node_ in chunk.nodes)
        found.append([[row for chunk in chunks if chunk.job == each for row in chunk.rows] for each in there])
    return found


def _by_capacity(
    ssn: Session, part: Part, gone: list[int], chunks: list[Chunk], possible: Bool
) -> list[list[list[int]]]:
    """The first nodes by what they can give, as many as are needed, then more and more."""
    tables = ssn.tables
    gpu, books, node_of = tables.axis.column[GPU], tables.nodes.books, tables.tasks.node
    ask = tables.classes.charge[tables.tasks.cls, gpu]
    room = books[:, IDLE, gpu] + books[:, LEAVING, gpu] - books[:, PIPELINED, gpu]
    with_recorded = room.copy()
    np.add.at(with_recorded, node_of[gone], ask[gone])
    room = with_recorded.copy()
    rows = [row for chunk in chunks for row in chunk.rows]
    np.add.at(room, node_of[rows], ask[rows])
    seen = list(dict.fromkeys(each for chunk in chunks for each in chunk.nodes))
    nodes = sorted((each for each in seen if room[each] >= ask[part.rows].min()), key=lambda each: room[each])
    others = possible.copy()
    others[seen] = False
    missing = float(ask[part.rows].sum() - with_recorded[others].sum())
    counts = [n for n in range(len(nodes) + 1) if sum(room[nodes[:n]]) >= missing or (n == 0 and missing <= 0)]
    if not counts:
        return []
    at, step, wanted = counts[0], 1, []
    while at < len(nodes):
        wanted.append(at)
        at, step = at + step, 2 * step
    return [[list(chunk.rows) for chunk in chunks if set(chunk.nodes) & set(nodes[:n])] for n in [*wanted, len(nodes)]]


def fragmented(seed: int) -> Store:
    """Nodes of which each has some GPUs free, small jobs that run, and gangs that wait for whole nodes in queues with
    limits."""
    dice = np.random.default_rng(seed)
    room = [4] * 6
    queues = [queue("d"), *(queue(f"q{i}", 4, "d", limit=float(dice.integers(8, 22))) for i in range(2))]
    jobs: list[Object] = []
    for i in range(9):
        places = []
        for _ in range(int(dice.integers(1, 3))):
            place = int(dice.choice([n for n, free in enumerate(room) if free > 1]))
            room[place] -= 1
            places.append(f"n{place}")
        jobs += job(f"runs{i}", f"q{dice.integers(2)}", places, age=float(100 - i))
    for i in range(3):
        tasks = [""] * int(dice.integers(1, 5))
        jobs += job(f"waits{i}", f"q{dice.integers(2)}", tasks, int(dice.integers(2, 5)), age=float(10 - i))
    return store(*(node(f"n{i}", 4) for i in range(len(room))), *queues, jobs)


def crowded(seed: int) -> Store:
    """Few GPUs, and jobs of all sizes that run or wait in queues of several levels."""
    dice = np.random.default_rng(seed)
    size = int(dice.integers(2, 5))
    nodes = [node(f"n{i}", size) for i in range(3)]
    queues = [queue("d0"), queue("d1"), *(queue(f"q{i}", int(dice.integers(0, 5)), f"d{i % 2}") for i in range(3))]
    room, jobs = [size] * len(nodes), []
    for i in range(12):
        tasks, gpus = int(dice.integers(1, 4)), int(dice.integers(1, 3))
        places = []
        if dice.random() < 0.7:
            for _ in range(tasks):
                fits = [n for n, free in enumerate(room) if free >= gpus]
                if fits:
                    places.append(f"n{(n := int(dice.choice(fits)))}")
                    room[n] -= gpus
        minimum = int(dice.integers(1, (len(places) or tasks) + 1))
        waits = [""] * (tasks if not places else int(dice.integers(0, 2)))
        priority = int(dice.choice([50, 50, 75, 100]))
        more = {"minimum": minimum, "priority": priority, "age": float(100 - i)}
        jobs.append(job(f"j{i:02}", f"q{dice.integers(3)}", [*places, *waits], gpus, **more))  # type: ignore[arg-type]
    return store(*nodes, *queues, *jobs)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_search_finds_what_the_obvious_one_finds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = cycle(crowded(seed), policy())
    be_obvious(monkeypatch)
    slow = cycle(crowded(seed), policy())
    assert quick.decisions == slow.decisions
    assert quick.states == slow.states
    assert len(set(quick.evicted)) == len(quick.evicted), "a pod leaves once, though it may be promised other places"


@pytest.mark.parametrize("seed", SEEDS)
def test_few_jobs_of_limited_queues_are_moved_as_the_obvious_search_moves_them(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = cycle(fragmented(seed), moving())
    be_obvious(monkeypatch)
    monkeypatch.setattr(consolidation, "stays_over_limit", lambda *_: False)
    slow = cycle(fragmented(seed), moving())
    assert (quick.decisions, quick.states) == (slow.decisions, slow.states)


def moving() -> Policy:
    return policy(["allocate", "consolidation"], consolidation={"maxConsolidationPreemptees": 3})


def be_obvious(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "solve", slow_solve)
    monkeypatch.setattr(Following, "_is_led", lambda *_: False)
    monkeypatch.setattr(BestNodes, "_sole", lambda *_: -1)
    monkeypatch.setattr(Replacement, "_pass_over_equal", lambda *_: None)
    monkeypatch.setattr(EqualJobs, "failed", lambda *_: False)


def test_the_clusters_have_something_to_decide() -> None:
    ran = [cycle(crowded(seed), policy()) for seed in SEEDS]
    assert sum(bool(each.evicted) for each in ran) >= 4


def test_there_are_jobs_to_move() -> None:
    assert sum(bool(cycle(fragmented(seed), moving()).evicted) for seed in SEEDS) >= 4
