"""Admission: what was promised to a gang counts beside what it holds until its phase is Running."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api import Job, Session, Vote, plugin, points
from pumice.testing.build import cluster, node, podgroup, pods, queue, resource, run
from pumice.volcano.status.rejections import events

CONF = "actions: enqueue\ntiers: [{plugins: [{name: gang}, {name: overcommit}, {name: proportion}]}]"
ONE_NODE = node("n", 10)


def starts(phase: str) -> Any:
    """A gang that holds four of the twelve cores that may be promised, and is promised four until it is Running."""
    return podgroup("s", 1, phase=phase, min_resources=resource(4)), *pods("s", 1, cpu=4, on="n")


@pytest.mark.parametrize(
    ("phase", "cpu", "admitted"), [("Inqueue", 4, True), ("Inqueue", 5, False), ("Running", 6, True)]
)
def test_a_promise_ends_when_the_gang_runs(phase: str, cpu: int, admitted: bool) -> None:
    found = run(cluster(ONE_NODE, *starts(phase), podgroup("w", min_resources=resource(cpu))), CONF)
    assert (found.outcome.trace.rejected == []) is admitted


def test_the_cluster_s_reason_comes_before_the_queue_s() -> None:
    small = queue("default", capability=resource(8))
    found = run(cluster(ONE_NODE, small, *starts("Inqueue"), podgroup("w", min_resources=resource(7))), CONF)
    assert [event.message for event in events(found.outcome)] == ["resource in cluster is overused: overused cpu"]


def test_a_hook_that_takes_a_job_is_asked_for_each() -> None:
    asked: list[str] = []

    @plugin("judge", keeps="python")
    class Judge:
        def __init__(self, ssn: Session) -> None: ...

        @points.job_enqueueable
        def job_enqueueable(self, job: Job) -> Vote | str:
            asked.append(job.key)
            return "no" if job.key == "ns/a" else Vote.PERMIT

    jobs = [podgroup(name, min_resources=resource(1)) for name in ("a", "b")]
    found = run(cluster(ONE_NODE, *jobs), "actions: enqueue\ntiers: [{plugins: [{name: judge}]}]", plugins=[Judge])
    assert sorted(asked) == ["ns/a", "ns/b"]
    assert [event.message for event in events(found.outcome)] == ["no"]
