"""When a CronJob is due: five fields of cron, or a word for them, in a time zone.

Source: the cron library of Kubernetes' and Volcano's controllers. If both kinds of days are restricted, either is
enough; a step restricts. An hour that a change of clocks skips is skipped, and one that occurs twice counts twice
(decision 0001).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

from msgspec import Struct

from pumice.model.quantity import DurationError, parse_duration

_DAYS_MAX = 5 * 366  # a schedule that is not due within five years never is
_TEXT_MAX = 256
_EVERY_MIN_S = 60
_DAY_S = 86_400
_WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


class ScheduleError(ValueError):
    """A text is not a schedule, or a name is not a time zone."""


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 6, _WEEKDAYS),
)


class Every(Struct, frozen=True):
    """A number of seconds after the last time."""

    seconds: int

    def after(self, at: float) -> float:
        """Return the next time, in seconds since the epoch."""
        return int(at) + self.seconds

    def latest(self, since: float, until: float) -> float | None:
        """Return the last time in (since, until], or None."""
        count = int((until - int(since)) // self.seconds)
        return int(since) + count * self.seconds if count > 0 else None


class Cron(Struct, frozen=True):
    """``minutes``: of a day that is due, in order. ``either``: a day is due if its month day or its weekday is."""

    minutes: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool
    zone: tzinfo

    def after(self, at: float) -> float | None:
        """Return the next time, in seconds since the epoch, or None if there is none for years."""
        first = datetime.fromtimestamp(at, self.zone).date()
        for day in (first + timedelta(days=i) for i in range(_DAYS_MAX)):
            for found in self._times_on(day) if self._is_due(day) else ():
                if found > at:
                    return found
        return None

    def latest(self, since: float, until: float) -> float | None:
        """Return the last time in (since, until], or None if there is none, or none for years."""
        last = datetime.fromtimestamp(until, self.zone).date()
        first = max(datetime.fromtimestamp(since, self.zone).date(), last - timedelta(days=_DAYS_MAX))
        for day in (last - timedelta(days=i) for i in range((last - first).days + 1)):
            found = [t for t in self._times_on(day) if since < t <= until] if self._is_due(day) else ()
            if found:
                return found[-1]
        return None

    def _is_due(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_month, by_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_month or by_week if self.either else by_month and by_week

    def _times_on(self, day: date) -> list[float]:
        """Return the times of a day in order. A day on which clocks change is examined minute by minute."""
        midnight = datetime.combine(day, time(), self.zone)
        start = midnight.timestamp()
        if datetime.combine(day + timedelta(days=1), time(), self.zone).timestamp() - start == _DAY_S:
            return [start + 60.0 * minute for minute in self.minutes]
        return sorted({found for minute in self.minutes for found in self._readings(midnight, minute)})

    def _readings(self, midnight: datetime, minute: int) -> Iterator[float]:
        """Yield when clocks show a minute of a day: once, twice or never."""
        for fold in (0, 1):
            shown = midnight.replace(hour=minute // 60, minute=minute % 60, fold=fold)
            back = shown.astimezone(UTC).astimezone(self.zone)
            if (back.hour, back.minute, back.day) == (shown.hour, shown.minute, shown.day):
                yield shown.timestamp()


Schedule = Every | Cron


def read_schedule(text: str, zone: str = "") -> Schedule:
    """Return the schedule of ``0 3 * * 1-5``, ``@daily`` or ``@every 1h30m``, in a zone such as ``Europe/Paris``, or
    UTC.

    Raises: ScheduleError.
    """
    if len(text) > _TEXT_MAX:
        raise ScheduleError(f"a schedule of {len(text)} characters, wanted at most {_TEXT_MAX}")
    if "TZ" in text:
        raise ScheduleError(f"found {text!r}, wanted the time zone in spec.timeZone")
    place = zone_of(zone)
    written = text.strip()
    if written.startswith("@every "):
        return _every(written.removeprefix("@every "))
    parts = _WORDS.get(written, written).split()
    if len(parts) != len(_FIELDS):
        wanted = "five fields (minute, hour, day of month, month, day of week), @every or " + ", ".join(_WORDS)
        raise ScheduleError(f"found {text!r}, wanted {wanted}")
    (minutes, _), (hours, _), (days, any_day), (months, _), (weekdays, any_weekday) = (
        _values(part, field) for part, field in zip(parts, _FIELDS, strict=True)
    )
    of_day = tuple(60 * hour + minute for hour in sorted(hours) for minute in sorted(minutes))
    found = Cron(of_day, days, months, weekdays, not any_day and not any_weekday, place)
    if not found.either and min(days) > max(_days_in(month) for month in months):
        raise ScheduleError(f"found {text!r}, wanted a day that exists in one of these months")
    return found


def zone_of(name: str) -> tzinfo:
    """Return a time zone. Raises: ScheduleError if the name is not one."""
    if not name:
        return UTC
    if name.lower() == "local" or len(name) > _TEXT_MAX:
        raise ScheduleError(f"found time zone {name[:_TEXT_MAX]!r}, wanted one such as Europe/Paris")
    try:
        return ZoneInfo(name)
    except (ValueError, LookupError, OSError):  # an invalid name, an unknown one, a folder
        raise ScheduleError(f"found time zone {name!r}, wanted one such as Europe/Paris") from None


def _every(text: str) -> Every:
    try:
        seconds = int(parse_duration(text))
    except DurationError:
        raise ScheduleError(f"found @every {text!r}, wanted a duration such as 1h30m") from None
    if seconds < _EVERY_MIN_S:
        raise ScheduleError(f"found @every {text}, wanted at least a minute, because jobs are named after the minute")
    return Every(seconds)


def _values(part: str, field: _Field) -> tuple[frozenset[int], bool]:
    """Return the values that a field allows, and whether it allows all by a star."""
    found: set[int] = set()
    star = False
    for term in part.split(","):
        span, slash, stepped = term.partition("/")
        step = _number(stepped, part, field) if slash else 1
        if not step:
            raise _wrong(part, field)
        if span in ("*", "?"):
            low, high = field.low, field.high
            star |= step == 1
        else:
            first, dash, last = span.partition("-")
            low = _named(first, part, field)
            high = _named(last, part, field) if dash else (field.high if slash else low)
        if not field.low <= low <= high <= field.high:
            raise _wrong(part, field)
        found.update(range(low, high + 1, step))
    return frozenset(found), star


def _named(text: str, part: str, field: _Field) -> int:
    if text.lower() in field.names:
        return field.low + field.names.index(text.lower())
    return _number(text, part, field)


def _number(text: str, part: str, field: _Field) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 4):
        raise _wrong(part, field)
    return int(text)


def _wrong(part: str, field: _Field) -> ScheduleError:
    return ScheduleError(
        f"found {part!r} as {field.name}, wanted *, or numbers from {field.low} to {field.high}, such as"
        f" {field.low},{field.high} or {field.low}-{field.high}/2"
    )


def _days_in(month: int) -> int:
    return 29 if month == 2 else 30 if month in (4, 6, 9, 11) else 31
