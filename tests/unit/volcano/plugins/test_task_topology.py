"""task-topology: which tasks go together, in which order, and how many of them a node has room for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.testing.build import cluster, node, pod, podgroup, run, session

CONF = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: task-topology}]}]"
NEAR, APART = "volcano.sh/task-topology-affinity", "volcano.sh/task-topology-anti-affinity"


def opened(notes: dict[str, str], *objects: Any) -> Session:
    each = [pod(f"{role}-{i}", "g", 2, role=role) for role in ("ps", "worker") for i in range(2)]
    return session(cluster(podgroup("g", phase="Inqueue", annotations=notes), each, *objects), CONF)


def rows_of(ssn: Session) -> dict[str, int]:
    return {each.name: row for row, each in enumerate(ssn.tables.tasks.pods) if each is not None}


def test_a_node_with_room_for_more_of_them_is_better() -> None:
    ssn = opened(
        {NEAR: "ps,worker"}, node("a", 2), node("b", 4, creation=1.0), node("c", 8, creation=2.0), node("d", 1)
    )
    plugin, row = ssn.hooks.plugin("task-topology"), rows_of(ssn)
    places = [ssn.tables.nodes.facts.row_of[name] for name in "abcd"]
    scores = plugin.node_order(Task(ssn.tables, row["ps-0"]), NodeRows(ssn.tables, np.array(places)))
    assert scores.tolist() == [25.0, 50.0, 100.0, 0.0]


def test_who_was_placed_draws_the_others_and_a_rollback_takes_that_back() -> None:
    ssn = opened({NEAR: "ps,worker"}, node("a", 8), node("b", 8, creation=1.0))
    plugin, row, nodes = ssn.hooks.plugin("task-topology"), rows_of(ssn), NodeRows(ssn.tables, np.arange(2))
    task = Task(ssn.tables, row["worker-0"])
    before = plugin.node_order(task, nodes).tolist()
    mark = ssn.journal.mark()
    ssn.statement().allocate([row["ps-0"]], [1])
    assert plugin.node_order(task, nodes).tolist() == [75.0, 100.0]
    ssn.journal.rollback(mark)
    assert plugin.node_order(task, nodes).tolist() == before == [100.0, 100.0]


def test_the_order_of_roles_is_the_order_of_tasks() -> None:
    ssn = opened({NEAR: "ps,worker", "volcano.sh/task-topology-task-order": "worker,ps"}, node("a"))
    row = rows_of(ssn)
    rows = [row[name] for name in ("ps-0", "worker-0", "ps-1", "worker-1")]
    keys = ssn.hooks.plugin("task-topology").task_order(TaskRows(ssn.tables, np.array(rows)))
    assert keys[1] == keys[3] < keys[0] == keys[2]


@pytest.mark.parametrize("text", ["nobody", "ps,ps", ",;,", "ps;" * 50_000, "ü"])
def test_what_cannot_be_meant_changes_nothing(text: str) -> None:
    objects = [podgroup("g", 2, phase="Inqueue", annotations={APART: text}), pod("ps-0", "g", role="ps"), pod("x", "g")]
    assert len(run(cluster(node("a"), objects), CONF).binds) == 2
