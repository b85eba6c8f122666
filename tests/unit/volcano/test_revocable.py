"""Hours of revocable zones."""

from __future__ import annotations

import pytest

from pumice.volcano.revocable import DAY, WindowError, Zones, parse_window

HOUR = 3600.0
MONDAY = 1_767_571_200.0  # 2026-01-05T00:00:00Z


NO_WINDOWS = ["", "0:00", "00:00_01:00", "1:0-0:0", "63:59-23:59", "23:60-0:00", "a:00-b:00", "-", "1:00-2:00x"]


@pytest.mark.parametrize("text", NO_WINDOWS)
def test_what_is_no_window(text: str) -> None:
    with pytest.raises(WindowError):
        parse_window(text)


@pytest.mark.parametrize(
    ("text", "hour", "holds"),
    [
        ("9:30-18:00", 9.49, False),
        ("9:30-18:00", 9.5, True),
        ("9:30-18:00", 18.0, True),
        pytest.param("9:30-18:00", 18 + 0.9 / HOUR, True, id="to the second"),
        ("9:30-18:00", 18.01, False),
        ("0:00-0:00", 0.0, True),
        ("0:00-0:00", 23.99, True),
        ("22:00-6:00", 23.0, True),
        pytest.param("22:00-6:00", 3.0, False, id="what is left of the day before does not count, as in Volcano"),
        ("   1:00-0:00    ", 12.0, True),
    ],
)
def test_when_a_window_holds(text: str, hour: float, holds: bool) -> None:
    assert parse_window(text).holds(MONDAY + hour * HOUR) is holds


@pytest.mark.parametrize("text", ["9:30-18:00", "0:00-0:00", "22:00-6:00", "23:59-23:59"])
def test_nothing_changes_before_it_is_said_to(text: str) -> None:
    window, now = parse_window(text), MONDAY + 0.5
    while now < MONDAY + 2 * DAY:
        then = window.changes_after(now)
        assert then > now
        moments = [now + (then - now) * part / 16 for part in range(16)]
        assert len({window.holds(moment) for moment in moments}) == 1
        now = then


def test_objections_to_a_zone() -> None:
    zones = Zones.read({"night": "22:00-23:00", "typo": "22-23"})
    noon = MONDAY + 12 * HOUR
    assert zones.objection("night", MONDAY + 22.5 * HOUR) == ""
    assert zones.objection("night", noon) == "current time beyond revocable zone night:22:00-23:00"
    assert zones.objection("typo", noon) == "revocable zone 22-23 format error"
    assert zones.objection("day", noon) == "revocable zone day not support"
