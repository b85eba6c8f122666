"""reclaim on clusters in a few words: what a queue takes back."""

from __future__ import annotations

from typing import Any

from pumice.model.blockers import RECLAIM as RECLAIMS
from pumice.model.blockers import CannotEvict, QueueLimit
from pumice.model.events import Object
from pumice.testing.build import cluster, node, queue, run
from tests.unit.volcano.evicting import LEVELS, RECLAIM, gang


def two_queues(**more: Any) -> list[Object]:
    return [queue("rich", 1, **more), queue("poor", 1), node("n", 4), *gang("has", 4, 0, "rich", on="n")]


def test_a_queue_takes_back_up_to_its_share() -> None:
    ran = run(cluster(LEVELS, two_queues(), gang("wants", 4, 1, "poor")), RECLAIM)
    assert (ran.evicted, ran.pipelined) == (["ns/has-3"], {"ns/wants-0": "n"})


def test_nothing_is_taken_from_a_queue_that_does_not_allow_it() -> None:
    assert run(cluster(LEVELS, two_queues(reclaimable=False), gang("wants", 1, 1, "poor")), RECLAIM).decisions == []


def test_a_queue_that_would_have_more_than_it_deserves_reclaims_nothing() -> None:
    ran = run(cluster(LEVELS, two_queues(), gang("wants", 3, 3, "poor")), RECLAIM)
    assert ran.decisions == []
    found = [entry.finding for entry in ran.outcome.entries if isinstance(entry.finding, CannotEvict)]
    assert found == [CannotEvict("reclaim", 2, 3, QueueLimit("poor", RECLAIMS))]
