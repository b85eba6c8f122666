"""S8: whatever a trial did, taking it back restores every byte; and a plan done again gives the same bytes."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pumice.columns.tasks import NO_GATE
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.model.events import Object
from pumice.model.status import TaskStatus
from pumice.testing.build import cluster, session
from pumice.testing.moving import differing, fixed_bytes, moving_bytes
from tests.properties.worlds import Shape, worlds

CONF = """
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins:
  - {name: overcommit}
  - {name: drf, enableHierarchy: HIERARCHY}
  - {name: predicates}
  - {name: PROPORTION}
  - {name: nodeorder}
  - {name: binpack}
  - {name: network-topology-aware}
"""
FLAT = CONF.replace("HIERARCHY", "false").replace("PROPORTION", "proportion")
TREE = CONF.replace("HIERARCHY", "true").replace("PROPORTION", "conformance")
EVICTABLE = [TaskStatus.RUNNING, TaskStatus.BOUND, TaskStatus.BINDING]


def placeable(ssn: Session) -> list[list[int]]:
    """Pending tasks without gates, equal ones of one sub-job together."""
    tasks = ssn.tables.tasks
    found: dict[tuple[int, int], list[int]] = {}
    for row in ((tasks.status == TaskStatus.PENDING) & (tasks.gate == NO_GATE)).nonzero()[0].tolist():
        if tasks.job[row] >= 0:
            found.setdefault((int(tasks.sub[row]), int(tasks.cls[row])), []).append(row)
    return list(found.values())


def do_something(ssn: Session, stmt: Statement, dice: Random) -> None:
    """Allocate or pipeline a few equal tasks anywhere, or evict one."""
    tasks = ssn.tables.tasks
    runs = placeable(ssn)
    victims = [r for s in EVICTABLE for r in (tasks.status == s).nonzero()[0].tolist() if tasks.job[r] >= 0]
    if victims and (not runs or dice.random() < 0.3):
        stmt.evict([dice.choice(victims)], "test")
    elif runs:
        rows = dice.choice(runs)
        rows = rows[: dice.randint(1, len(rows))]
        nodes = [dice.randrange(len(ssn.tables.nodes.facts)) for _ in rows]
        if dice.random() < 0.6:
            stmt.allocate(rows, nodes)
        else:
            stmt.pipeline(rows, nodes, evicted=dice.random() < 0.5)


def do_things(ssn: Session, stmt: Statement, dice: Random, depth: int) -> None:
    """Some operations, and trials with operations, to some depth."""
    for _ in range(dice.randint(1, 4)):
        if depth and dice.random() < 0.5:
            before = moving_bytes(ssn)
            with stmt.trial() as trial:
                do_things(ssn, stmt, dice, depth - 1)
                kept = dice.random() < 0.5
                if kept:
                    trial.keep()
            assert kept or not differing(before, moving_bytes(ssn))
        else:
            do_something(ssn, stmt, dice)


@pytest.mark.parametrize("conf", [FLAT, TREE], ids=["proportion", "hierarchy"])
@given(objects=worlds(Shape(topology=True)), dice=st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_discard_restores_every_byte(conf: str, objects: list[Object], dice: Random) -> None:
    ssn = session(cluster(*objects), conf)
    assume(not ssn.is_idle)  # where nothing waits, a session may not be written on
    before, fixed = moving_bytes(ssn), fixed_bytes(ssn)
    for _ in range(2):
        stmt = ssn.statement()
        do_things(ssn, stmt, dice, 3)
        stmt.discard()
        assert not differing(before, moving_bytes(ssn))
    assert not differing(fixed, fixed_bytes(ssn))


@given(objects=worlds(Shape(topology=True)), dice=st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_a_recovered_plan_is_the_same_as_doing_it(objects: list[Object], dice: Random) -> None:
    ssn = session(cluster(*objects), FLAT)
    assume(not ssn.is_idle)
    with ssn.statement() as stmt:
        do_things(ssn, stmt, dice, 1)
        mark = stmt.mark()
        do_things(ssn, stmt, dice, 1)
        done, plan = ssn.world.digest(), stmt.save(mark)
        stmt.rollback(mark)
        assert stmt.recover(plan) is None
        assert ssn.world.digest() == done
