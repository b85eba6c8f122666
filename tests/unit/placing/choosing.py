"""Small clusters and plugins for tests of choosing nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from pumice.columns.dtypes import F64, I64
from pumice.columns.rows import NodeRows
from pumice.columns.snapshot import Shard
from pumice.columns.views import Node, Task, TaskClass
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.framework.plugin.filter_result import FilterResult, Unfit
from pumice.framework.plugin.plugin import plugin
from pumice.placing.batch import placing_of
from pumice.testing.build import cluster, podgroup, pods, session

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
