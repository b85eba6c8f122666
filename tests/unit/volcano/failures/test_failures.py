"""A job fails as one like it did, while nothing that the failure rests on has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pumice.columns.views import Job
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.trace import Attempt, Question
from pumice.framework.plugin import points
from pumice.framework.plugin.filter_result import FitErrors
from pumice.framework.plugin.plugin import plugin
from pumice.framework.plugin.point import ROWS
from pumice.placing.batch import placing_of
from pumice.testing.build import cluster, node, podgroup, pods, queue, session
from pumice.volcano.failures.failures import Failures
from tests.unit.framework.kit import anew, answers_equally

NO_ROOM = FitErrors(message="no room")


def ready(self: Any, job: Job) -> int:
    return 1


class World:
    """Gangs by name and queue; ``first`` has failed, with a task that found no node."""

    def __init__(self, *, equal: bool = True, asks_queue: bool = False) -> None:
        class Mine:
            def __init__(self, ssn: Session) -> None: ...

        Mine.ready = points.job_ready(reads=(ROWS,))(anew(ready))  # type: ignore[attr-defined]
        gangs = {"first": "q", "equal": "q", "elsewhere": "r", "larger": "q"}
        objects: list[Any] = [node("a"), node("b"), queue("q"), queue("r")]
        for i, (name, of) in enumerate(gangs.items()):
            count = 3 if name == "larger" else 2
            objects += [podgroup(name, count, of, phase="Inqueue", creation=float(i)), *pods(name, count, cpu=9)]
        objects += [podgroup("small", 1, "r", creation=9.0), *pods("small", 1)]
        conf, mine = "tiers: [{plugins: [{name: mine}]}]", plugin("mine")(Mine)
        self.ssn = ssn = session(cluster(objects), conf, plugins=[answers_equally(mine, "ready") if equal else mine])
        asks = (points.job_ready,)
        self.failures = Failures(ssn.world, ssn.hooks, ssn.memo, placing_of(ssn), ssn.trace, "place", asks)
        first = self.row("first")
        rows = tuple(ssn.tables.jobs.tasks[first].tolist())
        attempt = Attempt(errors=((rows[1], NO_ROOM),))
        if asks_queue:
            attempt = Attempt(asked=(Question(rows, 0),))
        self.failures.keep(first, attempt)

    def row(self, name: str) -> int:
        return list(self.ssn.tables.jobs.uids).index(f"ns/{name}")

    def place(self, name: str, where: int) -> None:
        """The first task of a job on a node."""
        self.ssn.statement().allocate([int(self.ssn.tables.jobs.tasks[self.row(name)][0])], [where])


@pytest.mark.parametrize(
    ("name", "fails"),
    [
        pytest.param("equal", True, id="one of its queue with as many equal tasks"),
        pytest.param("elsewhere", False, id="one of another queue"),
        pytest.param("larger", False, id="one with more tasks"),
        pytest.param("small", False, id="one that asks for less"),
    ],
)
def test_which_jobs_share_a_failure(name: str, fails: bool) -> None:
    world = World()
    assert (world.failures.of(world.row(name)) is not None) is fails


def test_a_failure_is_recorded_by_position_for_its_job() -> None:
    world = World()
    found = world.failures.of(world.row("equal"))
    assert found is not None and found.errors == ((1, NO_ROOM),)
    assert not found.alone
    (second,) = world.ssn.trace.errors_of(world.row("first"))
    assert second == world.ssn.tables.jobs.tasks[world.row("first")][1]


def test_a_hook_about_single_jobs_makes_a_failure_the_job_s_own() -> None:
    world = World(equal=False)
    first, equal = world.row("first"), world.row("equal")
    assert not world.failures.holds_for_equal(first)
    assert world.failures.of(first) is not None
    assert world.failures.of(equal) is None


@pytest.mark.parametrize(
    ("asks_queue", "happens", "holds"),
    [
        pytest.param(False, lambda world: None, True, id="nothing"),
        pytest.param(False, lambda world: world.place("small", 0), False, id="a node has changed"),
        pytest.param(True, lambda world: world.place("small", 0), True, id="where the queue took on none of them"),
    ],
)
def test_how_long_it_holds(asks_queue: bool, happens: Callable[[World], None], holds: bool) -> None:
    world = World(asks_queue=asks_queue)
    happens(world)
    found = world.failures.of(world.row("equal"))
    assert (found is not None) is holds
    assert found is None or found.alone is asks_queue


@pytest.mark.parametrize(
    ("happens", "fresh"),
    [
        pytest.param(lambda world: None, True, id="nothing"),
        pytest.param(lambda world: world.place("equal", 0), False, id="a task of it is placed"),
        pytest.param(
            lambda world: world.ssn.trace.take(world.row("equal"), Attempt(errors=((0, NO_ROOM),))),
            False,
            id="it was tried",
        ),
    ],
)
def test_only_a_job_of_which_nothing_is_known_fails_like_others(happens: Callable[[World], None], fresh: bool) -> None:
    world = World()
    happens(world)
    assert world.failures.is_fresh(world.row("equal")) is fresh
