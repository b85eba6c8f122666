"""The search for victims against a twin that is slow and obvious: no bound, no evictions that stand, nobody passed over
because one like it failed, every scenario simulated from the beginning."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.kai.engine import single_task as following
from pumice.kai.engine.equivalence import Alike
from pumice.kai.engine.job_order import Standing
from pumice.kai.engine.parts import Part, Scenario
from pumice.kai.engine.place_part import Placer
from pumice.kai.engine.points import solution_start
from pumice.kai.engine.replacement import Replacement, Waiting
from pumice.kai.engine.single_task import Following
from pumice.kai.engine.solve import NoSolution, Rules, Solution, evict_all, with_devices
from pumice.kai.engine.victims.candidates import Candidates
from pumice.state.store import Store
from tests.unit.kai.cluster import cycle, job, node, policy, queue, store

SEEDS = range(15, 27)
RELEASING = 6


def slow_solve(
    ssn: Session, stmt: Statement, part: Part, rules: Rules, waiting: Waiting, standing: Standing
) -> Solution | NoSolution:
    queues = [leaf for leaf in standing.leaves if rules.of_queue(ssn, part.job, leaf)]
    ssn.ask(solution_start)
    recorded: list[int] = []
    sub_of = {row: sub for sub, rows in part.tasks.items() for row in rows}
    start = stmt.mark()
    for count in range(1, len(part.rows) + 1):
        stmt.rollback(start)
        tasks: dict[int, list[int]] = {}
        for row in part.rows[:count]:
            tasks.setdefault(sub_of[row], []).append(row)
        candidates = Candidates(ssn, standing, queues, rules.may_leave(ssn, part.job))
        found = _grow(ssn, stmt, Part(part.job, tasks, alone=True), rules, waiting, candidates, recorded)
        if found is None:
            return NoSolution.AFTER_TRIES
        recorded = found
    return Solution(tuple(recorded))


def _grow(
    ssn: Session,
    stmt: Statement,
    part: Part,
    rules: Rules,
    waiting: Waiting,
    candidates: Candidates,
    recorded: list[int],
) -> list[int] | None:
    tasks = ssn.tables.tasks
    possible = with_devices(ssn, part)
    possible[tasks.node[recorded]] = True
    potential: list[tuple[int, int]] = []  # job, row

    def tried(evicted: list[int]) -> tuple[list[int] | None, bool]:
        within = possible.copy()
        within[tasks.node[evicted]] = True
        with stmt.trial() as trial:
            evict_all(ssn, stmt, [*recorded, *evicted], rules.reason)
            placed = Replacement(ssn, stmt, part, [*recorded, *evicted], waiting, within).run()
            scenario = Scenario(part, [*recorded, *evicted])
            lost = rules.every_victim_placed and scenario.gone(ssn.tables)
            if placed and not lost and ssn.ask(rules.valid, scenario):
                trial.keep()
        if trial.kept:
            left = (tasks.status == RELEASING) | (tasks.leaving >= 0)
            return [row for row in (*recorded, *evicted) if left[row]], True
        return None, placed

    if recorded and (found := tried([])[0]) is not None:
        return found
    for chunk in candidates.chunks(frozenset(recorded)):
        potential += [(chunk.job, row) for row in chunk.rows]
        for each in chunk.nodes:
            there = dict.fromkeys(of for of, row in potential if tasks.node[row] == each)
            evicted = [row for job in there for of, row in potential if of == job]
            found, placed = tried(evicted)
            if found is not None:
                return found
            if placed:
                possible[tasks.node[evicted]] = True
                break
    return None


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
    monkeypatch.setattr(following, "solve", slow_solve)
    monkeypatch.setattr(Following, "_is_led", lambda *_: False)
    monkeypatch.setattr(Placer, "_sole", lambda *_: -1)
    monkeypatch.setattr(Replacement, "_pass_over_alike", lambda *_: None)
    monkeypatch.setattr(Alike, "failed", lambda *_: False)
    slow = cycle(crowded(seed), policy())
    assert quick.decisions == slow.decisions
    assert quick.states == slow.states
    assert len(set(quick.evicted)) == len(quick.evicted), "a pod leaves once, though it may be promised other places"


def test_the_clusters_have_something_to_decide() -> None:
    ran = [cycle(crowded(seed), policy()) for seed in SEEDS]
    assert sum(bool(each.evicted) for each in ran) >= 4
