"""How long a job waits if nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from pumice.answers.explanation import Explanation, Verdict, explain
from pumice.answers.waiting import Wait
from pumice.answers.world import World
from pumice.model.events import Object
from pumice.model.workloads.estimate import ESTIMATE_ANNOTATION
from pumice.testing.build import node, pod, podgroup, policy, queue
from pumice.volcano.table import DEFAULT_CONF

NOW = 100_000.0


def running(name: str, place: str, estimate: str = "") -> list[Object]:
    group = podgroup(name, 1, phase="Running")
    since = replace(
        pod(f"{name}-0", group=name, cpu=4, gpu=0), node_name=place, phase="Running", start_time=NOW - 600.0
    )
    return [replace(group, annotations={ESTIMATE_ANNOTATION: estimate} if estimate else {}), since]


def asked(*others: Sequence[Object]) -> Explanation:
    """A job of two pods of 4 cores, on two nodes of 4 cores that are full."""
    ask = [podgroup("ask", 2), pod("ask-0", group="ask", cpu=4), pod("ask-1", group="ask", cpu=4)]
    objects = [
        queue("default"),
        node("n0", cpu=4),
        node("n1", cpu=4),
        *ask,
        *(each for some in others for each in some),
    ]
    return explain(World(objects, policy(DEFAULT_CONF), NOW, ("volcano",)), "ns/ask")


def test_a_job_waits_for_the_last_of_the_jobs_that_have_to_end() -> None:
    found = asked(running("a", "n0", "1h"), running("b", "n1", "30m"))
    assert found.verdict is Verdict.NOT_NOW
    assert found.wait == Wait(3000.0, ("ns/b", "ns/a"), 2, 0)


@pytest.mark.parametrize(("estimate", "without"), [("", 2), ("30m", 1)])
def test_a_wait_is_not_known_while_a_job_that_has_to_end_has_no_estimate(estimate: str, without: int) -> None:
    assert asked(running("a", "n0"), running("b", "n1", estimate)).wait == Wait(None, (), 2, without)


def test_a_job_that_never_starts_waits_for_no_end() -> None:
    found = asked(running("a", "n0", "1h"), [replace(podgroup("ask", 3))])
    assert found.verdict is Verdict.NEVER and found.wait is None
