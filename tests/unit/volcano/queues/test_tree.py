"""Queues as a tree: levels, lines to the root, sums, and what is no tree."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.columns.column import Versions
from pumice.columns.dtypes import ResourceAxis
from pumice.columns.queues import QueueTable
from pumice.model.queue import Queue
from pumice.testing.build import queue
from pumice.volcano.queues.tree import DEPTH_MAX, QueueTree


def table(**parents: str) -> QueueTable:
    """Queues by name, each with its parent."""
    queues = [queue(name, parent=parent, creation=float(i)) for i, (name, parent) in enumerate(parents.items())]
    return QueueTable(Versions(), queues, ResourceAxis())


QUEUES = table(root="", a="root", b="root", a1="a", a2="a", b1="b", a11="a1")
TREE = QueueTree.of(QUEUES)


def row(name: str) -> int:
    return QUEUES.row_of[name]


def names(rows: list[int]) -> list[str]:
    return [QUEUES.names[each] for each in rows]


def test_levels_leaves_and_lines() -> None:
    assert TREE.problem == ""
    assert [names(level.tolist()) for level in TREE.levels] == [["root"], ["a", "b"], ["a1", "a2", "b1"], ["a11"]]
    assert names(np.flatnonzero(TREE.is_leaf).tolist()) == ["a2", "b1", "a11"]
    assert names(TREE.line(row("a11"))) == ["a11", "a1", "a", "root"]
    assert TREE.depth[row("a11")] == 3


@pytest.mark.parametrize(
    ("left", "right", "parted", "in_common"),
    [
        pytest.param("a2", "a11", ("a2", "a1"), 2, id="below one ancestor"),
        pytest.param("a11", "b1", ("a", "b"), 1, id="below the root alone"),
        pytest.param("a1", "a11", ("a1", "a11"), 2, id="one above the other"),
        pytest.param("b1", "b1", ("b1", "b1"), 2, id="the same"),
        pytest.param("root", "b", ("root", "b"), 0, id="the root has no ancestor"),
    ],
)
def test_where_two_lines_part(left: str, right: str, parted: tuple[str, str], in_common: int) -> None:
    assert tuple(names(list(TREE.parted(row(left), row(right))))) == parted
    assert TREE.in_common(row(left), row(right)) == in_common


def test_what_a_queue_holds_counts_in_all_its_ancestors() -> None:
    own = np.zeros((len(QUEUES), 2))
    own[[row("a11"), row("a2"), row("b1")]] = [[1, 10], [2, 20], [4, 40]]
    total = TREE.summed_up(own)
    found = {name: total[row(name), 0] for name in QUEUES.names}
    assert found == {"root": 7, "a": 3, "b": 4, "a1": 1, "a2": 2, "b1": 4, "a11": 1}
    assert (total[:, 1] == 10 * total[:, 0]).all()
    assert own[row("a")].tolist() == [0, 0], "what came in is left alone"


def chain(length: int) -> QueueTable:
    links = {f"q{i}": f"q{i - 1}" if i else "root" for i in range(length)}
    return table(root="", **links)


@pytest.mark.parametrize(
    ("queues", "problem"),
    [
        pytest.param(table(a=""), 'there is no queue "root"', id="no root"),
        pytest.param(table(), 'there is no queue "root"', id="nothing"),
        pytest.param(
            table(root="", a="gone"), 'parent "gone" of queue "a" is not there', id="a parent that is not there"
        ),
        pytest.param(
            table(root="", a="b", b="a", c="root"),
            'queue "a" is its own ancestor, or more than 64 levels below "root"',
            id="a circle",
        ),
        pytest.param(
            table(root="", a="a"),
            'queue "a" is its own ancestor, or more than 64 levels below "root"',
            id="its own parent",
        ),
        pytest.param(chain(DEPTH_MAX), "", id="as deep as may be"),
        pytest.param(
            chain(DEPTH_MAX + 1),
            'queue "q64" is its own ancestor, or more than 64 levels below "root"',
            id="deeper",
        ),
    ],
)
def test_what_is_no_tree_is_said(queues: QueueTable, problem: str) -> None:
    assert QueueTree.of(queues).problem == problem


def test_what_is_no_tree_still_has_lines_that_end() -> None:
    queues = table(root="", a="b", b="a", c="root", d="gone", e="d")
    tree = QueueTree.of(queues)
    lines = {name: [queues.names[each] for each in tree.line(queues.row_of[name])] for name in queues.names}
    assert lines["c"] == ["c", "root"]
    assert (lines["a"], lines["b"]) == (["a"], ["b"])
    assert lines["e"] == ["e", "d"]
    assert tree.summed_up(np.ones((len(queues), 1)))[queues.row_of["d"], 0] == 2


def test_flat_queues_have_nobody_above_them() -> None:
    tree = QueueTree.flat(3)
    assert (tree.problem, tree.line(2), tree.is_leaf.all()) == ("", [2], True)
    assert tree.summed_up(np.ones((3, 1))).tolist() == [[1], [1], [1]]


def test_a_thousand_children_of_one() -> None:
    queues = [Queue("root"), *(queue(f"q{i}") for i in range(1000))]
    tree = QueueTree.of(QueueTable(Versions(), queues, ResourceAxis()))
    assert (tree.problem, [len(level) for level in tree.levels]) == ("", [1, 1000])
