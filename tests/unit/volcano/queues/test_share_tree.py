"""The tree of hierarchical drf: a victim's absence found from the nodes above it alone is what the whole tree gives."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.columns.rows import Candidates
from pumice.columns.views import Queue, Task
from pumice.framework.cycle.session import Session
from pumice.testing.build import cluster, node, pod, podgroup, queue, session
from pumice.volcano.queues.share_tree import PATH, WEIGHTS, ShareTree

CONF = "actions: allocate\ntiers: [{plugins: [{name: drf, enableHierarchy: true}]}]"
PATHS = ("root/a/x", "root/a/y", "root/b", "root/c/d/e")


def opened(*objects: Any) -> Session:
    queues = [queue(f"q{i}", annotations={PATH: path, WEIGHTS: "1/2/3/1"}) for i, path in enumerate(PATHS)]
    return session(cluster(queues, *objects), CONF)


def tree_of(ssn: Session) -> ShareTree:
    found = ssn.hooks.plugin("drf").tree
    assert isinstance(found, ShareTree)
    return found


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_without_a_victim(data: st.DataObject) -> None:
    groups, pods = [], []
    for i in range(data.draw(st.integers(1, 8))):
        groups.append(podgroup(f"g{i}", 1, f"q{data.draw(st.integers(0, 3))}", phase="Running"))
        for k in range(data.draw(st.integers(1, 2))):
            on = "n" if k == 0 or data.draw(st.booleans()) else ""
            pods.append(pod(f"p{i}-{k}", f"g{i}", data.draw(st.integers(0, 3)), on=on))
    groups.append(podgroup("w", 1, "q0", phase="Inqueue"))
    waiting = pod("w", "w", data.draw(st.integers(1, 3)))
    ssn = opened(node("n", data.draw(st.sampled_from([6, 10, 30]))), groups, pods, waiting)
    tree, tasks = tree_of(ssn), ssn.tables.tasks
    rows = np.array([row for row, each in enumerate(tasks.pods) if each is not None and each.node_name])
    reclaimer = Task(ssn.tables, next(row for row, p in enumerate(tasks.pods) if p is not None and p.name == "w"))
    candidates = Candidates(ssn.tables, rows)
    found = tree.reclaimable(reclaimer, candidates)
    live = ssn.live_jobs
    for victim, row in zip(found.tolist(), rows.tolist(), strict=True):
        allocated = ssn.hooks.plugin("drf").allocated.array.copy()
        task = Task(ssn.tables, row)
        allocated[reclaimer.job.row] += reclaimer.req
        allocated[task.job.row] -= task.req
        held = allocated[live]
        whole = tree.evaluate(held, held.sum(axis=0) < ssn.total)
        assert victim == (tree.order(reclaimer.queue.row, task.queue.row, whole.share, whole.full) < 0)


def test_a_queue_without_jobs_has_no_share_and_is_not_saturated() -> None:
    group = podgroup("g", 1, "q0", phase="Running")
    ssn = opened(node("n", 4), group, pod("p", "g", 1, on="n"))
    empty, used = (Queue(ssn.tables, ssn.tables.queues.row_of[name]) for name in ("q1", "q0"))
    assert tree_of(ssn).compare(empty, used) < 0
    assert tree_of(ssn).compare(empty, Queue(ssn.tables, ssn.tables.queues.row_of["q1"])) == 0


def test_a_weight_that_is_no_number_is_one() -> None:
    queues = [
        queue("a", annotations={PATH: "root/a", WEIGHTS: "1/many"}),
        queue("b", annotations={PATH: "root/b", WEIGHTS: "1/-5"}, creation=1.0),
    ]
    groups = [podgroup("g", 1, "a", phase="Running"), podgroup("h", 1, "b", phase="Running")]
    pods = [pod("p", "g", 1, on="n"), pod("q", "h", 2, on="n")]
    ssn = session(cluster(node("n", 9), queues, groups, pods), CONF)
    a, b = (Queue(ssn.tables, ssn.tables.queues.row_of[name]) for name in "ab")
    assert tree_of(ssn).compare(a, b) < 0
