"""A hook in one form, asked in another, answers the same, and a wrong answer is still the answer of that hook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pumice.columns.job_rows import JobRows
from pumice.columns.rows import ClassRows, NodeRows, TaskRows
from pumice.columns.tables import Tables
from pumice.columns.views import Job, Queue, Task, TaskClass
from pumice.framework.plugin import adapters
from pumice.framework.plugin.errors import WrongAnswer
from pumice.framework.plugin.filter_result import FilterResult, Unfit
from pumice.testing.build import cluster, node, podgroup, pods, queue, session

BOTH = (0, 1)
NAN = float("nan")


@pytest.fixture(scope="module")
def tables() -> Tables:
    state = cluster(
        [node("n0", 1), node("n1", 4)],
        [queue("a", 1), queue("b", 2, creation=1.0)],
        [podgroup("g", 1, "a"), podgroup("h", 2, "b", creation=1.0), *pods("g", 2), *pods("h", 2, cpu=2)],
    )
    return session(state, "tiers: []").tables


def jobs_compared(tables: Tables, keys: Any, left: int, right: int) -> int:
    compare = adapters.pair_of_keys(lambda rows: keys[rows.rows], JobRows)
    return compare(Job(tables, left), Job(tables, right))


def queues_compared(tables: Tables, keys: Any, left: int, right: int) -> int:
    compare = adapters.pair_of_single_keys(lambda each: keys[each.row])
    return compare(Queue(tables, left), Queue(tables, right))


@pytest.mark.parametrize(
    ("compared", "as_keys"),
    [pytest.param(jobs_compared, np.array, id="keys of many"), pytest.param(queues_compared, tuple, id="key of one")],
)
@pytest.mark.parametrize(
    ("keys", "wanted"), [((1.0, 2.0), -1), ((2, 1), 1), ((3, 3), 0), ((np.inf, np.inf), 0), ((-np.inf, 0.0), -1)]
)
def test_two_are_compared_by_their_keys(
    tables: Tables, compared: Callable[..., int], as_keys: Callable[..., Any], keys: Any, wanted: int
) -> None:
    assert compared(tables, as_keys(keys), 0, 1) == wanted
    assert compared(tables, as_keys(keys), 1, 0) == -wanted


@pytest.mark.parametrize("keys", [("a", "b"), (1.0, NAN), (None, 1.0)])
def test_a_key_that_is_no_number_is_a_wrong_answer(tables: Tables, keys: Any) -> None:
    with pytest.raises(WrongAnswer, match="wanted a number"):
        queues_compared(tables, keys, 0, 1)
    with pytest.raises(WrongAnswer, match="wanted (keys that are numbers|one key for each of 2 rows)"):
        jobs_compared(tables, np.array(keys), 0, 1)


def test_a_node_at_a_time_is_all_of_them(tables: Tables) -> None:
    nodes, cls = NodeRows(tables, np.array(BOTH)), TaskClass(tables, 0)
    small = Unfit("small")
    found = adapters.filter_node_by_node(lambda _, node: small if node.row == 0 else None)(cls, nodes)
    assert found.codes.tolist() == [1, 0]
    assert found.why == ((), (small,))
    scores = adapters.score_node_by_node(lambda _, node: node.row + 0.5)(cls, nodes)
    assert scores.tolist() == [0.5, 1.5]


@pytest.mark.parametrize(
    ("adapt", "answer"),
    [
        (adapters.filter_node_by_node, True),
        (adapters.filter_node_by_node, "small"),
        (adapters.score_node_by_node, "x"),
        (adapters.score_node_by_node, None),
    ],
)
def test_a_wrong_answer_about_one_node_names_the_hook(tables: Tables, adapt: Any, answer: Any) -> None:
    def hook(_: object, node: object) -> Any:
        return answer

    with pytest.raises(WrongAnswer) as raised:
        adapt(hook)(TaskClass(tables, 0), NodeRows(tables, np.array(BOTH)))
    assert raised.value.hook is hook


def test_several_classes_are_asked_class_by_class(tables: Tables) -> None:
    nodes, classes = NodeRows(tables, np.array(BOTH)), ClassRows(tables, np.array(BOTH))

    def objects(cls: TaskClass, nodes: NodeRows) -> FilterResult | None:
        return FilterResult.of(np.array([True, False]), Unfit("no")) if cls.row else None

    assert adapters.masks_of_each(objects)(classes, nodes).tolist() == [[True, True], [True, False]]
    scores = adapters.scores_of_each(lambda cls, nodes: nodes.rows + 10.0 * cls.row)(classes, nodes)
    assert scores.tolist() == [[0.0, 1.0], [10.0, 11.0]]


def test_a_task_is_answered_for_by_its_class_and_a_run_by_its_first_task(tables: Tables) -> None:
    tasks = TaskRows(tables, np.array([1, 0]))
    first, its_queue = Task(tables, 1), Queue(tables, 0)
    seen: list[Any] = []

    def hook(*args: Any) -> None:
        seen.append(args)

    adapters.of_its_class(hook)(first, "more")
    adapters.first_of_run(hook)(its_queue, tasks)
    assert seen == [(first.cls, "more"), (its_queue, first)]
