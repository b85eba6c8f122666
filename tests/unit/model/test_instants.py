"""Moments as Kubernetes writes them, read and written."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from pumice.model.instants import epoch_of, stamp


@given(st.integers(-62_135_596_800, 253_402_300_799))
def test_a_stamp_is_the_calendars_and_is_read_back(seconds: int) -> None:
    text = stamp(seconds)
    calendar = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    assert text == calendar.replace("+00:00", "Z")
    assert epoch_of(text) == seconds
