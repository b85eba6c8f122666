"""Which tasks of a job go together: annotations that are read, buckets, and who must go elsewhere."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from pumice.volcano.topology.task_groups import (
    AFFINITY_ANNOTATION,
    ANTI_AFFINITY_ANNOTATION,
    ORDER_ANNOTATION,
    Member,
    Roles,
    TaskTopology,
    TaskTopologyError,
    buckets_of,
    removals,
    topology_of,
)


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


def test_a_job_of_many_tasks_that_are_all_apart_costs_little() -> None:
    topology = TaskTopology((), (("ps",),))
    each = [Member(i, 0, -1, f"p{i:05}", 1.0) for i in range(2000)]
    assert len(buckets_of(each, Roles(topology)).members) == 2000


@pytest.mark.parametrize(
    ("near", "apart", "order", "found"),
    [
        pytest.param(None, None, None, None, id="nothing is said"),
        pytest.param("", None, None, TaskTopology(), id="nothing is said in words"),
        pytest.param("ps,worker;ps", None, None, TaskTopology((("ps", "worker"), ("ps",))), id="groups"),
        pytest.param(";,;", "ps", None, TaskTopology((), (("ps",),)), id="empty groups are none"),
        pytest.param(None, None, "worker,ps;ps", TaskTopology((), (), ("worker", "ps")), id="the first order counts"),
    ],
)
def test_what_annotations_say(
    near: str | None, apart: str | None, order: str | None, found: TaskTopology | None
) -> None:
    said = {AFFINITY_ANNOTATION: near, ANTI_AFFINITY_ANNOTATION: apart, ORDER_ANNOTATION: order}
    notes = {key: text for key, text in said.items() if text is not None}
    assert topology_of(notes, ("ps", "worker"), "ns/g") == found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ps,chief", "task chief do not exist in job <ns/g>"),
        ("ps,ps", "task ps is duplicate in job <ns/g>"),
    ],
)
def test_roles_that_cannot_be_meant_are_refused(text: str, why: str) -> None:
    with pytest.raises(TaskTopologyError, match=why):
        topology_of({ANTI_AFFINITY_ANNOTATION: text}, ("ps", "worker"), "ns/g")


def test_roles_are_ranked_by_their_order_and_then_by_the_strictest_that_is_said() -> None:
    """Apart from itself 4, near others 3, near itself 2, apart from others 1."""
    topology = TaskTopology((("a", "b"), ("c",)), (("a",), ("c", "d")), ("d", "nobody"))
    roles = Roles(topology)
    assert {name: roles.rank[row].tolist() for name, row in roles.names.items()} == {
        "a": [0, 4],
        "b": [0, 3],
        "c": [0, 2],
        "d": [2, 1],
    }
    a, b = roles.names["a"], roles.names["b"]
    assert (roles.near[a, b], roles.near[a, a], roles.apart[a, b], roles.apart[a, a]) == (1, -1, 0, -1)


def test_a_task_that_is_apart_from_all_has_a_bucket_of_its_own() -> None:
    """Near and apart are weighed against each other: what comes to 0 is no reason to stay away."""
    topology = TaskTopology((("a", "b"),), (("a", "b"), ("b",)))
    roles = Roles(topology)
    a, b = roles.names["a"], roles.names["b"]
    assert names(members(f"{a} a0 0", f"{b} b0 -1", f"{b} b1 -1"), topology) == ["a0 b0", "b1"]
