"""Equal tasks of which something is said one by one: chosen for together, with nothing booked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.views import TaskClass
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.framework.plugin.errors import PluginFault
from pumice.framework.plugin.incremental import FilterInTurn, ScoreInTurn, TaskFilter, TaskScore
from pumice.framework.plugin.plugin import plugin
from pumice.framework.plugin.point import PODS, ROWS
from pumice.placing.batch import placing_of
from pumice.testing.build import cluster, node, pod, podgroup, pods, session


@plugin("fullest")
class Fullest:
    """Counts the nodes that it is asked about."""

    def __init__(self, ssn: Session) -> None:
        self.asked: list[int] = []

    @points.node_order
    def score(self, cls: TaskClass, nodes: NodeRows) -> F64:
        self.asked.append(len(nodes))
        return nodes.used[:, 0]


class OneEach(FilterInTurn):
    """One task a node; follows a given number of tasks."""

    def __init__(self, nodes: int, count: int) -> None:
        self.count, self.free = count, np.ones(nodes, dtype=bool)

    def open_to(self, step: int) -> Bool:
        return self.free

    def placed(self, step: int, place: int) -> bool:
        self.free[place] = False
        return True


@plugin("one-each")
class OneTaskEach:
    """Is asked about several tasks, never about one."""

    def __init__(self, ssn: Session, *, count: int = 9) -> None:
        self.count = count

    @points.predicate(reads=(ROWS, PODS))
    def alone(self, cls: TaskClass) -> TaskFilter:
        return SomeEach(self.count)


class SomeEach(TaskFilter):
    def __init__(self, count: int) -> None:
        self.count = count

    def in_turn(self, tasks: TaskRows, nodes: NodeRows) -> FilterInTurn | None:
        return OneEach(len(nodes), min(self.count, len(tasks)))


class Away(ScoreInTurn):
    """Nodes get better by their position, until the second task is placed: then worse. ``wrong``: what it answers."""

    def __init__(self, count: int, wrong: Any) -> None:
        self.count, self.sign, self.wrong = count, 1.0, wrong

    def score(self, step: int, places: AnyArray) -> F64:
        if self.wrong == "raises":
            raise KeyError("nobody")
        return np.zeros(1) if self.wrong == "shape" else self.sign * places * 10_000.0

    def placed(self, step: int, place: int) -> bool:
        if self.wrong == "reports":
            raise KeyError("nobody")
        self.sign = -1.0 if step else 1.0
        return step == 1


@plugin("away")
class GoesAway:
    def __init__(self, ssn: Session, *, wrong: str = "") -> None:
        self.wrong = wrong

    @points.batch_node_order(reads=(ROWS, PODS))
    def alone(self, cls: TaskClass) -> TaskScore:
        return AllAway(self.wrong)


class AllAway(TaskScore):
    def __init__(self, wrong: str) -> None:
        self.wrong = wrong

    def in_turn(self, tasks: TaskRows, nodes: NodeRows) -> ScoreInTurn:
        return Away(len(tasks), self.wrong)


def opened(plugins: str, *machines: int) -> Session:
    """Nodes a, b, … with so many cores, of which a has one task, and a gang of four that ask for one each."""
    nodes = [node(name, cpu) for name, cpu in zip("abcdef", machines, strict=False)]
    there = [podgroup("old"), pod("old-0", "old", on="a")]
    conf = f"tiers: [{{plugins: [{plugins}]}}]"
    return session(
        cluster(nodes, there, podgroup("g", 4), pods("g", 4, role="w")), conf, plugins=[Fullest, OneTaskEach, GoesAway]
    )


def gang(ssn: Session) -> list[int]:
    pods = ssn.tables.tasks.pods
    return [row for row, each in enumerate(pods) if each is not None and each.name.startswith("g-")]


def run_of(ssn: Session, **how: Any) -> str:
    """Nodes that the gang is given together."""
    before = ssn.world.digest()
    found = placing_of(ssn).run(gang(ssn), placing_of(ssn).feasible.all_nodes, **how)
    assert ssn.world.digest() == before
    return "".join(ssn.tables.nodes.facts.names[row] for row in found)


@pytest.mark.parametrize(
    ("plugins", "machines", "nodes"),
    [
        pytest.param("{name: one-each}, {name: fullest}", (8, 8, 8, 8, 8), "abcd", id="a filter that closes nodes"),
        pytest.param("{name: one-each}", (8, 8), "ab", id="up to the first that finds none"),
        pytest.param("{name: one-each, arguments: {count: 2}}", (8, 8, 8), "ab", id="as many as are followed"),
        pytest.param("{name: fullest}, {name: away}", (8, 8, 8), "ccaa", id="a score that turns round"),
        pytest.param("{name: fullest}, {name: away}", (3, 8, 1), "cbaa", id="and nodes that are full"),
        pytest.param("{name: away}", (5,), "aaaa", id="the only node is not scored"),
    ],
)
def test_where_equal_tasks_go_that_something_is_said_of(plugins: str, machines: tuple[int, ...], nodes: str) -> None:
    assert run_of(opened(plugins, *machines)) == nodes


def test_a_node_that_is_closed_is_not_looked_at_again() -> None:
    ssn = opened("{name: one-each}, {name: fullest}", 8, 8, 8, 8, 8)
    assert run_of(ssn) == "abcd"
    assert ssn.hooks.plugin("fullest").asked == [5]


def test_nodes_that_fill_are_looked_at_some_tasks_ahead() -> None:
    ssn = opened("{name: fullest}, {name: away}", 8, 8, 8)
    assert run_of(ssn) == "ccaa"
    assert ssn.hooks.plugin("fullest").asked == [3, 3 * 3], "the three best, with one to three more"


def test_what_the_tasks_of_a_role_find_is_noted() -> None:
    ssn = opened("{name: one-each}", 8, 8, 8)
    role = int(ssn.tables.tasks.role[gang(ssn)[0]])
    open_to = {role: np.array([False, True, True])}
    assert run_of(ssn, open_to=open_to) == "bc"
    assert open_to[role].tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ("raises", r"away, GoesAway\.alone at batch_node_order .*KeyError: 'nobody'"),
        ("reports", r"away, GoesAway\.alone at batch_node_order .*KeyError: 'nobody'"),
        ("shape", r"away, GoesAway\.alone at batch_node_order .*one number for each of 3 nodes"),
    ],
)
def test_what_follows_wrongly_is_the_fault_of_whose_it_is(wrong: str, problem: str) -> None:
    with pytest.raises(PluginFault, match=problem):
        run_of(opened(f"{{name: away, arguments: {{wrong: {wrong}}}}}", 8, 8, 8))
