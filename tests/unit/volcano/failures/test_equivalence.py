"""Jobs that fail as others like them did are not tried."""

from __future__ import annotations

from typing import Any

import numpy as np

from pumice.api import ROWS, Bool, Candidates, Session, Task, TaskRows, plugin, points
from pumice.framework.memo import Memo
from pumice.model.blockers import CannotEvict
from pumice.model.events import Object, Seen
from pumice.testing.build import cluster, node, pod, policy, run
from tests.unit.framework.kit import answers_equally
from tests.unit.volcano.evicting import LEVELS, gang


class Counting:
    """Policies with a plugin that protects all tasks, and how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def policy(self, *, equal: bool) -> Any:
        asked = self.asked

        def nobody(ssn: Session, preemptor: Task, candidates: Candidates) -> Bool:
            asked.append((preemptor.key, len(candidates)))
            return np.zeros(len(candidates), dtype=bool)

        mine = plugin("nobody")(points.preemptable(reads=(ROWS,))(nobody))
        conf = """
        actions: preempt
        tiers:
        - plugins: [{name: priority, enablePreemptable: false}, {name: gang, enablePreemptable: false}, {name: nobody}]
        """
        return policy(conf, plugins=[answers_equally(mine) if equal else mine])


def crowd(count: int) -> list[Object]:
    jobs = [each for i in range(count) for each in gang(f"g{i}", 2, 2, creation=float(i + 1))]
    return [node("n0", 2), node("n1", 2), *gang("low", 2, on="n0"), *gang("more", 2, on="n1"), *jobs]


def test_one_of_many_equal_jobs_is_tried_and_the_next_cycle_none() -> None:
    counting, memo = Counting(), Memo()
    under, store = counting.policy(equal=True), cluster(LEVELS, crowd(20))
    first = run(store, under, memo=memo)
    assert {key for key, _ in counting.asked} == {"ns/g0-0"}
    reports = [e.subject for e in first.outcome.entries if isinstance(e.finding, CannotEvict)]
    assert len(reports) == 20
    counting.asked.clear()
    again = run(store, under, memo=memo)
    assert counting.asked == []
    assert list(again.outcome.entries) == list(first.outcome.entries)
    store.apply(Seen(pod("low-0", "low", on="n0", priority=1, labels={"new": "yes"})))
    run(store, under, memo=memo)
    assert counting.asked


def test_a_hook_that_may_tell_preemptors_apart_is_asked_about_each() -> None:
    counting = Counting()
    run(cluster(LEVELS, crowd(3)), counting.policy(equal=False))
    assert {key for key, _ in counting.asked} >= {"ns/g0-0", "ns/g1-0", "ns/g2-0"}


def test_hooks_about_one_node_are_asked_node_by_node() -> None:
    seen: list[int] = []

    @plugin("one-node")
    @points.preemptable
    def one_node(ssn: Session, preemptor: Task, candidates: TaskRows) -> Bool:
        seen.append(len(np.unique(ssn.tables.tasks.node[candidates.rows])))
        return np.zeros(len(candidates), dtype=bool)

    conf = "actions: preempt\ntiers: [{plugins: [{name: gang, enablePreemptable: false}, {name: one-node}]}]"
    run(cluster(LEVELS, crowd(1)), policy(conf, plugins=[one_node]))
    assert set(seen) == {1}
