"""Times as Kubernetes writes them."""

from __future__ import annotations

import re
from functools import lru_cache

_INSTANT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]{1,9})?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
_DAYS_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365)


@lru_cache(maxsize=16_384)
def epoch_of(stamp: str) -> float | None:
    """Return seconds since the epoch, or None if the text is not an RFC 3339 time."""
    # By arithmetic, because the core must not import datetime or time, which would give it a clock.
    match = _INSTANT.fullmatch(stamp)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.group(1, 2, 3, 4, 5, 6))
    if not (1 <= month <= 12 and 1 <= day <= _month_length(year, month) and hour < 24 and minute < 60 and second <= 60):
        return None
    earlier = year - 1
    days = 365 * earlier + earlier // 4 - earlier // 100 + earlier // 400 + _DAYS_BEFORE[month - 1] + day - 719_163
    days += month > 2 and _is_leap(year)
    seconds: float = days * 86_400 + hour * 3600 + minute * 60 + second
    fraction, sign, east_hours, east_minutes = match.group(7, 8, 9, 10)
    if sign:
        offset = int(east_hours) * 3600 + int(east_minutes) * 60
        # A time east of Greenwich is earlier in UTC.
        seconds -= offset if sign == "+" else -offset
    return float(seconds + float(fraction) if fraction else seconds)


def stamp(seconds: float) -> str:
    """Return seconds since the epoch as RFC 3339 in whole seconds, as Kubernetes writes times."""
    days, of_day = divmod(int(seconds), 86_400)
    # The year begins in March here, so that the leap day is its last: every 400 years are then equally long.
    era, of_era = divmod(days + 719_468, 146_097)
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    day, month = of_year - (153 * shifted + 2) // 5 + 1, shifted + 3 if shifted < 10 else shifted - 9
    year += era * 400 + (month <= 2)
    hour, minute, second = of_day // 3600, of_day // 60 % 60, of_day % 60
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _month_length(year: int, month: int) -> int:
    return _DAYS_BEFORE[month] - _DAYS_BEFORE[month - 1] + (month == 2 and _is_leap(year))
