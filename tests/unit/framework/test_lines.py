"""Jobs of one queue that take turns: in order, and what comes back among them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

import numpy as np
import pytest

from pumice.framework.cycle.ordering import Line
from pumice.testing.build import cluster, podgroup, queue, session


def line(*jobs: int, back: tuple[int, ...] = ()) -> Line:
    """The key of a job is its number."""
    found = Line(lambda rows: [(row,) for row in rows], jobs)
    for job in back:
        found.push(job)
    return found


def drained(jobs: Line) -> list[int]:
    return [jobs.pop() for _ in range(len(jobs))]


@pytest.mark.parametrize(
    ("jobs", "back"), [((), ()), ((1, 3, 5), ()), ((1, 3, 5), (2,)), ((1, 3), (4, 0)), ((), (2, 1))]
)
def test_what_is_pushed_back_takes_its_place(jobs: tuple[int, ...], back: tuple[int, ...]) -> None:
    one = line(*jobs, back=back)
    if one:
        assert one.peek() == min(*jobs, *back, 99)
    assert drained(one) == sorted((*jobs, *back))


@pytest.mark.parametrize(
    ("below", "back", "left"),
    [(0, (), [1, 3, 5]), (4, (), [5]), (9, (), []), (4, (2,), [5]), (2, (4,), [3, 4, 5]), (9, (4,), [])],
)
def test_the_first_that_fail_are_skipped_and_nobody_behind_them(
    below: int, back: tuple[int, ...], left: list[int]
) -> None:
    one = line(1, 3, 5, back=back)

    def leading(jobs: Iterable[int]) -> int:
        return len(list(takewhile(lambda job: job < below, jobs)))

    assert one.skip(leading) == (len(left) < 3 + len(back))
    assert drained(one) == left


def test_no_key_is_worked_out_before_somebody_comes_back() -> None:
    asked: list[list[int]] = []

    def keys(rows: list[int]) -> list[tuple[int, ...]]:
        asked.append(rows)
        return [(row,) for row in rows]

    one = Line(keys, [4, 7, 9])
    assert (one.pop(), one.peek(), len(one), asked) == (4, 7, 2, [])
    one.push(8)
    assert (one.peek(), sorted(one.rows()), asked) == (7, [7, 8, 9], [[8], [7]])
    assert (one.pop_all(), len(one), one.pop_all()) == ([7, 8, 9], 0, [])


@pytest.mark.parametrize(("depth", "wanted"), [(None, {0: "d b", 1: "e c a"}), (2, {0: "d b", 1: "e c"})])
def test_a_line_for_each_queue(depth: int | None, wanted: dict[int, str]) -> None:
    jobs = [podgroup(name, queue="10"[i % 2], creation=9.0 - i) for i, name in enumerate("abcde")]
    ssn = session(cluster(queue("0"), queue("1"), *jobs), "")
    names = ssn.tables.queues.names
    found = ssn.order.lines(np.arange(5), depth)
    said = {
        int(names[row]): " ".join(ssn.tables.jobs.groups[job].name for job in line.pop_all())
        for row, line in found.items()
    }
    assert said == wanted
