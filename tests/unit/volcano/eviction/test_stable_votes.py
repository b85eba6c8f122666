"""What plugins declare of victims a little later is so: whom they name when some have left, and when more was
promised."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.api import BY_JOB, COUNTS_DOWN, NOBODY_NEW, AnyArray, Bool, Candidates, Session, Task, points
from pumice.framework.plugin.hooks import Hook
from pumice.model.events import Object
from pumice.testing.build import cluster, queue, session
from pumice.volcano.eviction.candidates import RUNNING, Supply, evictable
from pumice.volcano.eviction.node_search import waiting_tasks
from pumice.volcano.eviction.stable_votes import Ballot
from tests.unit.volcano.evicting import LEVELS, gang
from tests.unit.volcano.eviction.test_equal_swaps import one_each, random_world

TIERS = """
actions: "preempt, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: proportion}]
"""
AT = {"preempt": (points.preemptable, "default"), "reclaim": (points.reclaimable, "other")}
WORDS = (BY_JOB, COUNTS_DOWN, NOBODY_NEW)


def opened(objects: list[Object]) -> Session:
    return session(cluster(LEVELS, [queue("default"), queue("other")], objects), TIERS)


def row_of(ssn: Session, name: str) -> int:
    return next(row for row, each in enumerate(ssn.tables.tasks.pods) if each is not None and each.name == name)


def named(hook: Hook, task: Task, rows: AnyArray) -> set[int]:
    mask = hook.call(task, Candidates(task.tables, rows))
    return set(rows.tolist()) if mask is None else set(rows[mask].tolist())


def on(ssn: Session, node_row: int, *, one_of_each: bool, equal: bool) -> AnyArray:
    """Running tasks of gangs on a node; only one of each job, or those of one class."""
    supply = Supply(ssn, evictable(ssn).rows, RUNNING)
    rows = supply.on(np.array([node_row])).rows
    if equal and len(rows):
        rows = rows[ssn.tables.tasks.cls[rows] == ssn.tables.tasks.cls[rows[0]]]
    if one_of_each:
        rows = rows[np.sort(np.unique(ssn.tables.tasks.job[rows], return_index=True)[1])]
    return np.asarray(rows)


@pytest.mark.parametrize("action", AT)
def test_hooks_name_the_others_still_when_one_has_left_and_its_place_was_promised(action: str) -> None:
    point, of = AT[action]
    tried = 0
    for seed in range(4):
        ssn = opened(random_world(seed, of))
        job = int(ssn.tables.tasks.job[row_of(ssn, "high0-0")])
        first, second = waiting_tasks(ssn, job)[:2]
        for hook in ssn.hooks.at(point):
            said = set(hook.reads or ()) & {BY_JOB, COUNTS_DOWN}
            for place in range(5) if said else ():
                rows = on(ssn, place, one_of_each=BY_JOB in said, equal=BY_JOB not in said)
                before = named(hook, Task(ssn.tables, first), rows)
                for gone in sorted(before):
                    with ssn.statement() as stmt:
                        stmt.evict([gone], "go")
                        stmt.pipeline([first], [place])
                        assert named(hook, Task(ssn.tables, second), rows[rows != gone]) == before - {gone}, hook
                    tried += 1
    assert tried > 20


@pytest.mark.parametrize("action", AT)
def test_hooks_name_nobody_new_when_more_was_promised_to_the_job(action: str) -> None:
    point, of = AT[action]
    tried = 0
    for seed in range(4):
        ssn = opened(random_world(seed, of))
        job = int(ssn.tables.tasks.job[row_of(ssn, "high0-0")])
        first, second = waiting_tasks(ssn, job)[:2]
        for hook in ssn.hooks.at(point):
            for place in range(5) if {BY_JOB, NOBODY_NEW} & set(hook.reads or ()) else ():
                rows = on(ssn, place, one_of_each=False, equal=False)
                before = named(hook, Task(ssn.tables, first), rows)
                with ssn.statement() as stmt:
                    stmt.pipeline([first], [(place + 1) % 5])
                    assert named(hook, Task(ssn.tables, second), rows) <= before, hook
                tried += 1
    assert tried > 20


def votes(ssn: Session, action: str, place: int) -> tuple[Bool | None, Bool, Bool]:
    """Whom the ballot is sure of, whether it is of nobody, and whom plugins name together."""
    asks = points.preemptable_victims if action == "preempt" else points.reclaimable_victims
    task, ballot = Task(ssn.tables, row_of(ssn, "high-0")), Ballot(ssn, asks)
    candidates = Supply(ssn, evictable(ssn).rows, RUNNING).on(np.array([place]))
    return ballot.named(task, candidates), ballot.nobody(task, candidates), ssn.ask(asks, task, candidates)


@pytest.mark.parametrize(
    ("action", "minimum", "cpu", "sure", "nobody"),
    [
        pytest.param("preempt", 1, 1, True, False, id="each job by itself"),
        pytest.param("preempt", 4, 1, False, False, id="no gang can spare one, and shares decide"),
        pytest.param("preempt", 4, 5, False, True, id="no gang can spare one, nor has a larger share"),
        pytest.param("reclaim", 4, 1, True, False, id="no gang can spare one, and a queue gives back"),
    ],
)
def test_of_what_the_ballot_is_sure(action: str, minimum: int, cpu: int, sure: bool, nobody: bool) -> None:
    lows = one_each(4, AT[action][1], minimum=minimum)
    ssn = opened([*lows, *gang("high", 2, 2, level="high", creation=9.0, cpu=cpu)])
    said, hopeless, wanted = votes(ssn, action, 0)
    assert bool(hopeless[0]) is nobody
    assert (said is not None) is sure
    if said is not None:
        assert said.tolist() == wanted.tolist()
