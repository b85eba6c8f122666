"""A refused decision is undone alone: what stands is as if the refused task had never been touched."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.framework.session import Session
from pumice.framework.statement import Kind, Operation
from pumice.model.decisions import Bind, Decision, Refusal
from pumice.model.events import Object
from pumice.testing.build import cluster, session
from pumice.testing.moving import differing, moving_bytes
from tests.properties.test_rollback import FLAT, do_something
from tests.properties.worlds import Shape, worlds


class Refusing:
    """A planner that says no to some pods, and remembers to what it said yes."""

    def __init__(self, pods: set[str]) -> None:
        self.pods = pods
        self.taken: list[Decision] = []

    def submit(self, decision: Decision) -> Refusal | None:
        if decision.pod in self.pods:
            return Refusal("no")
        self.taken.append(decision)
        return None


def without(ssn: Session, op: Operation, pods: set[str]) -> Operation:
    """The operation less the tasks of these pods."""
    kept = [i for i, row in enumerate(op.rows) if ssn.tables.tasks.pods[row].key not in pods]
    return op._replace(rows=[op.rows[i] for i in kept], nodes=[op.nodes[i] for i in kept])


@given(objects=worlds(Shape()), dice=st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_refused_tasks_are_undone_alone(objects: list[Object], dice: Random) -> None:
    store = cluster(*objects)
    planner = Refusing(set())
    ssn = session(store, FLAT, planner=planner)
    stmt = ssn.statement()
    for _ in range(dice.randint(1, 5)):
        do_something(ssn, stmt, dice)
    ops = stmt.save()
    touched = sorted({ssn.tables.tasks.pods[row].key for op in ops if op.kind is not Kind.PIPELINE for row in op.rows})
    planner.pods = {key for key in touched if dice.random() < 0.4}
    assert sorted(stmt.commit()) == sorted(planner.pods)
    assert {d.pod for d in planner.taken} == set(touched) - planner.pods

    twin = session(store, FLAT, planner=Refusing(set()))
    other = twin.statement()
    other.recover(tuple(less for op in ops if (less := without(twin, op, planner.pods)).rows))
    assert other.commit() == []
    assert not differing(moving_bytes(twin), moving_bytes(ssn))


def test_decisions_are_submitted_in_order_and_once() -> None:
    from pumice.testing.build import node, podgroup, pods

    planner = Refusing({"ns/g-1"})
    ssn = session(cluster(node("n"), podgroup("g"), pods("g", 3)), planner=planner)
    rows = ssn.tables.jobs.tasks[0].tolist()
    stmt = ssn.statement()
    stmt.allocate(rows, [0, 0, 0])
    assert stmt.commit() == ["ns/g-1"]
    assert planner.taken == [Bind(f"ns/g-{i}", f"ns-g-{i}", "n", "ns/g") for i in (0, 2)]
    assert [entry[1:3] for entry in ssn.story] == [("ns/g-1", "bind refused")]
