"""What queues deserve and borrow, under Volcano's policies and by quotas of KAI."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from pumice.model.events import Object
from pumice.model.queue import QueueSharing, Quota
from pumice.testing.build import cluster, node, podgroup, pods, queue, resource, run
from pumice.web.columns.queues import QueueColumns, QueuedJobs, queue_columns
from pumice.web.columns.units import PageUnits

CAPACITY = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: capacity}]}]"


def of(*objects: Object, policy: str = "actions: allocate\ntiers: [{plugins: [{name: gang}]}]") -> QueueColumns:
    outcome = run(cluster(*objects), policy, publishes=True).outcome
    units, jobs, rows = PageUnits(outcome.tables.axis), outcome.tables.jobs, outcome.live_jobs
    waits = np.zeros(len(rows), dtype=bool)
    held = units(jobs.allocated[rows])
    return queue_columns(outcome, units, QueuedJobs(jobs.queue[rows], held, np.zeros_like(held), waits))


def running(name: str, of_queue: str, cpu: int) -> list[Object]:
    return [podgroup(name, 1, of_queue, phase="Running"), *pods(name, 1, cpu=cpu, on="n")]


def row(found: QueueColumns, name: str) -> int:
    return list(found.names).index(name)


def test_a_queue_borrows_what_it_uses_beyond_what_the_policy_says_it_deserves() -> None:
    small = queue("small", deserved=resource(2)), queue("large", deserved=resource(6))
    found = of(node("n", 8), *small, *running("a", "small", 5), *running("b", "large", 1), policy=CAPACITY)
    assert found.deserved[row(found, "small"), 0] == 2 and found.used[row(found, "small"), 0] == 5
    assert found.borrowed[row(found, "small"), 0] == 3 and found.borrowed[row(found, "large"), 0] == 0


def test_a_queue_that_deserves_nothing_of_a_resource_borrows_none_of_it() -> None:
    found = of(node("n", 8), queue("q"), *running("a", "q", 5))
    assert found.deserved[row(found, "q")].tolist() == [0, 0] and found.borrowed[row(found, "q")].tolist() == [0, 0]


def test_a_queue_of_kai_deserves_its_quota_and_borrows_all_beyond() -> None:
    sharing = QueueSharing(cpu=Quota(2000.0, 4000.0), memory=Quota(None, None))
    found = of(node("n", 8), replace(queue("q"), sharing=sharing), *running("a", "q", 5))
    place = row(found, "q")
    assert (found.deserved[place, 0], found.limit[place, 0], found.borrowed[place, 0]) == (2, 4, 3)
    assert np.isinf(found.deserved[place, 1]) and found.borrowed[place, 1] == 0
