"""Waiting jobs in order: the same as from a heap, while jobs are taken off the front and others are put aside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.rows import JobRows
from pumice.columns.views import Job
from pumice.framework import points
from pumice.framework.ordering import Heap, JobsInOrder, job_keyer
from pumice.framework.plugin import plugin
from pumice.framework.session import Session
from pumice.testing.build import cluster, podgroup, session


def by_minimum() -> Any:
    @plugin("by-minimum")
    @points.job_order
    def hook(ssn: Session, jobs: JobRows) -> Any:
        return jobs.tables.jobs.min_available[jobs.rows]

    return hook


def by_minimum_in_pairs() -> Any:
    @plugin("by-minimum")
    @points.job_order
    def hook(ssn: Session, left: Job, right: Job) -> int:
        return left.min_available - right.min_available

    return hook


PLUGINS = pytest.mark.parametrize(
    ("make", "order"),
    [
        pytest.param(None, "f g c d e a b", id="nobody"),
        pytest.param(by_minimum, "f d e c a b g", id="a key"),
        pytest.param(by_minimum_in_pairs, "f d e c a b g", id="a comparison"),
    ],
)


def waiting(make: Any) -> tuple[JobsInOrder, Session]:
    """Seven jobs as (minimum, creation), whose rows are not in the order of their names."""
    jobs = {"f": (1, 0), "e": (1, 2), "d": (1, 2), "c": (2, 2), "b": (2, 3), "a": (2, 3), "g": (3, 1)}
    groups = [podgroup(name, minimum, creation=float(age)) for name, (minimum, age) in jobs.items()]
    conf = "tiers: [{plugins: [{name: by-minimum}]}]" if make else "tiers: []"
    ssn = session(cluster(*groups), conf, plugins=[make()] if make else [])
    return JobsInOrder(ssn, job_keyer(ssn), np.arange(len(jobs))), ssn


def names(ssn: Session, rows: Any) -> list[str]:
    return [ssn.tables.jobs.uids[row].removeprefix("ns/") for row in rows]


def drained(jobs: JobsInOrder, ssn: Session) -> list[str]:
    found = []
    while len(jobs):
        found += names(ssn, jobs.rows()[:1])
        jobs.drop_first()
    return found


@PLUGINS
def test_one_after_the_other(make: Any, order: str) -> None:
    jobs, ssn = waiting(make)
    assert len(jobs) == 7
    assert drained(jobs, ssn) == order.split()
    assert names(ssn, Heap(job_keyer(ssn), list(range(7))).pop_all()) == order.split()
    assert jobs.rows().tolist() == []


@PLUGINS
@pytest.mark.parametrize("taken", range(5))
@pytest.mark.parametrize("aside", ["", "f", "d", "e", "c", "a", "b", "de", "ab", "fe", "fdecgb"])
def test_those_put_aside_leave_the_others_in_order(make: Any, order: str, taken: int, aside: str) -> None:
    jobs, ssn = waiting(make)
    for _ in range(taken):
        jobs.rows()
        jobs.drop_first()
    kept = [name not in aside for name in names(ssn, jobs.rows())]
    jobs.keep(np.array(kept))
    assert drained(jobs, ssn) == [name for name in order.split()[taken:] if name not in aside]


def test_no_jobs() -> None:
    _, ssn = waiting(by_minimum)
    none = JobsInOrder(ssn, job_keyer(ssn), np.zeros(0, dtype=np.int64))
    assert (len(none), none.rows().tolist()) == (0, [])
