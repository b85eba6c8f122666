"""Which tasks queues give back: taken side by side for many nodes as one by one, by the words of the specification."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.algorithms.shares import EPS
from pumice.columns.rows import Candidates
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.testing.build import GPU, cluster, node, pod, podgroup, queue, resource, session
from pumice.volcano.eviction.victim_order import eviction_order_by_node
from pumice.volcano.plugins.capacity import Capacity

CONF = """
actions: allocate
tiers: [{plugins: [{name: capacity, enableHierarchy: %s, arguments: {ancestorReclaimLevel: %d}}]}]
"""
PARENTS = {"a": "", "b": "", "a1": "a", "a2": "a", "b1": "b", "a11": "a1", "a12": "a1"}
LEAVES = ("a11", "a12", "a2", "b1")


def reference(ssn: Session, capacity: Capacity, reclaimer: Task, rows: Sequence[int], level: int) -> list[bool]:
    """Spec 04 §8.3, Reclaimable: the candidates of one node in the order of eviction."""
    tree, of, pods = capacity.tree, capacity.of, ssn.tables.axis.pods
    left = {row: capacity.allocated.array[row].copy() for row in range(len(ssn.tables.queues))}
    own = reclaimer.queue.row

    def ancestors(row: int) -> list[int]:
        above = tree.line(row)[1:-1][:level]
        return above + [-1] * (level - len(above))

    def both(x: Any, y: Any) -> bool:
        return bool(((x >= EPS) & (y >= EPS)).any())

    def exceeds(row: int, req: Any) -> bool:
        heeded = [d for d in range(pods) if req[d] > 0]
        heeded = [d for d in heeded if (of.deserved[row, d] >= EPS if d < 2 else of.named[row, d])]
        return any(left[row][d] > of.deserved[row, d] for d in heeded)

    found = []
    for task in (Task(ssn.tables, row) for row in rows):
        req, of_task = task.req, task.queue.row
        kept = left[of_task] - req
        taken = both(req[:pods], reclaimer.req[:pods])
        taken = taken and all(g <= 0 or g - k < EPS for g, k in zip(of.guarantee[of_task], kept, strict=True))
        at_once = not both(req, of.deserved[of_task])
        taken = taken and (at_once or exceeds(of_task, req))
        related = set(ancestors(of_task)) & set(ancestors(own)) - {-1}
        if at_once and level and related and not both(reclaimer.req, of.deserved[own]):
            taken = False
        touched = [of_task]
        for above, owns in zip(ancestors(of_task), ancestors(own), strict=True):
            if above < 0 or above == owns:
                continue
            touched.append(above)
            taken = taken and (not both(req, of.deserved[above]) or exceeds(above, req))
        if taken:
            for row in touched:
                left[row] = left[row] - req
        found.append(taken)
    return found


amounts = st.builds(lambda cpu, gpu: resource(cpu, gpu=gpu), st.integers(0, 4), st.integers(0, 2))


@settings(max_examples=60, deadline=None)
@given(st.data(), st.booleans(), st.integers(0, 3))
def test_side_by_side_as_one_by_one(data: st.DataObject, hierarchy: bool, level: int) -> None:
    names = PARENTS if hierarchy else dict.fromkeys(LEAVES, "")
    queues = [
        queue(
            name,
            parent=parent,
            creation=float(i),
            deserved=data.draw(st.none() | amounts),
            guarantee=data.draw(st.none() | st.builds(resource, st.integers(0, 1))),
            priority=data.draw(st.integers(0, 1)),
        )
        for i, (name, parent) in enumerate(names.items())
    ]
    groups, pods = [], []
    for i in range(data.draw(st.integers(1, 10))):
        leaf = data.draw(st.sampled_from(LEAVES))
        groups.append(podgroup(f"g{i}", 1, leaf, phase="Running", creation=float(i)))
        on = data.draw(st.sampled_from("xy"))
        pods.append(pod(f"p{i}", f"g{i}", data.draw(st.integers(0, 2)), gpu=data.draw(st.integers(0, 1)), on=on))
    groups.append(podgroup("w", 1, data.draw(st.sampled_from(LEAVES)), phase="Inqueue"))
    pods.append(pod("w-0", "w", data.draw(st.integers(0, 2)), gpu=data.draw(st.integers(0, 1))))
    nodes = [node("x", 20, gpu=8), node("y", 20, gpu=8)]
    ssn = session(cluster(queue("root"), queues, nodes, groups, pods), CONF % (str(hierarchy).lower(), level))
    capacity = ssn.hooks.plugin("capacity")
    assert capacity.problem == ""
    tasks = ssn.tables.tasks
    waiting = next(row for row, each in enumerate(tasks.pods) if each is not None and each.name == "w-0")
    running = [row for row, each in enumerate(tasks.pods) if each is not None and each.node_name]
    by_node = sorted(running, key=lambda row: int(tasks.node[row]))
    starts = np.searchsorted([int(tasks.node[row]) for row in by_node], [0, 1, 2])
    candidates = Candidates(ssn.tables, np.array(by_node), starts)
    reclaimer = Task(ssn.tables, waiting)
    found = capacity.reclaimable(reclaimer, candidates)
    order = eviction_order_by_node(ssn, candidates, waiting)
    for begin, end in pairwise(starts.tolist()):
        there = order[begin:end]
        wanted = reference(ssn, capacity, reclaimer, [by_node[i] for i in there], level if hierarchy else 0)
        assert found[there].tolist() == wanted, GPU
