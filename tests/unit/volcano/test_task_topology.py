"""task-topology: which tasks go together, in which order, and how many of them a node has room for."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.views import Task
from pumice.framework.session import Session
from pumice.testing.build import cluster, node, pod, podgroup, run, session
from pumice.volcano.task_groups import Member, Roles, TaskTopology, buckets_of, removals

CONF = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: task-topology}]}]"
NEAR, APART = "volcano.sh/task-topology-affinity", "volcano.sh/task-topology-anti-affinity"


def members(*texts: str) -> list[Member]:
    """``role name node``, with roles and nodes by number."""
    each = (text.split() for text in texts)
    return [Member(i, int(role), int(on), name, 1.0) for i, (role, name, on) in enumerate(each)]


def names(found: list[Member], topology: TaskTopology) -> list[str]:
    buckets = buckets_of(found, Roles(topology))
    return [" ".join(found[row].name for row in rows.tolist()) for rows in buckets.members]


@pytest.mark.parametrize(
    ("topology", "found"),
    [
        pytest.param(TaskTopology((("ps", "worker"),)), ["p0 p1 w0 w1"], id="near"),
        pytest.param(
            TaskTopology((("ps", "worker"),), (("ps",),)),
            ["p0 w0", "p1 w1"],
            id="of equals the one that asks least",
        ),
        pytest.param(TaskTopology((), (("ps",), ("worker",))), ["p0 w0", "p1 w1"], id="apart from their like"),
        pytest.param(TaskTopology((("ps",), ("worker",)), (("ps", "worker"),)), ["p0 p1", "w0 w1"], id="by role"),
        pytest.param(TaskTopology((("ps", "worker"),), (), ("worker",)), ["w0 w1 p0 p1"], id="in the order of roles"),
    ],
)
def test_which_tasks_go_together(topology: TaskTopology, found: list[str]) -> None:
    ps, worker = (Roles(topology).names[role] for role in ("ps", "worker"))
    each = members(f"{worker} w1 -1", f"{ps} p1 -1", f"{worker} w0 -1", f"{ps} p0 -1")
    assert names(each, topology) == found


def test_tasks_of_a_node_are_together_and_come_first() -> None:
    topology = TaskTopology((), (("ps",),))
    assert names(members("0 c -1", "0 b 1", "0 a 0", "0 d 1"), topology) == ["a", "b d", "c"]


def test_how_many_must_go_elsewhere() -> None:
    dice = Random(1)
    for _ in range(200):
        others = np.array([[dice.randint(0, 4), dice.randint(0, 4)] for _ in range(dice.randint(0, 5))]).reshape(-1, 2)
        own = np.array([dice.randint(0, 4), dice.randint(0, 4)])
        room = np.array([[dice.randint(0, 12), dice.randint(0, 12)] for _ in range(3)])
        asked = others.sum(axis=0) + own
        found = removals(asked.astype(float), others.astype(float), room.astype(float)).tolist()
        for nth, here in enumerate(room.tolist()):
            left, gone = asked.copy(), 0
            while gone < len(others) and (left > here).any():
                left, gone = left - others[gone], gone + 1
            assert found[nth] == gone


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


def test_a_job_of_many_tasks_that_are_all_apart_costs_little() -> None:
    topology = TaskTopology((), (("ps",),))
    each = [Member(i, 0, -1, f"p{i:05}", 1.0) for i in range(2000)]
    assert len(buckets_of(each, Roles(topology)).members) == 2000
