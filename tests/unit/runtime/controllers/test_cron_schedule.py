"""When schedules are due: fields, words, zones, days on which clocks change, and texts that are none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pumice.runtime.controllers.cron_schedule import ScheduleError, read_schedule


def at(text: str) -> float:
    """A time in UTC unless it says its offset."""
    found = datetime.fromisoformat(text)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def shown(when: float | None) -> str:
    return "" if when is None else datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%S")


@pytest.mark.parametrize(
    ("text", "now", "following"),
    [
        ("* * * * *", "2026-03-01T10:00:30", "2026-03-01T10:01:00"),
        ("* * * * *", "2026-03-01T10:01:00", "2026-03-01T10:02:00"),
        ("*/15 * * * *", "2026-03-01T10:16:00", "2026-03-01T10:30:00"),
        ("5/20 * * * *", "2026-03-01T10:46:00", "2026-03-01T11:05:00"),
        ("0 3 * * 1-5", "2026-03-06T04:00:00", "2026-03-09T03:00:00"),
        ("0 3 * * mon,FRI", "2026-03-06T04:00:00", "2026-03-09T03:00:00"),
        ("30 23 31 dec ?", "2026-03-01T00:00:00", "2026-12-31T23:30:00"),
        ("0 0 29 2 *", "2026-03-01T00:00:00", "2028-02-29T00:00:00"),
        ("0 0 13 * 5", "2026-03-01T00:00:00", "2026-03-06T00:00:00"),  # either day, where both are restricted
        ("0 0 */10 * 5", "2026-03-01T00:00:00", "2026-03-06T00:00:00"),  # a step restricts
        ("0 0 * * 5", "2026-03-01T00:00:00", "2026-03-06T00:00:00"),
        ("@hourly", "2026-03-01T10:00:00", "2026-03-01T11:00:00"),
        ("@daily", "2026-12-31T10:00:00", "2027-01-01T00:00:00"),
        ("@weekly", "2026-03-02T10:00:00", "2026-03-08T00:00:00"),
        ("@monthly", "2026-03-02T10:00:00", "2026-04-01T00:00:00"),
        ("@yearly", "2026-03-02T10:00:00", "2027-01-01T00:00:00"),
        ("@every 1h30m", "2026-03-01T10:00:00", "2026-03-01T11:30:00"),
    ],
)
def test_what_comes_next(text: str, now: str, following: str) -> None:
    found = read_schedule(text).after(at(now))
    assert shown(found) == following
    assert found is not None and read_schedule(text).latest(at(now), found) == found


@pytest.mark.parametrize(
    ("text", "since", "until", "last"),
    [
        ("*/10 * * * *", "2026-03-01T10:00:00", "2026-03-01T10:09:59", ""),
        ("*/10 * * * *", "2026-03-01T10:00:00", "2026-03-01T10:10:00", "2026-03-01T10:10:00"),
        ("*/10 * * * *", "2026-03-01T10:00:00", "2026-03-05T10:15:00", "2026-03-05T10:10:00"),
        ("0 0 1 1 *", "2020-06-01T00:00:00", "2026-06-01T00:00:00", "2026-01-01T00:00:00"),
        ("@every 1h", "2026-03-01T10:20:00", "2026-03-01T13:30:00", "2026-03-01T13:20:00"),
        ("@every 1h", "2026-03-01T10:20:00", "2026-03-01T11:19:00", ""),
    ],
)
def test_what_was_due_last(text: str, since: str, until: str, last: str) -> None:
    assert shown(read_schedule(text).latest(at(since), at(until))) == last


@pytest.mark.parametrize(
    ("text", "now", "following"),
    [
        pytest.param("0 9 * * *", "2026-01-10T09:00:00", "2026-01-11T08:00:00", id="winter"),
        pytest.param("0 9 * * *", "2026-07-10T09:00:00", "2026-07-11T07:00:00", id="summer"),
        pytest.param("30 2 * * *", "2026-03-28T12:00:00", "2026-03-30T00:30:00", id="an hour that (ignored)"),
        pytest.param("30 2 * * *", "2026-10-24T12:00:00", "2026-10-25T00:30:00", id="an hour that comes twice"),
        pytest.param("30 2 * * *", "2026-10-25T00:30:00", "2026-10-25T01:30:00", id="its second time"),
        pytest.param("30 2 * * *", "2026-10-25T01:30:00", "2026-10-26T01:30:00", id="and then no more"),
        pytest.param("0 0 * * 1", "2026-03-01T10:00:00", "2026-03-01T23:00:00", id="another day than in UTC"),
    ],
)
def test_in_a_zone_whose_clocks_change(text: str, now: str, following: str) -> None:
    assert shown(read_schedule(text, "Europe/Paris").after(at(now))) == following


@pytest.mark.parametrize(
    ("text", "zone", "why"),
    [
        ("", "", "five fields"),
        ("* * * *", "", "five fields"),
        ("* * * * * *", "", "five fields"),
        ("60 * * * *", "", "as minute, wanted *, or numbers from 0 to 59"),
        ("* 24 * * *", "", "as hour"),
        ("* * 0 * *", "", "as day of month"),
        ("* * * 13 *", "", "as month"),
        ("* * * * 7", "", "as day of week"),
        ("*/0 * * * *", "", "as minute"),
        ("5-1 * * * *", "", "as minute"),
        ("1,,2 * * * *", "", "as minute"),
        ("99999999999 * * * *", "", "as minute"),
        ("* * * febr *", "", "as month"),
        ("0 0 30 2 *", "", "a day that exists in one of these months"),
        ("@often", "", "five fields"),
        ("@every soon", "", "a duration"),
        ("@every 1s", "", "at least a minute"),
        ("CRON_TZ=UTC * * * * *", "", "spec.timeZone"),
        ("*" * 1000, "", "1000 characters"),
        ("@daily", "Mars/Phobos", "'Mars/Phobos'"),
        ("@daily", "../../etc/passwd", "wanted one such as"),
        ("@daily", "Europe", "wanted one such as"),
        ("@daily", "Local", "wanted one such as"),
    ],
)
def test_what_is_no_schedule_is_refused_with_a_word(text: str, zone: str, why: str) -> None:
    with pytest.raises(ScheduleError) as found:
        read_schedule(text, zone)
    assert why in str(found.value)
