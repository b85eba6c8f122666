"""An action that moved nothing is not repeated while all that it could see is the same, and tells the same again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.columns.views import Queue
from pumice.cycle import run_cycle
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.session import Session
from pumice.framework.memo import Memo
from pumice.framework.plugin.plugin import plugin
from pumice.framework.plugin.point import JOBS, NOW, Reads
from pumice.model.events import Seen
from pumice.model.workloads.podgroup import PodGroupStatus
from pumice.runtime.loop import ListPlanner
from pumice.testing.build import cluster, node, pod, podgroup, pods, policy
from pumice.volcano import points


class Cycles:
    """Cycles with one memory on a node that is full; one gang waits. ``asked`` counts how often a plugin that reads
    ``reads`` was asked about its queue."""

    def __init__(self, reads: Reads | None = None, *, keeps: str = "columns") -> None:
        self.asked = 0

        @plugin("asked", keeps=keeps)
        class Asked:
            def __init__(self, ssn: Session) -> None: ...

            @points.overused(reads=reads or ())
            def overused(plugin_self, queue: Queue) -> bool:
                self.asked += 1
                return False

        self.policy = policy(
            "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: asked}, {name: predicates}]}]", plugins=[Asked]
        )
        holds = podgroup("holds", 1, phase="Running"), pods("holds", 1, cpu=4, on="n", phase="Running")
        self.waits = podgroup("waits", 2, phase="Inqueue", creation=1.0)
        self.store = cluster(node("n", cpu=4), *holds, self.waits, pods("waits", 2, cpu=2))
        self.memo, self.now = Memo(), 0.0

    def run(self) -> Outcome:
        self.now += 1.0
        return run_cycle(self.store.snapshot(), self.policy, self.now, ListPlanner(), memo=self.memo)

    def is_asked(self) -> bool:
        """Whether a cycle now asks."""
        before = self.asked
        self.run()
        return self.asked > before


def told(outcome: Outcome) -> Any:
    trace = outcome.trace
    notices = [(each.pod, each.reason, each.message) for each in outcome.notices()]
    return outcome.entries, outcome.groups, notices, trace.failed_as.tolist()


def test_what_changed_nothing_is_not_done_again_and_told_again() -> None:
    cycles = Cycles()
    first = cycles.run()
    assert cycles.asked and "2 Pending" in repr(first.groups)
    for _ in range(2):
        asked = cycles.asked
        again = cycles.run()
        assert cycles.asked == asked
        entries, groups, *beside = told(again)
        assert [entries, *beside] == [told(first)[0], *told(first)[2:]]
        assert [update.status.phase for update in groups] == [update.status.phase for update in first.groups]


def more_room(cycles: Cycles) -> None:
    cycles.store.apply(Seen(node("m", cpu=4)))


def another_waits(cycles: Cycles) -> None:
    for each in (podgroup("new", 1, phase="Inqueue", creation=2.0), pod("new", "new", 9)):
        cycles.store.apply(Seen(each))


def it_says_something_else(cycles: Cycles) -> None:
    cycles.store.apply(Seen(replace(cycles.waits, annotations={"colour": "blue"})))


@pytest.mark.parametrize("happens", [more_room, another_waits, it_says_something_else])
def test_it_is_done_again_where_it_could_see_a_difference(happens: Callable[[Cycles], None]) -> None:
    cycles = Cycles()
    cycles.run()
    happens(cycles)
    assert cycles.is_asked()


def another_runs(cycles: Cycles) -> None:
    cycles.store.apply(Seen(podgroup("holds", 1, status=PodGroupStatus("Running", (), running=1))))


def test_a_job_that_does_not_wait_is_not_looked_at() -> None:
    cycles = Cycles()
    cycles.run()
    another_runs(cycles)
    assert not cycles.is_asked()


def another_is_labelled(cycles: Cycles) -> None:
    cycles.store.apply(Seen(podgroup("holds", 1, phase="Running", labels={"colour": "blue"})))


@pytest.mark.parametrize("reads", [pytest.param((NOW,), id="the clock"), pytest.param((JOBS,), id="other jobs")])
def test_nor_is_the_clock_nor_are_other_jobs_unless_a_plugin_reads_them(reads: Reads) -> None:
    cycles = Cycles(reads)
    cycles.run()
    another_is_labelled(cycles)
    assert cycles.is_asked()


def test_a_status_that_is_written_of_a_job_that_waits_is_a_reason_to_ask_once_more() -> None:
    cycles = Cycles()
    first = cycles.run()
    (update,) = [each for each in first.groups if each.job == "ns/waits"]
    cycles.store.apply(Seen(replace(cycles.waits, status=update.status)))
    assert [cycles.is_asked(), cycles.is_asked()] == [True, False]


def test_a_plugin_that_keeps_what_it_likes_is_always_asked() -> None:
    cycles = Cycles(keeps="python")
    cycles.run()
    assert cycles.is_asked()


def test_what_moved_something_is_done_again() -> None:
    cycles = Cycles()
    more_room(cycles)
    assert (cycles.run().tables.jobs.allocated[1] > 0).any()
    assert cycles.is_asked(), "nobody has heard of the decisions"
