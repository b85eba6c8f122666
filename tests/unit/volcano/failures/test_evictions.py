"""Which jobs fail equally when they ask for evictions, what that rests on, and what is recorded of a failure."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api import Session, points
from pumice.columns.placement import Placement
from pumice.framework.cycle.trace import Attempt, Kind, Operation
from pumice.framework.plugin.filter_result import FitErrors
from pumice.model.blockers import CannotEvict
from pumice.testing.build import cluster, node, queue, session
from pumice.volcano.failures.equivalence import EqualJobs
from pumice.volcano.failures.evictions import equal_failures, everything, note_failure
from tests.unit.volcano.evicting import LEVELS, gang

CONF = "tiers: [{plugins: [{name: priority}, {name: gang}, {name: predicates}%s]}]"
IN_VAIN = CannotEvict("preempt", 0, 1, None)
VAIN = Attempt(findings=(IN_VAIN,))


class World:
    """Gangs that wait for a full node."""

    def __init__(self, plugins: str = "") -> None:
        waiting = {
            "first": {},
            "equal": {},
            "larger": {"cpu": 2},
            "higher": {"level": "high", "priority": 1},
            "other": {"of": "q"},
        }
        jobs = [gang(name, 1, 1, creation=float(i), **more) for i, (name, more) in enumerate(waiting.items())]  # type: ignore[arg-type]
        objects = LEVELS, queue("default"), queue("q"), node("n", 1), gang("old", 1, on="n"), *jobs
        self.ssn: Session = session(cluster(*objects), CONF % plugins)
        self.equal: EqualJobs = equal_failures(self.ssn, "preempt", points.preemptable)

    def job(self, name: str) -> int:
        return list(self.ssn.tables.jobs.uids).index(f"ns/{name}")

    def row(self, name: str) -> int:
        return int(self.ssn.tables.jobs.tasks[self.job(name)][0])

    def reports(self) -> list[Any]:
        return [(entry.subject, entry.finding) for entry in self.ssn.trace.log]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "fails"),
    [
        pytest.param("equal", True, id="one like it"),
        pytest.param("larger", False, id="none that asks for more"),
        pytest.param("higher", False, id="none of another rank, who may have others go"),
        pytest.param("other", False, id="none of another queue"),
    ],
)
def test_which_jobs_share_a_failure(name: str, fails: bool) -> None:
    world = World()
    note_failure(world.ssn, world.equal, world.job("first"), VAIN, fresh=True)
    assert world.equal.fails(world.job(name)) is fails
    assert world.reports() == [("ns/first", IN_VAIN), *([(f"ns/{name}", IN_VAIN)] if fails else [])]


def test_who_was_found_to_have_no_node_is_another_than_who_was_not() -> None:
    """What allocate gave up on a node, no eviction mends: preempt looks elsewhere for that one."""
    world = World()
    note_failure(world.ssn, world.equal, world.job("first"), VAIN, fresh=True)
    allocate = equal_failures(world.ssn, "allocate", points.preemptable)
    errors = FitErrors(message="no", node_rows=None, codes=None)
    allocate.keep(world.job("equal"), Attempt(errors=((world.row("equal"), errors),)))
    assert not world.equal.fails(world.job("equal"))


def test_a_failure_does_not_outlive_what_it_rests_on() -> None:
    world = World()
    note_failure(world.ssn, world.equal, world.job("first"), VAIN, fresh=True)
    ssn = world.ssn
    mark = ssn.journal.mark()
    ssn.journal.put(ssn.tables.jobs["phase"], world.job("old"), int(ssn.tables.jobs.phase[world.job("old")]) + 1)
    assert not world.equal.fails(world.job("equal")), "whoever may go, it may be another job now"
    ssn.journal.rollback(mark)
    ssn.statement().evict([world.row("old")], "go")
    assert not world.equal.fails(world.job("equal")), "somebody is going"


def test_a_job_that_was_partly_placed_before_says_nothing_of_others() -> None:
    world = World()
    undone = (Operation(Kind.PIPELINE, Placement([world.row("first")], [0])),)
    note_failure(world.ssn, world.equal, world.job("first"), VAIN._replace(undone=undone), fresh=False)
    assert world.reports() == [("ns/first", IN_VAIN)]
    trace = world.ssn.trace.undone_of(world.job("first"))
    assert trace is not None
    assert trace.node.tolist() == [0]
    assert not world.equal.fails(world.job("equal"))


def test_it_rests_on_every_pod_job_and_queue_and_on_what_plugins_keep() -> None:
    ssn = World(", {name: drf}").ssn
    tables = ssn.tables
    found = {id(column) for column in everything(ssn, points.preemptable)}
    for table in (tables.tasks, tables.jobs, tables.subs, tables.queues):
        assert {id(column) for column in table.columns.values()} <= found
    assert ssn.world.columns
    assert {id(column) for column in ssn.world.columns.values()} <= found


@pytest.mark.parametrize(("plugins", "timed"), [("", False), (", {name: cdp}", True)])
def test_it_rests_on_time_where_a_plugin_reads_that(plugins: str, timed: bool) -> None:
    ssn = World(plugins).ssn
    assert any(column is ssn.world.now for column in everything(ssn, points.preemptable)) is timed
