"""Tasks of a gang, prefixes of victims, and what remains of operations that were taken back."""

from __future__ import annotations

import pytest

from pumice.columns.placement import Placement
from pumice.framework.cycle.trace import Kind, Operation
from pumice.testing.build import cluster, node, pod, podgroup, queue, session
from pumice.volcano.eviction.gangs.plans import VictimPrefixes, WaitingTasks, joined, last_of_each, waiting_tasks_of


def pipeline(*placed: tuple[int, int], evicted: bool = True) -> Operation:
    rows, nodes = zip(*placed, strict=True)
    return Operation(Kind.PIPELINE, Placement(list(rows), list(nodes)), evicted=evicted)


@pytest.mark.parametrize(
    ("fitting", "first"),
    [({1: 9, 2: 9}, 4), ({1: 0, 2: 9}, 0), ({1: 1, 2: 9}, 2), ({1: 9, 2: 1}, 3), ({1: 2, 2: 2}, 4)],
)
def test_tasks_fit_up_to_the_first_of_a_class_without_room(fitting: dict[int, int], first: int) -> None:
    tasks = WaitingTasks(0, [10, 11, 12, 13], [1, 2, 1, 2], [])
    assert tasks.first_that_fit(fitting) == first


def test_each_try_evicts_more() -> None:
    assert list(VictimPrefixes([7, 8, 9], [1, 3])) == [[7], [7, 8, 9]]
    assert len(VictimPrefixes()) == 0


def test_the_last_placement_of_a_task_counts_and_evictions_do_not() -> None:
    undone = [pipeline((1, 5), (2, 5)), Operation(Kind.EVICT, Placement([3], [5]), "go"), pipeline((2, 6))]
    known = {4}
    assert list(last_of_each(undone, known)) == [pipeline((2, 6)), pipeline((1, 5))]
    assert known == {1, 2, 4}
    assert list(last_of_each(undone, known)) == []


def test_placements_of_a_sub_job_are_one_operation() -> None:
    ssn = session(cluster(queue("default"), node("a", 4), podgroup("g", 2, phase="Inqueue"), *pods()), "tiers: []")
    (waiting,) = waiting_tasks_of(ssn, 0)
    first, second = waiting.rows
    plan = joined(ssn, (pipeline((first, 0)), pipeline((second, 0))))
    assert plan == (pipeline((first, 0), (second, 0)),)
    assert [(count, len(asks) > 0) for _, count, asks in waiting.wanted] == [(2, True)]


def pods() -> list[object]:
    return [pod(f"g-{i}", "g") for i in range(2)]
