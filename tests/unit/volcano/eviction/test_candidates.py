"""Who runs where and might be evicted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.api import Session
from pumice.model.workloads.native_group import NativeGroup
from pumice.model.workloads.podgroup import PodGroup
from pumice.testing.build import cluster, node, pod, queue, session
from pumice.volcano.eviction.candidates import evictable
from tests.unit.volcano.evicting import LEVELS, PREEMPT, gang


def test_room_is_reckoned_anew_after_an_eviction_and_after_its_undoing() -> None:
    ssn = session(
        cluster(LEVELS, node("n", 2), gang("low", 2, on="n"), gang("high", 1, 1, level="high", cpu=2)), PREEMPT
    )
    row_of = {p.name: row for row, p in enumerate(ssn.tables.tasks.pods) if p is not None}
    supply = evictable(ssn).of_queue(0)
    cls = int(ssn.tables.tasks.cls[row_of["high-0"]])
    assert supply.could_hold(cls).tolist() == [True]
    with ssn.statement() as stmt:
        stmt.evict([row_of["low-1"]], "test")
        assert (supply.could_hold(cls).tolist(), len(supply.on(np.array([0])))) == ([True], 1)
        stmt.evict([row_of["low-0"]], "test")
        assert (supply.has_any().tolist(), len(supply.on(np.array([0])))) == ([False], 0)
    assert (supply.has_any().tolist(), len(supply.on(np.array([0])))) == ([True], 2)


def test_candidates_are_offered_in_the_order_in_which_they_would_go() -> None:
    objects = [*LEVELS, node("n", 8), *gang("high", 2, level="high", on="n"), *gang("low", 2, on="n")]
    ssn = session(cluster(objects), PREEMPT)
    offered = [ssn.tables.tasks.pods[row].name for row in evictable(ssn).rows.tolist()]
    assert offered == ["low-1", "low-0", "high-1", "high-0"]


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        pytest.param(lambda found, ssn: found.of_queue(row_of(ssn, "a")), "a-0 b-0", id="of a queue"),
        pytest.param(lambda found, ssn: found.of_other_queues(row_of(ssn, "a")), "c-0", id="of others that allow it"),
        pytest.param(lambda found, ssn: found.of_job(job_of(ssn, "b")), "b-0", id="of a job"),
    ],
)
def test_who_might_be_evicted(asked: Any, names: str) -> None:
    """The pods of gangs a and b of queue a, of c of queue c, and of d, whose queue gives nothing back."""
    queues = [queue("a"), queue("c"), queue("d", reclaimable=False)]
    gangs = [*gang("a", 1, of="a", on="n"), *gang("b", 1, of="a", on="n"), *gang("c", 1, of="c", on="n")]
    others = [*gang("d", 1, of="d", on="n"), *gang("waits", 1, of="a"), pod("loose", on="n")]
    ssn = session(cluster(LEVELS, queues, node("n"), gangs, others), PREEMPT)
    found = asked(evictable(ssn), ssn).on(np.array([0]))
    assert " ".join(sorted(each.name for each in found.pods)) == names


def test_a_gang_that_leaves_only_together_is_a_candidate_for_gang_evictions_alone() -> None:
    group, *members = gang("whole", 2, on="n")
    assert isinstance(group, PodGroup)
    native = replace(group, native=NativeGroup("scheduling.k8s.io/v1beta1", leaves_whole=True))
    ssn = session(cluster(LEVELS, node("n", 8), [native, *members], gang("single", 1, on="n")), PREEMPT)
    found, nodes = evictable(ssn), np.array([0])
    assert [each.name for each in found.of_queue(0).on(nodes).pods] == ["single-0"]
    assert len(found.of_job(job_of(ssn, "whole")).on(nodes)) == 0
    assert sorted(each.name for each in found.of_queue(0, gangs=True).on(nodes).pods) == [
        "single-0",
        "whole-0",
        "whole-1",
    ]


def test_one_job_is_left_out_and_only_those_that_ask_for_nothing_are_asked() -> None:
    members = [*gang("a", 2, on="n"), *gang("b", 1, on="n"), *gang("c", 1, on="n", cpu=0, memory=0)]
    ssn = session(cluster(LEVELS, node("n"), members), PREEMPT)
    supply, nodes = evictable(ssn).of_queue(0), np.array([0])
    assert {each.name for each in supply.on(nodes, but_job=job_of(ssn, "a")).pods} == {"b-0", "c-0"}
    assert {each.name for each in supply.on(nodes, only_best_effort=True).pods} == {"c-0"}


def row_of(ssn: Session, name: str) -> int:
    return ssn.tables.queues.row_of[name]


def job_of(ssn: Session, name: str) -> int:
    return list(ssn.tables.jobs.uids).index(f"ns/{name}")
