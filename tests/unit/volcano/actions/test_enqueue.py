"""enqueue: who is admitted, in which order, and who is asked about."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api import F64, Job, Queue, Session, Vote, plugin, points
from pumice.cycle import run_cycle
from pumice.framework.memo import Memo
from pumice.model.queue import PriorityClass
from pumice.runtime.loop import ListPlanner
from pumice.testing.build import Ran, cluster, node, podgroup, pods, policy, queue, resource, run

TIERS = "actions: enqueue\ntiers: [{plugins: [{name: priority}, {name: %s}]}]"
LEVELS = PriorityClass("low", 1), PriorityClass("high", 9)


def wants(name: str, cpu: int | None = 1, **more: Any) -> Any:
    """A job that waits for admission; without ``cpu`` it does not say what it wants."""
    return podgroup(name, min_resources=None if cpu is None else resource(cpu), **more)


def admitted(found: Ran) -> list[str]:
    """In order."""
    return [entry.subject.removeprefix("ns/") for entry in found.outcome.entries if entry.what == "admitted"]


def judge(*rejected: str) -> tuple[Any, list[str]]:
    """A plugin that rejects some jobs, and writes down whom it was asked about and who was admitted."""
    asked: list[str] = []

    @plugin("judge", keeps="python")
    class Judge:
        def __init__(self, ssn: Session) -> None: ...

        @points.job_enqueueable
        def job_enqueueable(self, job: Job) -> Vote | str:
            asked.append(job.key.removeprefix("ns/"))
            return "not you" if job.key.removeprefix("ns/") in rejected else Vote.PERMIT

        @points.job_enqueued
        def job_enqueued(self, job: Job) -> None:
            asked.append("+" + job.key.removeprefix("ns/"))

    return Judge, asked


@pytest.mark.parametrize(
    ("job", "asked"),
    [
        pytest.param(wants("g"), ["g", "+g"], id="says what it wants"),
        pytest.param(wants("g", None), ["+g"], id="does not say it: nobody is asked, and all are told"),
        pytest.param(wants("g", 0), ["g", "+g"], id="wants nothing"),
        pytest.param(wants("g", phase="Inqueue"), [], id="is admitted already"),
        pytest.param(wants("g", phase="Running"), [], id="runs"),
        pytest.param(wants("g", queue="gone"), [], id="has no queue"),
    ],
)
def test_who_is_asked_about(job: Any, asked: list[str]) -> None:
    plugged, heard = judge()
    found = run(cluster(node("n"), job), TIERS % "judge", plugins=[plugged])
    assert heard == asked
    assert admitted(found) == (["g"] if asked else [])


def test_jobs_come_in_order_by_queue_and_each_is_asked_about_once() -> None:
    """A job that is rejected keeps nobody behind it waiting; jobs without pods have their turn too."""
    plugged, heard = judge("high")
    jobs = [
        wants("low", queue="a", priority_class="low"),
        wants("high", queue="a", priority_class="high", creation=9.0),
        wants("other", queue="b", priority_class="high"),
    ]
    found = run(cluster(LEVELS, queue("a"), queue("b"), node("n"), jobs), TIERS % "judge", plugins=[plugged])
    assert heard == ["high", "low", "+low", "other", "+other"]
    assert admitted(found) == ["low", "other"]
    assert found.phases == {"ns/low": "Inqueue", "ns/other": "Inqueue"}


@pytest.mark.parametrize(
    ("cpus", "who"),
    [
        pytest.param([3, 3, 1], ["g0", "g2"], id="a rejection stands for as much, not for less"),
        pytest.param([2, 3, 1], ["g0", "g2"], id="less behind more"),
        pytest.param([2, 2, 1], ["g0", "g1"], id="as far as it goes"),
        pytest.param([5, 6, 7], [], id="nobody"),
        pytest.param([5, None, 7], ["g1"], id="who does not say what it wants"),
    ],
)
def test_where_only_amounts_count(cpus: list[int | None], who: list[str]) -> None:
    """On four cores."""
    jobs = [wants(f"g{i}", cpu, creation=float(i)) for i, cpu in enumerate(cpus)]
    conf = TIERS % "overcommit, arguments: {overcommit-factor: 1.0}"
    assert admitted(run(cluster(node("n", 4), jobs), conf)) == who


def test_every_job_that_is_rejected_hears_why() -> None:
    jobs = [wants(f"g{i}", 9, creation=float(i)) for i in range(3)]
    found = run(cluster(node("n", 4), jobs), TIERS % "overcommit")
    said = {each.job: each.message for each in found.outcome.events}
    assert sorted(said) == ["ns/g0", "ns/g1", "ns/g2"]
    assert all("overused cpu" in text for text in said.values())


def test_admission_is_written_for_allocate_to_see() -> None:
    conf = (TIERS % "gang").replace("enqueue", "enqueue, allocate")
    found = run(cluster(node("n"), wants("g", 1), pods("g", 1)), conf)
    assert (admitted(found), found.binds) == (["g"], {"ns/g-0": "n"})


def test_a_plugin_that_keeps_what_it_likes_is_asked_in_every_cycle() -> None:
    """What was rejected once is remembered as long as all that the answer rests on is the same. Of a plugin with plain
    Python state nobody knows what that is."""
    gates = {"open": False}

    @plugin("gatekeeper", keeps="python")
    class Gatekeeper:
        def __init__(self, ssn: Session) -> None:
            self.open = gates["open"]

        @points.job_enqueueable
        def job_enqueueable(self, queue: Queue, asked: F64) -> Vote | str:
            return Vote.PERMIT if self.open else "closed"

    chosen = policy(TIERS % "gatekeeper", plugins=[Gatekeeper])
    store, memo = cluster(node("n"), wants("g")), Memo()
    outcomes = []
    for gates["open"] in (False, True):
        outcomes.append(run_cycle(store.snapshot(), chosen, 1.0, ListPlanner(), memo=memo))
    assert [[entry.what for entry in outcome.entries] for outcome in outcomes] == [[], ["admitted"]]


# -- once a job runs, its promise ends

DEFAULT = "actions: '%s'\ntiers: [{plugins: [{name: gang}, {name: overcommit}, {name: proportion}]}]"
ONE_NODE = node("n", 10)
STARTS = [podgroup("s", 1, phase="Inqueue", min_resources=resource(4)), *pods("s", 1, cpu=4, on="n")]
ADMITTED = [podgroup("w", 1, phase="Inqueue"), *pods("w", 1, cpu=9)]


@pytest.mark.parametrize(
    ("objects", "actions", "again"),
    [
        pytest.param([*STARTS, wants("w", 5)], "enqueue", True, id="which is what the next one may have"),
        pytest.param([*STARTS, wants("w", 9)], "enqueue", False, id="which is not enough for anybody"),
        pytest.param([*STARTS, wants("w", 9), wants("v", 8)], "enqueue", True, id="which is enough for one of two"),
        pytest.param([*STARTS, wants("w", 8), wants("v", 1)], "enqueue", True, id="for who is left"),
        pytest.param(STARTS, "enqueue", False, id="and nobody waits"),
        pytest.param([*STARTS, *ADMITTED], "allocate", False, id="and admission is not asked for"),
        pytest.param([podgroup("s", 1), wants("w", 9)], "enqueue", True, id="another phase"),
        pytest.param(
            [podgroup("s", 1, phase="Running"), *pods("s", 1, cpu=4, on="n"), wants("w", 9)],
            "enqueue",
            False,
            id="none",
        ),
    ],
)
def test_whether_the_next_cycle_may_answer_otherwise(objects: list[Any], actions: str, again: bool) -> None:
    """Twelve cores may be promised, of which the job that starts holds four, and is promised four until it is said to
    run."""
    found = run(cluster(ONE_NODE, objects), DEFAULT % actions)
    assert found.outcome.writes.ask_again == again


def test_what_is_said_of_who_waits_may_change_too() -> None:
    """Of two things that stand against it the cluster's comes first, as long as it does."""
    queued = [queue("default", capability=resource(8)), *STARTS, wants("w", 7)]
    found = run(cluster(ONE_NODE, queued), DEFAULT % "enqueue")
    assert (rejected(found), found.outcome.writes.ask_again) == (
        ["resource in cluster is overused: overused cpu"],
        True,
    )


