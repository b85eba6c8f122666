"""A refused decision is undone alone: the rest is as if the refused task had never been touched."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pumice.columns.placement import Placement
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.trace import Kind, Operation
from pumice.model.blockers import Refused
from pumice.model.decisions import Bind, Decision, Refusal
from pumice.model.events import Object
from pumice.testing.build import cluster, node, podgroup, pods, session
from tests.properties.test_rollback import FLAT, do_something
from tests.properties.worlds import Shape, worlds


class Refusing:
    """A planner that says no to some pods, and remembers to what it said yes."""

    def __init__(self, pods: set[str]) -> None:
        self.pods = pods
        self.taken: list[Decision] = []

    def submit(self, decisions: Sequence[Decision]) -> dict[int, Refusal]:
        self.taken += [decision for decision in decisions if decision.pod not in self.pods]
        return {i: Refusal("no") for i, decision in enumerate(decisions) if decision.pod in self.pods}


def without(ssn: Session, op: Operation, pods: set[str]) -> Operation:
    """The operation less the tasks of these pods."""
    placed = op.placement
    kept = [i for i, row in enumerate(placed.rows) if ssn.tables.tasks.pods[row].key not in pods]
    return op._replace(placement=Placement([placed.rows[i] for i in kept], [placed.nodes[i] for i in kept]))


@given(objects=worlds(Shape()), dice=st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_refused_tasks_are_undone_alone(objects: list[Object], dice: Random) -> None:
    store = cluster(*objects)
    planner = Refusing(set())
    ssn = session(store, FLAT, planner=planner)
    assume(not ssn.is_idle)  # where nothing waits, a session may not be written on
    stmt = ssn.statement()
    for _ in range(dice.randint(1, 5)):
        do_something(ssn, stmt, dice)
    ops = stmt.save()
    decided = [row for op in ops if op.kind is not Kind.PIPELINE for row in op.placement.rows]
    touched = sorted({ssn.tables.tasks.pods[row].key for row in decided})
    planner.pods = {key for key in touched if dice.random() < 0.4}
    assert sorted(stmt.commit()) == sorted(planner.pods)
    assert {d.pod for d in planner.taken} == set(touched) - planner.pods

    twin = session(store, FLAT, planner=Refusing(set()))
    other = twin.statement()
    other.recover(tuple(less for op in ops if (less := without(twin, op, planner.pods)).placement.rows))
    assert other.commit() == []
    assert twin.world.digest() == ssn.world.digest()


def test_decisions_are_submitted_in_order_and_once() -> None:
    planner = Refusing({"ns/g-1"})
    ssn = session(cluster(node("n"), podgroup("g"), pods("g", 3)), planner=planner)
    rows = ssn.tables.jobs.tasks[0].tolist()
    stmt = ssn.statement()
    stmt.allocate(rows, [0, 0, 0])
    assert stmt.commit() == ["ns/g-1"]
    assert planner.taken == [Bind(f"ns/g-{i}", f"ns-g-{i}", "n", "ns/g") for i in (0, 2)]
    assert [entry.subject for entry in ssn.trace.entries if isinstance(entry.finding, Refused)] == ["ns/g-1"]
