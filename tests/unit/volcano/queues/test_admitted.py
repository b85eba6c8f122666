"""What waiting jobs were promised, and how much of a limit an amount is above."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.columns.rows import TaskRows
from pumice.columns.views import Job
from pumice.framework.cycle.session import Session
from pumice.testing.build import cluster, node, pod, podgroup, pods, resource, session
from pumice.volcano.queues.admitted import exceeded, fitting, minimum


def opened(*members: Any, phase: str = "Inqueue", count: int = 1, cpu: int = 4) -> Session:
    group = podgroup("g", count, phase=phase, min_resources=resource(cpu))
    return session(cluster(node("n", gpu=4), group, *members), "tiers: []")


def test_what_an_admitted_job_is_promised() -> None:
    ssn = opened(pods("g", 1, cpu=3, on="n"))
    assert minimum(ssn, Job(ssn.tables, 0))[0] == 4000, "whatever it holds"
    ssn = opened(pods("g", 1, cpu=3, gates=("mine",)))
    assert minimum(ssn, Job(ssn.tables, 0))[0] == 1000


@pytest.mark.parametrize(
    ("wanted", "asked", "names"),
    [
        pytest.param(resource(4, 4), resource(1, 1), [], id="within"),
        pytest.param(resource(5, 5), resource(1, 1), ["cpu", "memory"], id="above"),
        pytest.param(resource(5, 5), resource(0, 1), ["memory"], id="only what is asked for"),
        pytest.param(resource(1, 1, pods=9), resource(1, 1, pods=9), [], id="pods are not looked at"),
    ],
)
def test_in_which_dimensions_a_limit_is_exceeded(wanted: Any, asked: Any, names: list[str]) -> None:
    ssn = opened()
    amount = ssn.tables.axis.vector
    assert exceeded(ssn, amount(wanted), amount(resource(4, 4, pods=1)), amount(asked)) == names


@pytest.mark.parametrize(
    ("last", "room", "count"),
    [
        pytest.param({}, resource(3, "9Gi"), 3, id="all of equal ones"),
        pytest.param({}, resource("2500m", "9Gi"), 2, id="as many as fit"),
        pytest.param({}, resource(0, "9Gi"), 0, id="none"),
        pytest.param({"cpu": 2}, resource(3, "9Gi"), 2, id="of unlike ones those before the first that does not"),
        pytest.param({"gpu": 1}, resource(3, "9Gi"), 2, id="of what only one asks for"),
        pytest.param({"gpu": 1}, resource(3, "9Gi", 1), 3, id="which there may be"),
    ],
)
def test_for_how_many_there_is_room(last: dict[str, Any], room: Any, count: int) -> None:
    ssn = opened(pods("g", 2), pod("g-2", "g", **last))
    tasks = TaskRows(ssn.tables, ssn.tables.jobs.tasks[0])
    assert fitting(tasks, ssn.tables.axis.vector(room)) == count
