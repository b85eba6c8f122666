"""How long a candidate waits for a leader: by its own clock, whatever the record says the time is."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.kube.scheduler.lease import Election, Observed
from tests.unit.kube.silence import SILENT


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def lease(holder: str, renewed: str = "2026-01-01T00:00:00Z", seconds: Any = 15) -> dict[str, Any]:
    return {"spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": seconds}}


def test_it_counts_from_when_the_record_was_seen_to_change() -> None:
    clock = Clock()
    seen = Observed(clock)
    seen.see(lease("a", "1970-01-01T00:00:00Z"))
    assert seen.left_s(15.0) == 15.0, "a time long gone says nothing"
    clock.now += 10
    seen.see(lease("a", "1970-01-01T00:00:00Z"))
    assert seen.left_s(15.0) == 5.0
    seen.see(lease("a", "1969-12-31T23:59:59Z"))
    assert seen.left_s(15.0) == 15.0, "a clock that goes backwards is a sign of life too"
    clock.now += 15
    assert seen.left_s(15.0) == 0.0


def test_a_time_in_the_future_does_not_hold_the_place() -> None:
    clock = Clock()
    seen = Observed(clock)
    seen.see(lease("a", "2099-01-01T00:00:00Z"))
    clock.now += 15
    assert seen.left_s(15.0) == 0.0


@pytest.mark.parametrize(
    ("seconds", "left"),
    [
        pytest.param(40, 40.0, id="the leader's own"),
        pytest.param(0, 15.0, id="nothing"),
        pytest.param(10**9, 15.0, id="for ever"),
        pytest.param("soon", 15.0, id="nonsense"),
        pytest.param(None, 15.0, id="not said"),
    ],
)
def test_how_long_a_record_is_believed(seconds: Any, left: float) -> None:
    seen = Observed(Clock())
    seen.see(lease("a", seconds=seconds))
    assert seen.left_s(15.0) == left


@pytest.mark.parametrize(
    "found",
    [
        pytest.param({}, id="none"),
        pytest.param(lease(""), id="given back"),
        pytest.param({"spec": None}, id="empty"),
        pytest.param({"spec": {"holderIdentity": None}}, id="null"),
    ],
)
def test_a_place_that_is_free(found: dict[str, Any]) -> None:
    seen = Observed(Clock())
    seen.see(found)
    assert (seen.holder, seen.left_s(15.0)) == ("", 0.0)


@pytest.mark.parametrize("times", [(15.0, 15.0, 2.0), (15.0, 2.0, 10.0), (15.0, 10.0, 0.0)])
def test_times_that_could_make_two_leaders_are_refused(times: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="wanted 0 < retry < renew < lease"):
        Election(SILENT, "ns", "it", "a", *times)
