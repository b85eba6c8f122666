"""Jobs of one queue that take turns: in order, and what comes back among them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

import pytest

from pumice.scenario.turns import Line


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
