"""Nodes where victims would not be enough are not asked about again, while nothing changes that was read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pumice.api import ROWS, Bool, Candidates, Session, Task, plugin, points
from pumice.testing.build import cluster, node, session
from pumice.volcano.eviction.refuted_nodes import RefutedNodes
from tests.unit.framework.kit import answers_equally
from tests.unit.volcano.evicting import LEVELS, gang


def nobody(ssn: Session, preemptor: Task, candidates: Candidates) -> Bool:
    return np.zeros(len(candidates), dtype=bool)


@answers_equally
@plugin("like")
@points.preemptable(reads=(ROWS,))
def like(ssn: Session, preemptor: Task, candidates: Candidates) -> Bool:
    return nobody(ssn, preemptor, candidates)


@plugin("unlike")
@points.preemptable
def unlike(ssn: Session, preemptor: Task, candidates: Candidates) -> Bool:
    return nobody(ssn, preemptor, candidates)


@plugin("rows")
@points.preemptable(reads=(ROWS,))
def rows_alone(ssn: Session, preemptor: Task, candidates: Candidates) -> Bool:
    return nobody(ssn, preemptor, candidates)


class World:
    """``x`` runs on n0 and n1, ``y`` on n1; ``a`` to ``d`` wait, ``c`` and ``d`` with a higher rank, of ``d`` the
    job alone."""

    def __init__(self, hook: str = "like") -> None:
        nodes = [node(f"n{i}", 4, creation=float(i)) for i in range(3)]
        waiting = [gang("a", 2, 2), gang("b", 2, 2, creation=1.0), gang("c", 2, 2, level="high", creation=2.0)]
        waiting.append(gang("d", 2, 2, level="high", creation=3.0, priority=1))
        runs = [*gang("x", 1, on="n0"), *gang("x", 2, on="n1")[2:], *gang("y", 1, on="n1")]
        conf = f"tiers: [{{plugins: [{{name: gang, enablePreemptable: false}}, {{name: {hook}}}]}}]"
        self.ssn = session(cluster(LEVELS, nodes, *waiting, runs), conf, plugins=[like, unlike, rows_alone])
        self.tasks = self.ssn.tables.tasks
        rows = np.array([self.row(name) for name in ("x-0", "x-1", "y-0")])
        self.refuted = RefutedNodes(self.ssn, points.preemptable_victims, rows)

    def row(self, name: str) -> int:
        return next(row for row, each in enumerate(self.tasks.pods) if each is not None and each.name == name)

    def job(self, name: str) -> int:
        return list(self.ssn.tables.jobs.uids).index(f"ns/{name}")

    def nodes(self, name: str, *more: str) -> list[int]:
        """Nodes that are known to be refuted for a task."""
        refuted = self.refuted.of(Task(self.ssn.tables, self.row(name)), *more)
        return [] if refuted is None else refuted.nonzero()[0].tolist()

    def refute(self, name: str, *nodes: int) -> None:
        self.refuted.add(Task(self.ssn.tables, self.row(name)), np.array(nodes, dtype=np.int64))


@pytest.mark.parametrize(
    ("hook", "equal"),
    [
        pytest.param("like", {"a-1", "b-0"}, id="hooks that read the signature say it of all that are equal"),
        pytest.param("rows", set(), id="hooks that read what the signature does not say of one alone"),
        pytest.param("unlike", set(), id="and those that do not say what they read"),
    ],
)
def test_of_whom_it_is_known(hook: str, equal: set[str]) -> None:
    world = World(hook)
    world.refute("a-0", 0, 1)
    assert world.nodes("a-0") == [0, 1]
    assert {name for name in ("a-1", "b-0", "c-0", "d-0") if world.nodes(name)} == equal
    assert world.nodes("a-0", "another question") == []


def evict(world: World, name: str) -> None:
    world.ssn.statement().evict([world.row(name)], "go")


def place(world: World, name: str, node_row: int) -> None:
    world.ssn.statement().allocate([world.row(name)], [node_row])


@pytest.mark.parametrize("hook", ["like", "unlike"])
@pytest.mark.parametrize(
    ("change", "left"),
    [
        pytest.param(lambda world: None, [0, 1, 2], id="nothing"),
        pytest.param(lambda world: evict(world, "y-0"), [0, 2], id="a node on which somebody left"),
        pytest.param(lambda world: evict(world, "x-0"), [2], id="all nodes of a job that lost one"),
        pytest.param(lambda world: place(world, "b-0", 2), [0, 1], id="a node where somebody came"),
    ],
)
def test_how_long_it_is_known(hook: str, change: Callable[[World], None], left: list[int]) -> None:
    world = World(hook)
    world.refute("a-0", 0, 1, 2)
    change(world)
    assert world.nodes("a-0") == left


def test_a_rollback_makes_it_known_again_only_if_it_was_not_asked_in_between() -> None:
    world = World()
    world.refute("a-0", 0, 1, 2)
    with world.ssn.statement():
        pass
    with world.ssn.statement() as stmt:
        stmt.evict([world.row("y-0")], "go")
    assert world.nodes("a-0") == [0, 1, 2], "nobody looked, and all is as it was"
    with world.ssn.statement() as stmt:
        stmt.evict([world.row("y-0")], "go")
        assert world.nodes("a-0") == [0, 2]
    assert world.nodes("a-0") == [0, 2]


def test_what_was_promised_to_others_of_its_job_tells_a_task_apart() -> None:
    world = World()
    with world.ssn.statement() as stmt:
        stmt.pipeline([world.row("b-0")], [2])
        world.refute("b-1", 0, 1)
        assert world.nodes("a-1") == []
    assert world.nodes("b-1") == []
