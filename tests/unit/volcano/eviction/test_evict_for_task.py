"""Room is made for a job task by task, all or nothing, and not asked for twice in vain."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pumice.api import Session, points
from pumice.framework.cycle.budget import Budget
from pumice.framework.cycle.statement import Statement
from pumice.model.blockers import CannotEvict, NoVictims
from pumice.testing.build import cluster, node, podgroup, pods, session
from pumice.volcano.eviction.evict_for_task import EvictForTask, WhyNot

CONF = "tiers: [{plugins: [{name: gang}, {name: predicates}]}]"


BUSY = NoVictims()


class World:
    """A gang of ``minimum`` out of four that wait: two small ones, then two large ones. ``room``: of how many tasks."""

    def __init__(self, minimum: int, room: int = 9) -> None:
        members = [*pods("g", 2, cpu=1, priority=2), *pods("g", 2, first=2, cpu=2, priority=1)]
        store = cluster(node("n", 99), podgroup("g", minimum, phase="Inqueue"), members)
        self.ssn: Session = session(store, CONF)
        self.making = EvictForTask(
            self.ssn, "take", "take", points.preemptable, Budget(self.ssn, self.ssn.jobs.rows, 0)
        )
        self.job = list(self.ssn.tables.jobs.uids).index("ns/g")
        self.room, self.asked = room, list[str]()

    def names(self, rows: Sequence[int]) -> list[str]:
        return [self.ssn.tables.tasks.pods[row].name for row in rows]

    def make_room(self, stmt: Statement, row: int) -> WhyNot | None:
        self.asked += self.names([row])
        if not self.room:
            return lambda: BUSY
        self.room -= 1
        assert stmt.pipeline([row], [0]) is None
        return None

    def run(self) -> bool:
        return self.making.for_job(self.job, self.make_room)

    def promised(self) -> list[str]:
        tasks = self.ssn.tables.tasks
        return self.names([row for row in self.ssn.tables.jobs.tasks[self.job].tolist() if tasks.node[row] >= 0])


def test_as_far_as_the_job_starves_and_no_further() -> None:
    world = World(3)
    assert world.run() is False
    assert world.promised() == ["g-0", "g-1", "g-2"]
    assert world.asked == ["g-0", "g-1", "g-2"]


@pytest.mark.parametrize(
    ("room", "said"),
    [
        pytest.param(0, CannotEvict("take", 0, 4, BUSY), id="none"),
        pytest.param(2, CannotEvict("take", 2, 4, BUSY), id="not enough"),
    ],
)
def test_not_enough_is_nothing_and_is_reported(room: int, said: CannotEvict) -> None:
    world = World(3, room)
    before = world.ssn.world.digest()
    assert world.run() is True
    assert world.promised() == []
    assert world.ssn.world.digest() == before
    assert [entry.finding for entry in world.ssn.trace.log] == [said]  # type: ignore[union-attr]


def test_tasks_like_one_for_which_there_was_none_are_not_asked_about() -> None:
    world = World(3, 0)
    world.run()
    assert world.asked == ["g-0", "g-2"], "one of each kind"
    world.run()
    assert len(world.asked) == 2, "nor is the job, again"


def test_they_are_once_something_has_changed() -> None:
    world = World(3, 0)
    world.run()
    world.room = 9
    (free,) = [row for row in world.ssn.tables.jobs.tasks[world.job].tolist() if world.names([row]) == ["g-3"]]
    world.ssn.statement().pipeline([free], [0])
    assert world.run() is False
    assert len(world.asked) > 2
