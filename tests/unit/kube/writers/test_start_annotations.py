"""Expected starts as annotations: what is written, and when it has changed enough to be written again."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.kube.writers.start_annotations import (
    BETWEEN_80,
    BETWEEN_95,
    RECORD,
    START,
    UNKNOWN,
    WrittenStart,
    removal,
    start_annotations,
    start_difference,
)
from pumice.ours.start_scores import Record
from pumice.testing.build import podgroup

NONE = Record(0, 0, 0)
HOURS = WrittenStart([3600.0, 7200.0, 10_800.0, 14_400.0, np.inf])


def test_a_start_is_written_with_its_intervals_and_how_often_they_were_right() -> None:
    assert start_annotations(HOURS, Record(50, 41, 48)) == {
        START: "1970-01-01T03:00:00Z",
        BETWEEN_80: "1970-01-01T02:00:00Z/1970-01-01T04:00:00Z",
        BETWEEN_95: "1970-01-01T01:00:00Z/..",
        UNKNOWN: None,
        RECORD: "of 50 earlier predictions 41 within 80 %, 48 within 95 %",
    }


def test_why_nothing_can_be_said_is_written() -> None:
    found = start_annotations(WrittenStart([np.inf] * 5, "in 8 of 8 simulations it does not start"), NONE)
    assert found == {
        **dict.fromkeys((START, BETWEEN_80, BETWEEN_95, RECORD)),
        UNKNOWN: "in 8 of 8 simulations it does not start",
    }


@pytest.mark.parametrize(
    ("moved_s", "is_written"),
    # The wait is 3 h: a tenth of that is 18 minutes.
    [(0.0, False), (600.0, False), (1_300.0, True), (-1_300.0, True)],
)
def test_a_start_is_written_again_only_if_it_has_moved(moved_s: float, is_written: bool) -> None:
    group = replace(podgroup("g", 1), annotations={"a": "b", **_written(start_annotations(HOURS, NONE))})
    moved = WrittenStart([each + moved_s for each in HOURS.quantiles])
    assert bool(start_difference(group, start_annotations(moved, NONE), now=0.0)) == is_written


def test_a_record_alone_is_no_reason_to_write() -> None:
    group = replace(podgroup("g", 1), annotations=_written(start_annotations(HOURS, NONE)))
    assert start_difference(group, start_annotations(HOURS, Record(9, 8, 9)), now=0.0) == {}


def test_other_numbers_in_why_nothing_is_known_are_no_reason_to_write() -> None:
    unknown = [WrittenStart([np.inf] * 5, f"in {count} of 8 simulations it does not start") for count in (7, 8)]
    group = replace(podgroup("g", 1), annotations=_written(start_annotations(unknown[0], NONE)))
    assert start_difference(group, start_annotations(unknown[1], NONE), now=0.0) == {}
    known = start_difference(group, start_annotations(HOURS, NONE), now=0.0)
    assert known[UNKNOWN] is None and known[START] is not None


def test_what_is_removed_is_what_is_there() -> None:
    assert removal(replace(podgroup("g", 1), annotations={"a": "b", START: "x"})) == {START: None}
    assert removal(podgroup("g", 1)) == {}


def _written(annotations: dict[str, str | None]) -> dict[str, str]:
    return {key: text for key, text in annotations.items() if text is not None}
