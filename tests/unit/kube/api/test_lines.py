"""Lines out of chunks, and the waits between tries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.kube.api.backoff import Backoff, TokenBucket
from pumice.kube.api.errors import ApiError, TooLarge, clean
from pumice.kube.api.lines import LineSplitter


@given(st.lists(st.binary(max_size=8).map(lambda b: b.replace(b"x", b"\n"))))
def test_lines_do_not_depend_on_chunks(chunks: list[bytes]) -> None:
    splitter = LineSplitter("it", 1000)
    found = [line for chunk in chunks for line in splitter.feed(chunk)]
    *whole, _ = b"".join(chunks).split(b"\n")
    assert found == [line for line in whole if line]


@pytest.mark.parametrize(
    "chunks", [[b"x" * 11], [b"x" * 6, b"x" * 6], [b"x" * 6, b"xxxxx\n"], [b"ok\n" + b"y" * 11 + b"\n"]]
)
def test_a_line_has_a_cap(chunks: list[bytes]) -> None:
    splitter = LineSplitter("WATCH pods", 10)
    with pytest.raises(TooLarge, match="one line of WATCH pods"):
        for chunk in chunks:
            splitter.feed(chunk)


def test_backoff_doubles_within_bounds_and_heeds_the_server() -> None:
    backoff = Backoff(1.0, 4.0)
    for top in (1.0, 2.0, 4.0, 4.0):
        assert top / 2 <= backoff.next() <= top
    backoff.reset()
    assert backoff.next(3.0) == 3.0
    assert backoff.next(1e9) == 40.0


def test_a_bucket_gives_its_burst_and_then_makes_wait() -> None:
    bucket = TokenBucket(10.0, 3)
    assert [bucket.try_take() for _ in range(4)] == [True, True, True, False]
    assert 0.0 < bucket.wait_s() <= 0.1
    assert TokenBucket(0.0, 0).wait_s() == 0.0


def test_names_do_not_write_log_lines() -> None:
    assert clean("a\nERROR: all is lost\x1b[31m") == "a�ERROR: all is lost�[31m"
    assert len(clean("x" * 10_000)) < 500
    assert "\n" not in str(ApiError(500, "a\nb", "c\nd", "GET /x"))
