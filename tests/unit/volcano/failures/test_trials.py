"""A trial in a domain is recalled for equal tasks while nothing that it rests on has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pumice.columns.column import Column
from pumice.columns.dtypes import F64
from pumice.columns.rows import NodeRows
from pumice.columns.views import Task, TaskClass
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.framework.plugin.filter_result import FilterResult, Unfit
from pumice.framework.plugin.incremental import TaskFilter
from pumice.framework.plugin.plugin import plugin
from pumice.placing.batch import placing_of
from pumice.testing.build import cluster, node, podgroup, pods, session
from pumice.volcano.failures.trials import Trials
from tests.unit.framework.kit import anew, answers_equally


def before_nodes(self: Any, task: Task) -> Unfit | None:
    return None


def of_class(self: Any, cls: TaskClass, nodes: NodeRows) -> F64:
    return np.zeros(len(nodes))


def silent(self: Any, task: Task, nodes: NodeRows) -> FilterResult | None:
    return None


def no_matter(self: Any, cls: TaskClass) -> TaskFilter | None:
    return None


def matter(self: Any, cls: TaskClass) -> TaskFilter | None:
    return TaskFilter()


def speaks(self: Any, task: Task, nodes: NodeRows) -> FilterResult | None:
    return FilterResult.of(nodes.rows >= 0, Unfit("no"))


def opened(point: Any, hook: Any, *, equal: bool = False, **mark: Any) -> Session:
    """With a plugin that has a column of its own and one hook, and a gang that waits."""

    class Mine:
        def __init__(self, ssn: Session) -> None:
            self.own: Column[Any] = ssn.column("mine.own", values=np.zeros(1))

    Mine.hook = (point(**mark) if mark else point)(anew(hook))  # type: ignore[attr-defined]
    mine = plugin("mine")(Mine)
    listed = answers_equally(mine, "hook") if equal else mine
    objects = node("a"), node("b"), podgroup("g", 2), pods("g", 2)
    return session(cluster(*objects), "tiers: [{plugins: [{name: mine}]}]", plugins=[listed])


def trials(ssn: Session) -> Trials:
    return Trials(ssn.world, ssn.hooks, ssn.memo, ())


@pytest.mark.parametrize(
    ("point", "hook", "mark", "columns"),
    [
        pytest.param(points.node_order, of_class, {}, 1, id="about classes: on what the plugin keeps"),
        pytest.param(points.node_order, of_class, {"reads": ()}, 0, id="that read nothing: on nothing"),
        pytest.param(points.predicate, silent, {}, None, id="about this task: no other is like it"),
        pytest.param(points.predicate, silent, {"reads": (), "equal": True}, 0, id="about all tasks like it, nothing"),
        pytest.param(points.predicate, no_matter, {}, 0, id="the tasks of the class do not matter"),
        pytest.param(points.predicate, matter, {}, None, id="each task of the class matters"),
        pytest.param(points.predicate, speaks, {"reads": (), "equal": True}, 0, id="about all tasks like it"),
        pytest.param(points.pre_predicate, before_nodes, {}, None, id="about the single task, before nodes"),
        pytest.param(points.pre_predicate, before_nodes, {"reads": (), "equal": True}, 0, id="about all, before nodes"),
    ],
)
def test_what_a_trial_rests_on(point: Any, hook: Any, mark: dict[str, Any], columns: int | None) -> None:
    ssn = opened(point, hook, **mark)
    found = trials(ssn).rest_on(Task(ssn.tables, 0), placing_of(ssn).feasible.all_nodes)
    assert (found if found is None else len(found[0])) == columns


def nothing(ssn: Session, own: Column[Any]) -> None: ...


def a_pod_comes(ssn: Session, own: Column[Any]) -> None:
    ssn.statement().allocate([0], [0])


def a_pod_comes_elsewhere(ssn: Session, own: Column[Any]) -> None:
    ssn.statement().allocate([0], [1])


def a_pod_comes_and_goes(ssn: Session, own: Column[Any]) -> None:
    stmt = ssn.statement()
    stmt.allocate([0], [0])
    stmt.discard()


def the_plugin_writes(ssn: Session, own: Column[Any]) -> None:
    ssn.journal.put(own, 0, 1.0)


@pytest.mark.parametrize(
    ("happens", "known"),
    [
        (nothing, True),
        (a_pod_comes, False),
        (a_pod_comes_elsewhere, True),
        (a_pod_comes_and_goes, True),
        (the_plugin_writes, False),
    ],
)
def test_how_long_it_holds(happens: Callable[[Session, Column[Any]], None], known: bool) -> None:
    ssn = opened(points.node_order, of_class)
    kept, own, domain = trials(ssn), ssn.hooks.plugin("mine").own, np.array([0])
    kept.keep("kind", kept.ground([own], domain), "found")
    happens(ssn, own)
    rests_on = kept.ground([own], domain)
    assert kept.recall("kind", rests_on) == ("found" if known else None)
    assert kept.recall("another kind", rests_on) is None
