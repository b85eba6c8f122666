"""Where tasks go: which of the nodes that fit is taken, for one task and for several in one go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.dtypes import F64, I64
from pumice.columns.rows import NodeRows
from pumice.columns.snapshot import Shard
from pumice.columns.views import Node, Task, TaskClass
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.framework.plugin.errors import PluginFault
from pumice.framework.plugin.filter_result import FilterResult, Unfit
from pumice.framework.plugin.plugin import plugin
from pumice.placing.choose import placing_of
from pumice.testing.build import cluster, node, pod, podgroup, pods, session
from pumice.volcano.status.fit_errors import reasons

#: Scores of nodes for a class, by name.
SCORES = {"low": 1.0, "high": 5.0, "even": 5.0, "none": float("nan")}


@plugin("by-name")
@points.node_order
def by_name(ssn: Session, cls: TaskClass, nodes: NodeRows) -> F64:
    return np.array([SCORES[node.name] for node in nodes], dtype=np.float64)


@plugin("emptiest")
@points.node_order
def emptiest(ssn: Session, cls: TaskClass, nodes: NodeRows) -> F64:
    return -nodes.used[:, 0]


@plugin("last-word")
@points.best_node
def last_word(ssn: Session, task: Task, nodes: NodeRows, scores: F64) -> int | None:
    return int(nodes.rows[scores.argmin()]) if task.pod.name == "g-0" else None


@plugin("only-one")
@points.predicate
def only_one(ssn: Session, task: Task, nodes: NodeRows) -> FilterResult | None:
    """Has something to say about one task."""
    return FilterResult.of(nodes.rows == 1, Unfit("not here")) if task.pod.name == "g-1" else None


@plugin("mapped")
class Mapped:
    def __init__(self, ssn: Session) -> None: ...

    @points.node_map
    def map(self, task: Task, node: Node) -> float:
        return SCORES[node.name]

    @points.node_reduce
    def reduce(self, task: Task, nodes: NodeRows, mapped: I64) -> F64:
        return 10.0 - mapped


def opened(*objects: Any, plugins: str = "", shard: Shard | None = None) -> Session:
    """With two pods of a gang that wait."""
    store = cluster(podgroup("g", 2), pods("g", 2), *objects)
    store.shard = shard
    conf = f"tiers: [{{plugins: {[{'name': name} for name in plugins.split()]}}}]"
    return session(store, conf, plugins=[by_name, emptiest, last_word, only_one, Mapped])


def row_of(ssn: Session, name: str) -> int:
    return next(row for row, each in enumerate(ssn.tables.tasks.pods) if each is not None and each.name == name)


def chosen(ssn: Session, name: str = "g-0", **how: Any) -> tuple[str, bool]:
    choice = placing_of(ssn).choose(row_of(ssn, name), placing_of(ssn).feasible.all_nodes, **how)
    return ("" if choice.node < 0 else ssn.tables.nodes.facts.names[choice.node]), choice.idle


def run_of(ssn: Session, *names: str) -> str:
    """Nodes that tasks are given together."""
    rows = [row_of(ssn, name) for name in names or ("g-0", "g-1")]
    found = placing_of(ssn).run(rows, placing_of(ssn).feasible.all_nodes)
    return " ".join(ssn.tables.nodes.facts.names[row] for row in found)


# -- one task

LEAVING = [podgroup("old"), pod("old-0", "old", cpu=8, on="high", deletion=1.0)]
FULL = [podgroup("old"), pod("old-0", "old", cpu=8, on="high")]


@pytest.mark.parametrize(
    ("objects", "plugins", "node_name", "idle"),
    [
        pytest.param(["low", "high"], "by-name", "high", True, id="the best score"),
        pytest.param(["low", "high", "even"], "by-name", "even", True, id="of equal ones the first row"),
        pytest.param(["low", "high"], "", "high", True, id="without scores the first row"),
        pytest.param(["low", "high"], "by-name last-word", "low", True, id="what a plugin names"),
        pytest.param(["low", "high"], "mapped", "low", True, id="scores that are mapped and reduced"),
        pytest.param(["low", "high", LEAVING], "by-name", "low", True, id="idle before what is being released"),
        pytest.param(["high", LEAVING], "by-name", "high", False, id="what is being released"),
        pytest.param(["high", FULL], "by-name", "", False, id="none"),
    ],
)
def test_which_node_a_task_gets(objects: list[Any], plugins: str, node_name: str, idle: bool) -> None:
    ssn = opened(*[node(each) if isinstance(each, str) else each for each in objects], plugins=plugins)
    assert chosen(ssn) == (node_name, idle)


def test_of_a_soft_shard_own_nodes_come_first() -> None:
    ssn = opened(node("low"), node("high"), plugins="by-name", shard=Shard(frozenset({"low"}), hard=False))
    assert chosen(ssn) == ("low", True)


def test_nodes_that_failed_its_role_are_not_looked_at() -> None:
    ssn = opened(node("low"), node("high"), plugins="by-name")
    open_to = np.array([name == "low" for name in ssn.tables.nodes.facts.names])
    assert chosen(ssn, open_to=open_to) == ("low", True)


def test_a_nomination_comes_before_scores() -> None:
    late = [podgroup("n"), pod("n-0", "n", nominated_node="low")]
    assert chosen(opened(node("low"), node("high"), late, plugins="by-name"), "n-0") == ("low", True)


def test_why_a_task_finds_none_is_said_to_whom_it_may_concern() -> None:
    ssn = opened(node("high"), FULL)
    row, nodes = row_of(ssn, "g-0"), placing_of(ssn).feasible.all_nodes
    errors = placing_of(ssn).choose(row, nodes).errors
    assert errors is not None and reasons(errors) == {"Insufficient cpu": 1}
    assert placing_of(ssn).choose(row, nodes, explain=False).errors is None


def test_a_score_that_is_no_number_is_the_fault_of_whose_it_is() -> None:
    with pytest.raises(PluginFault, match="by_name at node_order"):
        chosen(opened(node("none"), node("low"), plugins="by-name"))


# -- several tasks


@pytest.mark.parametrize(
    ("cpu", "plugins", "nodes"),
    [
        pytest.param(8, "by-name", "high high", id="the best one twice"),
        pytest.param(1, "by-name", "high low", id="until it is full"),
        pytest.param(8, "emptiest", "high low", id="each sees those before it"),
        pytest.param("500m", "by-name", "", id="none has room"),
    ],
)
def test_equal_tasks_are_placed_in_one_go(cpu: Any, plugins: str, nodes: str) -> None:
    assert run_of(opened(node("high", cpu), node("low", cpu), plugins=plugins)) == nodes


def test_tasks_that_differ_are_placed_in_turn_and_nothing_stays_booked() -> None:
    other = [podgroup("h"), pod("h-0", "h", cpu=2)]
    ssn = opened(node("high", 2), node("low", 8), other, plugins="by-name")
    before = ssn.world.digest()
    assert run_of(ssn, "g-0", "h-0") == "high low"
    assert ssn.world.digest() == before


def test_a_hook_that_takes_a_task_may_tell_it_from_equal_ones() -> None:
    ssn = opened(node("high"), node("low"), plugins="only-one")
    nodes = placing_of(ssn).feasible.all_nodes
    assert not any(placing_of(ssn).is_plain(Task(ssn.tables, row_of(ssn, name)), nodes) for name in ("g-0", "g-1"))


def test_the_next_gang_sees_what_was_taken() -> None:
    ssn = opened(node("high", 2), node("low", 8), podgroup("h", 2), pods("h", 2), plugins="by-name")
    assert run_of(ssn) == "high high"
    ssn.statement().allocate(
        [row_of(ssn, name) for name in ("g-0", "g-1")], [ssn.tables.nodes.facts.row_of["high"]] * 2
    )
    placing_of(ssn).took(2)
    assert run_of(ssn, "h-0", "h-1") == "low low"
