"""A victim that was promised another node, and is evicted again before it got there."""

from __future__ import annotations

from pumice.framework.cycle.session import Session
from pumice.framework.memo import Memo
from pumice.model.decisions import Evict
from tests.unit.kai.cluster import NOW, Planner, job, node, policy, queue, store


def test_it_leaves_the_node_that_it_is_on_once() -> None:
    planner = Planner()
    there = store(node("a"), node("b"), queue("q"), *job("j", "q", ["a"]))
    ssn = Session(there.snapshot(), policy(("allocate",)), NOW, planner, Memo())
    ssn.open()
    row = ssn.tables.tasks.alive.nonzero()[0].tolist()[0]
    a, b = (ssn.tables.nodes.facts.row_of[name] for name in "ab")
    with ssn.statement() as stmt:
        stmt.evict([row], "first")
        once = ssn.tables.nodes.books.copy()
        stmt.promise_another([row], [b])
        stmt.evict([row], "again")
        assert (ssn.tables.nodes.books == once).all()
        assert (ssn.tables.tasks.node[row], ssn.tables.tasks.leaving[row]) == (a, -1)
        stmt.commit()
    assert [(each.node, each.reason) for each in planner.taken if isinstance(each, Evict)] == [("a", "first")]
