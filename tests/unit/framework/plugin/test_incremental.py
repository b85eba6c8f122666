"""What is said of tasks that are placed one after the other: parts as one, and hooks that can speak of one only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.rows import NodeRows, TaskRows
from pumice.framework.plugin import points
from pumice.framework.plugin.errors import WrongAnswer
from pumice.framework.plugin.filter_result import FilterResult, Unfit
from pumice.framework.plugin.incremental import (
    FilterInTurn,
    Filters,
    InTurn,
    ScoreInTurn,
    WeightedSum,
    equal_prefix_length,
    filters_of,
    scores_of,
)
from pumice.placing.batch import placing_of
from pumice.testing.build import cluster, node, podgroup, pods, session


class Closing(FilterInTurn):
    """Closes every node that a task goes to, of so many tasks."""

    def __init__(self, count: int, *open_to: bool) -> None:
        self.count, self.nodes = count, np.array(open_to)

    def open_to(self, step: int) -> Bool:
        return self.nodes

    def placed(self, step: int, place: int) -> bool:
        changes = bool(self.nodes[place])
        self.nodes[place] = False
        return changes


class Counting(ScoreInTurn):
    """The number of tasks so far, on every node."""

    def __init__(self, count: int) -> None:
        self.count, self.reports = count, 0

    def score(self, step: int, places: AnyArray) -> F64:
        return np.full(len(places), float(step))

    def placed(self, step: int, place: int) -> bool:
        self.reports += 1
        return True


def test_filters_together_let_through_what_each_does_and_all_are_notified() -> None:
    one, two = Closing(3, True, True, False), Closing(2, True, False, True)
    both = Filters([one, two])
    assert both.count == 2
    assert both.open_to(0).tolist() == [True, False, False]
    assert both.placed(0, 0)
    assert both.open_to(1).tolist() == [False, False, False]
    assert not both.placed(1, 0)
    assert (one.nodes.tolist(), two.nodes.tolist()) == ([False, True, False], [False, False, True])


def test_scores_are_weighed_on_top_of_a_number_and_all_are_notified() -> None:
    one, two = Counting(5), Counting(4)
    both = WeightedSum(7.0, [(one, 1), (two, 10)])
    assert both.count == 4
    assert both.score(2, np.array([3, 4])).tolist() == [29.0, 29.0]
    assert both.placed(0, 3)
    assert (one.reports, two.reports) == (1, 1)


@pytest.mark.parametrize(("kinds", "length"), [("aab", 2), ("abb", 1), ("aaa", 3)])
def test_how_many_are_like_the_first(kinds: str, length: int) -> None:
    assert equal_prefix_length(kinds) == length


def test_nobody_follows_by_default() -> None:
    for ask in (
        lambda: InTurn().placed(0, 0),
        lambda: FilterInTurn().open_to(0),
        lambda: ScoreInTurn().score(0, np.zeros(0)),
    ):
        with pytest.raises(NotImplementedError):
            ask()


# -- hooks that name no method for several tasks

SOMEWHERE = FilterResult.of(np.array([True, False]), Unfit("not here"))


def asked() -> tuple[TaskRows, NodeRows]:
    ssn = session(cluster(node("a"), node("b"), podgroup("g", 2), pods("g", 2)), "tiers: []")
    return TaskRows(ssn.tables, ssn.tables.jobs.tasks[0]), placing_of(ssn).feasible.all_nodes


@pytest.mark.parametrize(
    ("answer", "found"), [pytest.param(None, [], id="silent"), pytest.param(SOMEWHERE, None, id="objects somewhere")]
)
def test_a_filter_of_one_task_speaks_for_all_where_it_is_silent(answer: Any, found: Any) -> None:
    adapted = points.filters_in_turn.forms["task"](lambda task, nodes: answer)
    assert filters_of([[adapted]], *asked()) == found


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        pytest.param(None, [], id="silent"),
        pytest.param(3.0, [3.0], id="one number"),
        pytest.param(np.array([1.0, 2.0]), None, id="tells nodes apart"),
    ],
)
def test_a_score_of_one_task_speaks_for_all_where_it_is_one_number(answer: Any, found: Any) -> None:
    adapted = points.scores_in_turn.forms["task"](lambda task, nodes: answer)
    said = scores_of([[adapted]], *asked())
    assert said is None if found is None else [each for _, each in said or ()] == found


def test_an_answer_that_does_not_follow_is_wrong() -> None:
    tasks, nodes = asked()
    with pytest.raises(WrongAnswer, match="wanted None or a FilterInTurn"):
        filters_of([[lambda tasks, nodes: Counting(2)]], tasks, nodes)
    with pytest.raises(WrongAnswer, match="wanted None or a ScoreInTurn"):
        scores_of([[lambda tasks, nodes: np.zeros(2)]], tasks, nodes)
