"""Tasks of several classes: a guess for all of them together, and where it is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.dtypes import F64
from pumice.columns.rows import ClassRows, NodeRows
from pumice.columns.views import TaskClass
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.framework.plugin.errors import PluginFault
from pumice.framework.plugin.plugin import plugin
from pumice.placing.batch import placing_of
from pumice.placing.speculative import LOOK_MAX, TASKS_MAX, tasks_at_once
from pumice.testing.build import cluster, node, pod, podgroup, session


@plugin("fullest")
@points.node_order
def fullest(ssn: Session, cls: TaskClass, nodes: NodeRows) -> F64:
    return nodes.used[:, 0]


@plugin("emptiest")
class Emptiest:
    """Counts how often it is asked about several classes; about one it is not to be asked."""

    def __init__(self, ssn: Session) -> None:
        self.asked: list[tuple[int, int]] = []

    @points.node_order(several="of_several")
    def of_one(self, cls: TaskClass, nodes: NodeRows) -> F64:
        raise AssertionError("asked about one class")

    def of_several(self, classes: ClassRows, nodes: NodeRows) -> F64:
        self.asked.append((len(classes), len(nodes)))
        return -np.repeat(nodes.used[None, :, 0], len(classes), axis=0)


@plugin("one-row")
class OneRow:
    """Answers for several classes as if they were one."""

    def __init__(self, ssn: Session) -> None: ...

    @points.node_order(several="of_several")
    def of_one(self, cls: TaskClass, nodes: NodeRows) -> F64:
        return np.zeros(len(nodes))

    def of_several(self, classes: ClassRows, nodes: NodeRows) -> F64:
        return np.zeros(len(nodes))


def opened(plugins: str, *machines: int) -> Session:
    """Nodes a, b, … with so many cores, and a gang of five that ask for 1000, 1100, … thousandths of one."""
    nodes = [node(name, cpu) for name, cpu in zip("abcdef", machines, strict=False)]
    gang = [pod(f"g-{i}", "g", cpu=f"{1000 + 100 * i}m", role="worker") for i in range(5)]
    conf = f"tiers: [{{plugins: {[{'name': name} for name in plugins.split()]}}}]"
    return session(cluster(nodes, podgroup("g", 5), gang), conf, plugins=[fullest, Emptiest, OneRow])


def run_of(ssn: Session, **how: Any) -> str:
    """Nodes that the gang is given together."""
    rows = ssn.tables.jobs.tasks[0].tolist()
    found = placing_of(ssn).run(rows, placing_of(ssn).feasible.all_nodes, **how)
    return "".join(ssn.tables.nodes.facts.names[row] for row in found)


@pytest.mark.parametrize(
    ("plugins", "machines", "nodes"),
    [
        pytest.param("emptiest", (8, 8, 8, 8, 8), "abcde", id="all go where they were thought to go"),
        pytest.param("fullest", (8, 8, 8, 8, 8), "aaaaa", id="each would rather go where the one before it went"),
        pytest.param("fullest", (3, 3, 8), "aabbc", id="until a node is full"),
        pytest.param("emptiest", (4, 4), "ababa", id="fewer nodes than tasks"),
        pytest.param("fullest", (2, 2), "ab", id="up to the first that finds none"),
    ],
)
def test_where_tasks_go_that_differ(plugins: str, machines: tuple[int, ...], nodes: str) -> None:
    ssn = opened(plugins, *machines)
    before = ssn.world.digest()
    assert run_of(ssn) == nodes
    assert ssn.world.digest() == before


def test_a_gang_is_looked_at_once_and_what_it_took_once_more() -> None:
    ssn = opened("emptiest", 8, 8, 8, 8, 8)
    assert run_of(ssn) == "abcde"
    assert ssn.hooks.plugin("emptiest").asked == [(5, 5), (4, 5)]


def test_a_node_that_failed_one_task_of_a_role_is_left_out_for_the_next() -> None:
    ssn = opened("fullest", 8, 8)
    role = int(ssn.tables.tasks.role[ssn.tables.jobs.tasks[0][0]])
    open_to = {role: np.array([False, True])}
    assert run_of(ssn, open_to=open_to) == "bbbbb"
    assert open_to[role].tolist() == [False, True]


def test_an_answer_of_a_wrong_shape_is_the_fault_of_whose_it_is() -> None:
    with pytest.raises(PluginFault, match=r"one-row, OneRow\.of_several at node_order .*5 classes by 2 nodes"):
        run_of(opened("one-row", 8, 8))


def test_what_is_looked_at_together_is_bounded() -> None:
    assert [tasks_at_once(nodes) for nodes in (0, 1, 1000, 5000, LOOK_MAX + 1)] == [TASKS_MAX, TASKS_MAX, 16, 3, 0]
