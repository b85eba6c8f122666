"""Completed indexes are ranges, and what they cost follows from the length of their text."""

from __future__ import annotations

from itertools import islice

import pytest

from pumice.runtime.controllers.job_indexes import Indexes

MOST = 2**31 - 1


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("", ""),
        ("0-3,7", "0-3,7"),
        ("7,0-1,2,3", "0-3,7"),
        ("4,5", "4,5"),
        ("8-20", "8,9"),
        ("10", ""),
        ("3-1", ""),
        ("a,-1,1-b,2", "2"),
        ("9" * 5000, ""),
        ("0-" + "9" * 5000, ""),
    ],
)
def test_text_is_read_and_written_as_kubernetes_does(text: str, read: str) -> None:
    assert Indexes.read(text, 10).text() == read


def test_billions_of_indexes_are_two_numbers() -> None:
    done = Indexes.read(f"0-{MOST - 5},{MOST - 2}", MOST)
    assert done.count() == MOST - 3
    assert MOST - 5 in done and MOST - 4 not in done and None not in done
    assert list(done.missing(MOST)) == [MOST - 4, MOST - 3, MOST - 1]
    assert list(islice((done | {MOST - 4}).missing(MOST), 1)) == [MOST - 3]


@pytest.mark.parametrize("seed", range(20))
def test_they_are_the_set_that_the_text_lists(seed: int) -> None:
    indexes = {i for i in range(40) if (i * 7 + seed * 13) % 5 < 2}
    found = Indexes.read(",".join(map(str, indexes)), 40) | {seed}
    assert [i for i in range(40) if i in found] == sorted(indexes | {seed})
    assert list(found.missing(40)) == [i for i in range(40) if i not in indexes | {seed}]
    assert found.count() == len(indexes | {seed})
