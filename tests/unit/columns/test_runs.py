"""Tasks that move together: what they are of, and what they come to on each node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.placement import Placement
from pumice.columns.runs import Tally, TaskRun
from pumice.columns.tables import Tables
from pumice.testing.build import cluster, node, pod, podgroup, pods, queue


def tables(*cpus: int) -> Tables:
    """Gang g in queue q, whose tasks ask for so many cores each."""
    members = [pod(f"g-{i}", "g", cpu=cpu) for i, cpu in enumerate(cpus)]
    return (
        cluster(node("n0"), node("n1"), node("n2"), queue("a"), queue("q"), podgroup("g", 1, "q"), members)
        .snapshot()
        .tables
    )


@pytest.mark.parametrize(
    ("where", "rows", "of_one"),
    [
        pytest.param([4], [4], [[1, 2]], id="one"),
        pytest.param([4, 1, 7], [4, 1, 7], [[1, 2]], id="each once: the same for all"),
        pytest.param([4, 1, 4, 4, 0], [4, 1, 0], [[3, 6], [1, 2], [1, 2]], id="in order of appearance"),
    ],
)
def test_tally(where: list[int], rows: list[int], of_one: list[Any]) -> None:
    found = Tally(where)
    assert found.rows.tolist() == rows
    assert found.of_each(np.array([1.0, 2.0])).reshape(-1, 2).tolist() == of_one


def test_what_each_appearance_changes_is_summed_by_row() -> None:
    changes = np.array([[1.0], [2.0], [4.0]])
    assert Tally([3, 5, 3]).of_all(changes).tolist() == [[5], [2]]
    assert Tally([3, 5, 4]).of_all(changes).tolist() == [[1], [2], [4]]


@pytest.mark.parametrize(
    ("cpus", "nodes", "total", "by_node"),
    [
        pytest.param([2], [1], 2, {1: 2}, id="one"),
        pytest.param([2, 2, 2], [2, 0, 2], 6, {2: 4, 0: 2}, id="equal ones"),
        pytest.param([2, 2], [2, 0], 4, {2: 2, 0: 2}, id="equal ones, a node each"),
        pytest.param([1, 2, 4], [2, 0, 2], 7, {2: 5, 0: 2}, id="of several classes"),
        pytest.param([1, 2], [2, 0], 3, {2: 1, 0: 2}, id="of several classes, a node each"),
    ],
)
def test_what_a_run_comes_to(cpus: list[int], nodes: list[int], total: int, by_node: dict[int, int]) -> None:
    found = tables(*cpus)
    run = TaskRun(found, Placement(found.jobs.tasks[0].tolist(), nodes))
    assert (len(run), list(run.nodes), run.total[0]) == (len(cpus), nodes, 1000 * total)
    assert len(run.classes) == (1 if len(set(cpus)) == 1 else len(cpus))
    books = np.zeros((3, len(found.axis)))
    index, amounts = run.by_node(found.classes.req)
    books[index] += amounts
    assert books[:, 0].tolist() == [1000 * by_node.get(row, 0) for row in range(3)]


def test_whose_a_run_is() -> None:
    found = tables(1, 1)
    run = TaskRun(found, Placement(found.jobs.tasks[0].tolist(), [0, 0]))
    assert (found.jobs.uids[run.job], found.subs.uids[run.sub], found.queues.names[run.queue]) == ("ns/g", "ns/g", "q")


def test_a_run_of_a_pod_of_nobody_has_no_queue() -> None:
    run = TaskRun(cluster(node("n"), pods("", 1, on="n")).snapshot().tables, Placement([0], [0]))
    assert (run.job, run.sub, run.queue) == (-1, -1, -1)


def test_only_tasks_that_have_a_node() -> None:
    found = tables(1, 1, 1)
    run = TaskRun.on_nodes(found, [0, 1, 2], [2, -1, 1])
    assert (list(run.rows), list(run.nodes)) == ([0, 2], [2, 1])
    assert not TaskRun.on_nodes(found, [0], [-1])


def test_the_tasks_of_a_run_are_rows() -> None:
    found = tables(1, 2, 3)
    rows = found.jobs.tasks[0].tolist()
    assert TaskRun(found, Placement(rows[1:], [0, 1])).tasks.names == ["g-1", "g-2"]
    assert TaskRun(found, Placement(rows[:1], [0])).tasks.names == ["g-0"]
