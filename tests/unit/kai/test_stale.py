"""Gangs that fell below their minimum."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.kai.stale import stale_jobs, will_be_whole
from pumice.model.events import Object
from pumice.model.pod import Pod
from pumice.model.workloads.gang import SubGroup
from tests.unit.kai.cluster import job, node, opened, queue, store

PARTS = SubGroup("p", 1), SubGroup("q", 1)


def ended(objects: list[Object], phase: str) -> list[Object]:
    """The first pod has ended."""
    first = next(each for each in objects if isinstance(each, Pod))
    return [replace(each, phase=phase) if each is first else each for each in objects]


@pytest.mark.parametrize(
    ("objects", "stale"),
    [
        pytest.param(job("g", "q", ["a", ""], minimum=2), True, id="one of two"),
        pytest.param(job("g", "q", ["a", "a"], minimum=2), False, id="both"),
        pytest.param(job("g", "q", ["", ""], minimum=2), False, id="one that holds nothing waits"),
        pytest.param(job("g", "nobody", ["a", ""], minimum=2), False, id="in no queue"),
        pytest.param(ended(job("g", "q", ["a", "a"], minimum=2), "Failed"), True, id="one has failed"),
        pytest.param(ended(job("g", "q", ["a", "a"], minimum=2), "Succeeded"), False, id="one is done"),
        pytest.param(job("g", "q", ["a/p", "a/p", "/q"], minimum=2, sub_groups=PARTS), True, id="one part of two"),
        pytest.param(job("g", "q", ["a/p", "a/q", "/q"], minimum=2, sub_groups=PARTS), False, id="each part"),
    ],
)
def test_who_is_stale(objects: list[Object], stale: bool) -> None:
    ssn = opened(store(node("a"), queue("q"), objects))
    assert len(stale_jobs(ssn.tables)) == stale


@pytest.mark.parametrize("parts", [(), PARTS])
def test_one_that_is_being_evicted_still_counts(parts: tuple[SubGroup, ...]) -> None:
    tasks = ["a/p", "a/q"] if parts else ["a", "a"]
    ssn = opened(store(node("a"), queue("q"), job("g", "q", tasks, minimum=2, sub_groups=parts)))
    ssn.statement().evict([0], "go")
    assert len(stale_jobs(ssn.tables)) == 0


@pytest.mark.parametrize(
    ("objects", "whole"),
    [
        pytest.param(job("g", "q", ["a", "a"], minimum=2), True, id="both are there"),
        pytest.param(job("g", "q", ["a", ""], minimum=2), False, id="one waits"),
        pytest.param(job("g", "q", ["a", "a"], minimum=2, pod={"deletion": 1.0}), False, id="both leave"),
        pytest.param(job("g", "q", ["a/p", "a/p", "/q"], minimum=2, sub_groups=PARTS), False, id="one part of two"),
    ],
)
def test_who_will_be_whole(objects: list[Object], whole: bool) -> None:
    ssn = opened(store(node("a"), queue("q"), objects))
    assert will_be_whole(ssn.tables, 0) is whole
