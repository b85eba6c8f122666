"""enqueue: who is admitted, in which order, and who is asked about."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api import F64, Job, Queue, Session, Vote, plugin, points
from pumice.cycle import run_cycle
from pumice.framework.cycle.trace import Admitted
from pumice.framework.memo import Memo
from pumice.model.queue import PriorityClass
from pumice.runtime.loop import ListPlanner
from pumice.testing.build import Ran, cluster, node, podgroup, pods, policy, queue, resource, run
from pumice.volcano.status.rejections import events

TIERS = "actions: enqueue\ntiers: [{plugins: [{name: priority}, {name: %s}]}]"
LEVELS = PriorityClass("low", 1), PriorityClass("high", 9)


def wants(name: str, cpu: int | None = 1, **more: Any) -> Any:
    """A job that waits for admission; without ``cpu`` it does not say what it wants."""
    return podgroup(name, min_resources=None if cpu is None else resource(cpu), **more)


def admitted(found: Ran) -> list[str]:
    """In order."""
    return [entry.subject.removeprefix("ns/") for entry in found.outcome.entries if entry.finding == Admitted()]


def judge(*rejected: str) -> tuple[Any, list[str]]:
    """A plugin that rejects some jobs, and records which jobs it was asked about and which were admitted."""
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
    """A rejected job does not hold up those behind it, and jobs without pods are asked about too."""
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
        pytest.param([3, 3, 1], ["g0", "g2"], id="a rejection holds for as much, not for less"),
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
    said = {each.job: each.message for each in events(found.outcome)}
    assert sorted(said) == ["ns/g0", "ns/g1", "ns/g2"]
    assert all("overused cpu" in text for text in said.values())


def test_admission_is_written_for_allocate_to_see() -> None:
    conf = (TIERS % "gang").replace("enqueue", "enqueue, allocate")
    found = run(cluster(node("n"), wants("g", 1), pods("g", 1)), conf)
    assert (admitted(found), found.binds) == (["g"], {"ns/g-0": "n"})


def test_a_plugin_that_keeps_what_it_likes_is_asked_in_every_cycle() -> None:
    """What was rejected once is remembered as long as all that the answer rests on is the same. Of a plugin with plain
    Python state that is unknown."""
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
    assert [[entry.finding for entry in outcome.entries] for outcome in outcomes] == [[], [Admitted()]]


@pytest.mark.parametrize(("waiting", "built"), [([], 0), ([wants("g")], 1)], ids=["nobody waits", "somebody waits"])
def test_a_plugin_is_opened_for_those_who_wait(waiting: list[Any], built: int) -> None:
    opened = []

    @plugin("admits")
    class Admits:
        def __init__(self, ssn: Session) -> None:
            opened.append(ssn.uid)

        @points.job_enqueueable
        def job_enqueueable(self, queue: Queue, asked: F64) -> Vote | str:
            return Vote.PERMIT

    run(cluster(node("n"), waiting), TIERS % "admits", plugins=[Admits])
    assert len(opened) == built
