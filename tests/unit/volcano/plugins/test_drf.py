"""drf: the job with the smaller dominant share first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.rows import Candidates
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.testing.build import cluster, node, pod, podgroup, pods, session
from pumice.volcano.plugins.drf import taken_so_far

CONF = "tiers: [{plugins: [{name: drf}]}]"


def opened(*members: Any) -> Session:
    """Jobs a and b, and job w with a pod of two cores that waits; on ten cores and ten GiB."""
    groups = [podgroup(name, 1, creation=float(i)) for i, name in enumerate("abw")]
    return session(cluster(node("n", 10, "10Gi"), groups, pod("w-0", "w", 2), *members), CONF)


def job_row(ssn: Session, name: str) -> int:
    return list(ssn.tables.jobs.uids).index(f"ns/{name}")


@pytest.mark.parametrize(
    ("runs", "share"),
    [
        pytest.param([], 0.0, id="nothing"),
        pytest.param(pods("a", 1, cpu=3, memory="1Gi", on="n"), 0.3, id="of cpu"),
        pytest.param(pods("a", 1, cpu=3, memory="5Gi", on="n"), 0.5, id="of memory, which is larger"),
        pytest.param(pods("a", 2, cpu=3, memory="1Gi", on="n"), 0.6, id="of all its pods"),
    ],
)
def test_the_share_of_a_job(runs: list[Any], share: float) -> None:
    ssn = opened(runs)
    assert ssn.hooks.plugin("drf").share.array[job_row(ssn, "a")] == pytest.approx(share)


def test_a_share_follows_placements_and_their_undoing() -> None:
    ssn = opened()
    share, job, before = ssn.hooks.plugin("drf").share, job_row(ssn, "w"), ssn.world.digest()
    with ssn.statement() as stmt:
        stmt.allocate([int(ssn.tables.jobs.tasks[job][0])], [0])
        assert share.array[job] == pytest.approx(0.2)
        stmt.discard()
    assert ssn.world.digest() == before


@pytest.mark.parametrize(
    ("runs", "victims"),
    [
        pytest.param(pods("a", 4, on="n"), [True, True, False, False], id="as long as its share is no smaller"),
        pytest.param(pods("a", 2, on="n"), [False, False], id="none of a job that has no more"),
        pytest.param(
            [*pods("a", 3, on="n"), *pods("b", 3, on="n")], [True, False, False] * 2, id="each job for itself"
        ),
    ],
)
def test_whom_a_job_may_evict(runs: list[Any], victims: list[bool]) -> None:
    ssn = opened(runs)
    preemptor = Task(ssn.tables, int(ssn.tables.jobs.tasks[job_row(ssn, "w")][0]))
    rows = np.concatenate([ssn.tables.jobs.tasks[job_row(ssn, name)] for name in "ab"])
    assert ssn.hooks.plugin("drf").preemptable(preemptor, Candidates(ssn.tables, rows)).tolist() == victims


def test_without_hierarchy_it_says_nothing_of_queues() -> None:
    assert not opened().has(points.queue_order)


def test_sums_of_groups_in_turn() -> None:
    amounts = np.array([[1.0], [10.0], [2.0], [20.0]])
    assert taken_so_far(np.array([0, 1, 0, 1]), amounts).ravel().tolist() == [1.0, 10.0, 3.0, 30.0]