def test_a_plugin_that_does_not_hear_of_starts_is_asked_again() -> None:
    plugged, _ = judge("w")
    found = run(cluster(ONE_NODE, STARTS, wants("w", 9)), TIERS % "judge", plugins=[plugged])
    assert found.outcome.writes.ask_again

    @plugin("hears")
    class Hears:
        def __init__(self, ssn: Session) -> None: ...

        @points.job_enqueueable
        def job_enqueueable(self, queue: Queue, asked: F64) -> Vote | str:
            return "no"

        @points.job_started
        def job_started(self, job: Job) -> None:
            raise ValueError("of what?")

    found = run(cluster(ONE_NODE, STARTS, wants("w", 9)), TIERS % "hears", plugins=[Hears])
    assert (found.outcome.writes.ask_again, rejected(found)) == (True, ["no"]), "a fault of a hook is the next cycle's"


def test_what_is_tried_out_leaves_no_trace() -> None:
    figures = run(cluster(ONE_NODE, STARTS, wants("w", 9)), DEFAULT % "enqueue").outcome.figures
    assert (
        figures["queue.inqueue"].tolist()
        == run(cluster(ONE_NODE, STARTS), DEFAULT % "enqueue").outcome.figures["queue.inqueue"].tolist()
    )


def rejected(found: Ran) -> list[str]:
    return [text for rows, text in found.outcome.story.rejected for _ in rows]
