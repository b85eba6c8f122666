"""How often all jobs of a queue are looked at, when none of them fails like another."""

from __future__ import annotations

import pytest

from pumice.api import Session, points
from pumice.framework.cycle.ordering import Heap
from pumice.framework.cycle.trace import Attempt
from pumice.model.blockers import CannotEvict
from pumice.testing.build import cluster, node, queue, session
from pumice.volcano.failures.equivalence import EqualJobs
from pumice.volcano.failures.evictions import equal_failures
from tests.unit.volcano.evicting import LEVELS, gang

CONF = "tiers: [{plugins: [{name: priority}, {name: gang}, {name: predicates}]}]"
VAIN = Attempt(findings=(CannotEvict("preempt", 0, 1, None),))


class CountedHeap(Heap):
    """A heap that counts the rows that it lists."""

    __slots__ = ("listed",)
    listed: int

    def rows(self) -> list[int]:
        self.listed += len(self)
        return super().rows()


def world(shapes: list[int]) -> tuple[Session, EqualJobs, CountedHeap]:
    """Return jobs that wait, each of a pod that asks for so many cores."""
    jobs = [gang(f"j{i:03}", 1, 1, creation=float(i), cpu=cores) for i, cores in enumerate(shapes)]
    ssn = session(cluster(LEVELS, queue("default"), node("n", 1), gang("old", 1, on="n"), *jobs), CONF)
    rows = [row for row, uid in enumerate(ssn.tables.jobs.uids) if uid and uid.startswith("ns/j")]
    heap = CountedHeap(ssn.order.job_keys(), rows)
    heap.listed = 0
    return ssn, equal_failures(ssn, "preempt", points.preemptable), heap


def tried(equal: EqualJobs, jobs: CountedHeap) -> int:
    """Try each job that does not fail like another. Return how many were tried."""
    count = 0
    while jobs:
        equal.keep(jobs.pop(), VAIN)
        count += 1
        equal.go_on(jobs)
    return count


@pytest.mark.parametrize(
    ("shapes", "kinds"),
    [
        pytest.param([i + 2 for i in range(160)], 160, id="all different"),
        pytest.param([i // 2 + 2 for i in range(160)], 80, id="pairs"),
        pytest.param([i % 3 + 2 for i in range(160)], 3, id="three kinds in turn"),
        pytest.param([2] * 80 + [i + 3 for i in range(80)], 81, id="equal ones before different ones"),
    ],
)
def test_looks_grow_with_the_number_of_jobs(shapes: list[int], kinds: int) -> None:
    """A look after each job that was tried would list 160 × 160 / 2 rows."""
    _, equal, jobs = world(shapes)
    assert tried(equal, jobs) == kinds
    assert 0 < jobs.listed <= 10 * len(shapes)


def test_equal_jobs_are_handled_by_one_look() -> None:
    _, equal, jobs = world([2] * 160)
    assert tried(equal, jobs) == 1
    assert jobs.listed == 159
